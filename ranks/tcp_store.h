// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "ranks/store.h"

namespace pushrod::ranks {

/// Client of a TcpStoreServer over one blocking connection, made anew when it is lost.
class TcpStore final : public Store {
 public:
  /// `addresses` are numeric and tried in turn; nothing is contacted yet.
  TcpStore(std::vector<std::string> addresses, std::uint16_t port, std::string name)
      : addresses_(std::move(addresses)), port_(port), name_(std::move(name)) {}

  ~TcpStore() override { disconnect(); }

  /// One try: unavailable when nobody serves there or somebody else does.
  Status connect(Deadline deadline);

  Status set(const std::string& key, const std::string& value, Deadline deadline) override;
  Result<std::vector<std::optional<std::string>>> get(const std::vector<std::string>& keys,
                                                      Deadline deadline) override;
  Status erase(const std::vector<std::string>& keys, Deadline deadline) override;

  /// The server's memory ends with its process.
  Status eraseBelow(const std::string& /*prefix*/, Deadline /*deadline*/) override {
    return Status();
  }

  [[nodiscard]] std::string describe() const override { return name_; }

 private:
  Status connectTo(const std::string& address, Deadline deadline);
  Result<std::string> exchange(const std::string& frame, Deadline deadline);
  Status send(const std::string& bytes, Deadline deadline);
  /// Reads until `input_` holds `count` bytes.
  Status receive(std::size_t count, Deadline deadline);
  void disconnect();
  [[nodiscard]] Status failed(const std::string& why) const;
  [[nodiscard]] Status late(const std::string& what) const;

  std::vector<std::string> addresses_;
  std::uint16_t port_;
  std::string name_;
  int socket_ = -1;
  std::string input_;
};

}  // namespace pushrod::ranks
