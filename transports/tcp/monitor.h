// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include <pushrod/deadline.h>
#include <pushrod/status.h>

namespace pushrod::transports::tcp {

/// How a wait ended.
enum class Wait : std::uint8_t { kReached, kTrouble, kExpired };

/// What the caller thread, the sending thread and whoever interrupts share about one plane's
/// channel. Every function from any thread; none blocks but await.
class Monitor {
 public:
  /// A new channel of `slots` workers. No sending thread may use the old one.
  void reset(std::size_t slots);

  /// Ends waits with `reason` until clearInterrupt(); the first reason stays.
  void interrupt(const Status& reason);
  void clearInterrupt();
  /// The channel is unusable from now on; the first reason stays.
  void fail(const Status& reason);
  /// Why a caller function must end now: failure or interruption, whichever came first; else ok.
  [[nodiscard]] Status trouble() const;

  /// Cheap form of !trouble().ok().
  [[nodiscard]] bool troubled() const { return troubled_.load(std::memory_order_acquire); }

  [[nodiscard]] bool failed() const;

  void joined(std::size_t slot);
  /// Slots whose worker has not joined.
  [[nodiscard]] std::vector<std::size_t> missing() const;
  /// `frames` frames are handed over on every connection since the channel began.
  void completed(std::uint64_t frames);
  [[nodiscard]] std::uint64_t completedFrames() const;

  /// Waits until every worker joined. kTrouble wins over kReached.
  [[nodiscard]] Wait awaitJoined(Deadline deadline);
  /// Waits until `frames` frames are completed.
  [[nodiscard]] Wait awaitCompleted(std::uint64_t frames, Deadline deadline);

  /// Payload bytes written to the worker of `slot`. addBytes only from the sending thread.
  void addBytes(std::size_t slot, std::uint64_t bytes);
  void clearBytes();
  [[nodiscard]] std::uint64_t bytes(std::size_t slot) const;

 private:
  template <typename Reached>
  Wait await(Deadline deadline, const Reached& reached);

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Status interrupted_;
  Status failure_;
  bool interruptFirst_ = false;
  std::vector<bool> present_;
  std::size_t joined_ = 0;
  std::uint64_t completed_ = 0;
  std::atomic<bool> troubled_{false};
  std::unique_ptr<std::atomic<std::uint64_t>[]> bytes_;
};

}  // namespace pushrod::transports::tcp
