// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ranks/store.h"

namespace pushrod::ranks {

/// A store behind a server: one connection to the first of its addresses that answers, made anew
/// when it is lost.
class ServerStore : public Store {
 public:
  /// One try, at once ok while connected: unavailable when nobody serves there or somebody else
  /// does.
  Status connect(Deadline deadline);

  /// Nothing: what a server keeps ends with it or expires.
  Status eraseBelow(const std::string& /*prefix*/, Deadline /*deadline*/) override {
    return Status();
  }

  [[nodiscard]] std::string describe() const override { return name_; }

 protected:
  /// `addresses` are numeric and tried in turn; nothing is contacted yet.
  ServerStore(std::vector<std::string> addresses, std::uint16_t port, std::string name);

  [[nodiscard]] virtual bool connected() const = 0;
  /// After a failure disconnect() follows.
  virtual Status connectTo(const std::string& address, Deadline deadline) = 0;
  /// Also when not connected.
  virtual void disconnect() = 0;

  [[nodiscard]] std::uint16_t port() const { return port_; }

  /// "the ranks' store tcp://... `why`".
  [[nodiscard]] Status failed(const std::string& why, Code code = Code::kUnavailable) const;
  /// It did not `what` in time.
  [[nodiscard]] Status late(const std::string& what) const;

 private:
  std::vector<std::string> addresses_;
  std::uint16_t port_;
  std::string name_;
};

}  // namespace pushrod::ranks
