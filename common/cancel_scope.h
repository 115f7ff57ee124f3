// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>
#include <stop_token>

#include <pushrod/deadline.h>
#include <pushrod/status.h>

namespace pushrod::common {

/// A stop source with the reason of the first cancel and a deadline. Thread-safe.
class CancelScope {
 public:
  explicit CancelScope(Deadline deadline = Deadline::never()) : deadline_(deadline) {}

  /// Cancels with `reason`; only the first reason is kept. Returns whether this was the first.
  bool cancel(const Status& reason);

  [[nodiscard]] bool cancelled() const { return source_.stop_requested(); }

  [[nodiscard]] Status reason() const;

  [[nodiscard]] std::stop_token token() const { return source_.get_token(); }

  [[nodiscard]] Deadline deadline() const { return deadline_; }

 private:
  std::stop_source source_;
  Deadline deadline_;
  mutable std::mutex mutex_;
  Status reason_;
};

}  // namespace pushrod::common
