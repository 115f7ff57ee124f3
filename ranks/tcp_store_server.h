// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include <pushrod/result.h>

#include "net/listener.h"

namespace pushrod::net {
class IoExecutor;
}

namespace pushrod::ranks {

struct StoreRequest;

/// Serves the TCP store's values from memory. Lives on the control thread. Bounded in connections,
/// keys and bytes; a connection that breaks the protocol is closed.
class TcpStoreServer {
 public:
  static Result<std::unique_ptr<TcpStoreServer>> open(net::IoExecutor& executor,
                                                      const std::string& address,
                                                      std::uint16_t port);
  TcpStoreServer() = default;
  ~TcpStoreServer() = default;
  TcpStoreServer(const TcpStoreServer&) = delete;
  TcpStoreServer& operator=(const TcpStoreServer&) = delete;

  [[nodiscard]] std::uint16_t port() const { return listener_->port(); }

 private:
  struct Client {
    std::unique_ptr<net::Stream> stream;
    std::string input;
  };

  void add(std::unique_ptr<net::Stream> stream);
  void receive(std::uint64_t id, std::span<const std::byte> bytes);
  /// The reply's body, or a failure that closes the connection.
  Result<std::string> answer(const StoreRequest& request);

  std::map<std::string, std::string> values_;
  std::map<std::uint64_t, Client> clients_;
  std::uint64_t nextClient_ = 0;
  std::unique_ptr<net::Listener> listener_;
};

}  // namespace pushrod::ranks
