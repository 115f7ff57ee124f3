// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <poll.h>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <pushrod/deadline.h>
#include <pushrod/result.h>

#include "transports/tcp/listener.h"
#include "transports/tcp/monitor.h"
#include "transports/tcp/roster.h"
#include "transports/tcp/wire.h"

namespace pushrod::transports::tcp {

/// One frame for every worker. The payload must stay until the frame is completed or the sender
/// stopped.
struct Frame {
  Header header{};
  std::span<const std::byte> payload;
};

/// The one thread of a channel: lets workers join, writes the frames to all of them as fast as each
/// takes them, and watches for connections that close, speak or stand still. Reports to the
/// Monitor.
class Sender {
 public:
  /// Starts the thread. `monitor` must outlive the sender and have been reset for this roster.
  static Result<std::unique_ptr<Sender>> start(const Roster& roster,
                                               std::vector<Listener> listeners,
                                               Duration progress,
                                               Monitor& monitor);
  ~Sender();
  Sender(const Sender&) = delete;
  Sender& operator=(const Sender&) = delete;

  /// Adds a frame for all workers. Any thread; never blocks. Only once every worker has joined.
  void submit(const Frame& frame);
  /// Tells the workers `reason` where a frame may begin, closes everything and joins the thread,
  /// which never waits for a peer. Idempotent.
  void stop(const Status& reason) noexcept;

 private:
  struct Connection {
    Fd fd;
    std::uint64_t frame = 0;   ///< number of the frame it is at
    std::uint64_t offset = 0;  ///< bytes of it already written, header included
    TimePoint lastMoved;       ///< of a byte, or when it began to owe reads
  };

  struct Pending {
    Fd fd;
    std::array<std::byte, kHelloSize> hello{};
    std::size_t have = 0;
    TimePoint limit;
  };

  enum class Source : std::uint8_t { kWake, kListener, kPending, kConnection };

  struct Watch {
    Source source;
    std::size_t index;
  };

  Sender(const Roster& roster,
         std::vector<Listener> listeners,
         Duration progress,
         Monitor& monitor,
         Fd wake);

  void run();
  void wake() noexcept;
  int preparePoll();
  void watch(int fd, short events, Watch watch);
  bool takeInbox();
  void dispatch();
  void expire();

  void acceptFrom(Listener& listener);
  void readHello(Pending& pending);
  void admit(Pending& pending);
  void readFrom(std::size_t slot);
  void pump(std::size_t slot);
  void retireFrames();
  void fault(std::size_t slot, Code code, const std::string& text);
  void sayGoodbye();
  void abortFrameTo(const Connection& connection, const std::string& reason) const;

  [[nodiscard]] bool owes(const Connection& connection) const {
    return connection.fd.valid() && connection.frame < firstFrame_ + frames_.size();
  }

  const Roster& roster_;
  Duration progress_;
  Monitor& monitor_;
  Fd wake_;

  // Between threads.
  std::mutex mutex_;
  std::vector<Frame> inbox_;
  bool stopping_ = false;
  Status stopReason_;

  // The thread's own.
  std::vector<Listener> listeners_;
  std::vector<Pending> pending_;
  std::vector<Connection> connections_;  ///< one per slot; no descriptor before it joined
  std::deque<Frame> frames_;             ///< not yet completed
  std::uint64_t firstFrame_ = 0;         ///< number of frames_.front()
  bool failed_ = false;
  bool listening_ = true;
  std::vector<pollfd> polled_;
  std::vector<Watch> watches_;

  std::thread thread_;
};

}  // namespace pushrod::transports::tcp
