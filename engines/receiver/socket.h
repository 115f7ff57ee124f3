// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include <pushrod/deadline.h>
#include <pushrod/status.h>

namespace pushrod::engines::receiver {

/// Ends the waits of all sockets that were given it. Any thread.
class StopSignal {
 public:
  StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;
  ~StopSignal();

  void raise() const;

  /// Readable once raised.
  [[nodiscard]] int descriptor() const { return descriptor_; }

 private:
  int descriptor_ = -1;
};

/// A blocking client socket whose waits end at a deadline or with the stop signal. One thread.
class Socket {
 public:
  explicit Socket(const StopSignal& stop) : stop_(&stop) {}

  Socket(Socket&& other) noexcept;
  Socket& operator=(Socket&& other) noexcept;
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  ~Socket();

  Status connect(const std::string& address, std::uint16_t port, Deadline deadline);
  Status write(const void* data, std::size_t bytes, Deadline deadline);
  /// All `bytes` or a failure; a close by the other side says how much had come.
  Status read(void* data, std::size_t bytes, Deadline deadline);
  /// Waits until the other side has closed, reading nothing.
  Status waitClosed();
  void close();

 private:
  Status wait(short events, Deadline deadline) const;
  Status finishConnect(Deadline deadline);

  const StopSignal* stop_;
  int fd_ = -1;
};

}  // namespace pushrod::engines::receiver
