// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <utility>

#include <pushrod/deadline.h>
#include <pushrod/status.h>

namespace pushrod::ranks {

/// A sticky "stop waiting" with its reason. Thread-safe.
class Interrupt {
 public:
  /// Ends a wait that cannot look here: calls `wake` at every set() of its life, on that thread.
  /// One at a time.
  class Waker {
   public:
    Waker(Interrupt& interrupt, std::function<void()> wake) : interrupt_(interrupt) {
      const std::lock_guard lock(interrupt_.wakerMutex_);
      interrupt_.wake_ = std::move(wake);
    }

    ~Waker() {
      const std::lock_guard lock(interrupt_.wakerMutex_);
      interrupt_.wake_ = nullptr;
    }

    Waker(const Waker&) = delete;
    Waker& operator=(const Waker&) = delete;

   private:
    Interrupt& interrupt_;
  };

  /// The first reason is kept until clear().
  void set(const Status& reason) {
    {
      const std::lock_guard lock(mutex_);
      if (reason_.ok()) {
        reason_ = reason;
      }
    }
    changed_.notify_all();
    const std::lock_guard lock(wakerMutex_);
    if (wake_) {
      wake_();
    }
  }

  void clear() {
    const std::lock_guard lock(mutex_);
    reason_ = Status();
  }

  /// Ok while not interrupted.
  [[nodiscard]] Status reason() const {
    const std::lock_guard lock(mutex_);
    return reason_;
  }

  /// Waits for an interrupt, at most `limit`; the reason or ok.
  Status waitFor(Duration limit) {
    std::unique_lock lock(mutex_);
    changed_.wait_until(
        lock, std::chrono::steady_clock::now() + limit, [this] { return !reason_.ok(); });
    return reason_;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Status reason_;
  std::mutex wakerMutex_;  ///< held while wake_ runs: it never runs after its Waker
  std::function<void()> wake_;
};

}  // namespace pushrod::ranks
