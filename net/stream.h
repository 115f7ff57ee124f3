// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include <pushrod/deadline.h>
#include <pushrod/result.h>

namespace pushrod::net {

class IoExecutor;

/// A TCP byte stream. Everything, destruction included, happens on the control thread. No handler
/// is called inline from a function of this class, none after close() or destruction; a handler may
/// destroy the stream.
class Stream {
 public:
  struct Impl;

  struct Handlers {
    std::function<void(std::span<const std::byte>)> onData;
    /// Once: the other side closed (unavailable, "closed by the other side") or an error. The
    /// stream is then closed.
    std::function<void(const Status&)> onClosed;
  };

  /// Bytes accepted but not yet taken by the system. Beyond it the stream closes.
  static constexpr std::size_t kMaxQueued = std::size_t{4} << 20;

  /// Connects to a numeric address. `done` is called once, by the deadline. May be called from any
  /// thread.
  static void connect(IoExecutor& executor,
                      const std::string& address,
                      std::uint16_t port,
                      Deadline deadline,
                      std::function<void(Result<std::unique_ptr<Stream>>)> done);

  explicit Stream(std::shared_ptr<Impl> impl);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  /// Starts reading. Once.
  void start(Handlers handlers);
  /// Queues bytes. A closed stream drops them; a full queue closes the stream through onClosed.
  void write(std::string bytes);
  /// Closes at once; queued bytes that the system has not taken are lost.
  void close();
  /// "address:port" of the other side, for texts.
  [[nodiscard]] const std::string& peer() const;

 private:
  std::shared_ptr<Impl> impl_;
};

}  // namespace pushrod::net
