// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include <pushrod/result.h>

#include "net/stream.h"

namespace pushrod::net {

class IoExecutor;

/// A listening TCP socket. Everything, destruction included, happens on the control thread.
class Listener {
 public:
  using OnStream = std::function<void(std::unique_ptr<Stream>)>;

  /// Binds a numeric address; port 0 lets the system choose. Fails with unavailable when the
  /// address is not ours or the port is taken.
  static Result<std::unique_ptr<Listener>> open(IoExecutor& executor,
                                                const std::string& address,
                                                std::uint16_t port,
                                                OnStream onStream);
  struct Impl;
  explicit Listener(std::shared_ptr<Impl> impl);
  /// Stops accepting; onStream is not called any more.
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  [[nodiscard]] std::uint16_t port() const;

 private:
  std::shared_ptr<Impl> impl_;
};

}  // namespace pushrod::net
