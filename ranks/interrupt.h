// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#include <pushrod/deadline.h>
#include <pushrod/status.h>

namespace pushrod::ranks {

/// A sticky "stop waiting" with its reason. Thread-safe.
class Interrupt {
 public:
  /// The first reason is kept until clear().
  void set(const Status& reason) {
    {
      const std::lock_guard lock(mutex_);
      if (reason_.ok()) {
        reason_ = reason;
      }
    }
    changed_.notify_all();
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
};

}  // namespace pushrod::ranks
