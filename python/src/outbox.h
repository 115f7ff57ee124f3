// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include <pushrod/coordinator.h>

namespace pushrod::python {

/// What Pushrod's own threads have to tell Python.
struct Message {
  enum class Kind : std::uint8_t { kLog, kProgress, kAbort };

  Kind kind = Kind::kLog;
  LogLevel level = LogLevel::kInfo;
  std::string text;
  PushProgress progress;
};

/// Carries messages to Python on one thread of its own, the only one of Pushrod's that waits for
/// the GIL: whoever posts never does. post() is for any thread; the others are for threads that do
/// not hold the GIL.
class Outbox {
 public:
  /// `deliver` is called on the outbox's thread with the GIL held.
  explicit Outbox(std::function<void(const Message&)> deliver);
  /// Drops what is not delivered.
  ~Outbox();
  Outbox(const Outbox&) = delete;
  Outbox& operator=(const Outbox&) = delete;

  /// Never blocks. Of progress only the latest is kept; log texts are dropped above a bound, and
  /// the drop is told.
  void post(Message message);
  /// Waits until all that was posted has been delivered, at most until `limit`.
  void flush(Duration limit);

 private:
  void run();

  const std::function<void(const Message&)> deliver_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Message> queue_;
  std::size_t dropped_ = 0;
  bool delivering_ = false;
  bool ended_ = false;
  std::thread thread_;
};

/// A log sink that posts what is at least `level`.
class OutboxSink final : public LogSink {
 public:
  OutboxSink(Outbox& outbox, LogLevel level) : outbox_(outbox), level_(level) {}

  void log(LogLevel level, std::string_view text) override;

 private:
  Outbox& outbox_;
  const LogLevel level_;
};

}  // namespace pushrod::python
