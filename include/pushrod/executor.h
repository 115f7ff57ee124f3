// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>

#include <pushrod/deadline.h>

namespace pushrod {

/// Runs functions one after another on one thread (the control thread) or, in simulation, in
/// virtual time. `post` and `now` may be called from any thread; `postAt` and `cancel` only on that
/// thread.
class Executor : public Clock {
 public:
  using Task = std::function<void()>;
  using TimerId = std::uint64_t;

  /// Runs `task` soon, after everything already posted. Never inline.
  virtual void post(Task task) = 0;
  /// Runs `task` at `when` or as soon after it as possible. The id is never 0.
  virtual TimerId postAt(TimePoint when, Task task) = 0;
  /// Drops a timer that has not run; unknown ids are ignored.
  virtual void cancel(TimerId id) = 0;
};

}  // namespace pushrod
