// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "ranks/server_store.h"

namespace pushrod::ranks {

/// Client of a TcpStoreServer over a blocking connection.
class TcpStore final : public ServerStore {
 public:
  TcpStore(std::vector<std::string> addresses, std::uint16_t port, std::string name)
      : ServerStore(std::move(addresses), port, std::move(name)) {}

  ~TcpStore() override { close(); }

  Status set(const std::string& key, const std::string& value, Deadline deadline) override;
  Result<std::vector<std::optional<std::string>>> get(const std::vector<std::string>& keys,
                                                      Deadline deadline) override;
  Status erase(const std::vector<std::string>& keys, Deadline deadline) override;

 protected:
  [[nodiscard]] bool connected() const override { return socket_ >= 0; }

  Status connectTo(const std::string& address, Deadline deadline) override;

  void disconnect() override { close(); }

 private:
  Result<std::string> exchange(const std::string& frame, Deadline deadline);
  Status send(const std::string& bytes, Deadline deadline);
  /// Reads until `input_` holds `count` bytes.
  Status receive(std::size_t count, Deadline deadline);
  void close();

  int socket_ = -1;
  std::string input_;
};

}  // namespace pushrod::ranks
