// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <utility>
#include <vector>

#include <pushrod/executor.h>

namespace pushrod::sim {

/// One rank's process on the world's executor: dead, it runs nothing any more; stopped, everything
/// waits until it is woken.
class RankExecutor final : public Executor {
 public:
  explicit RankExecutor(Executor& base) : base_(base) {}

  [[nodiscard]] TimePoint now() const override { return base_.now(); }

  void post(Task task) override { (void)postAt(base_.now(), std::move(task)); }

  TimerId postAt(TimePoint when, Task task) override {
    const TimerId id = ++last_;
    if (when - base_.now() >= ignored_) {
      return id;
    }
    schedule(id, when, std::move(task));
    return id;
  }

  void cancel(TimerId id) override {
    const auto at = timers_.find(id);
    if (at != timers_.end()) {
      base_.cancel(at->second);
      timers_.erase(at);
    }
    std::erase_if(waiting_, [id](const auto& each) { return each.first == id; });
  }

  /// Timers at least so far away never fire.
  void ignoreTimersFrom(Duration distance) { ignored_ = distance; }

  void die() {
    dead_ = true;
    waiting_.clear();
  }

  void stop() { stopped_ = true; }

  /// Runs `first` before anything that waited.
  void wake(Task first) {
    stopped_ = false;
    auto waiting = std::exchange(waiting_, {});
    post(std::move(first));
    for (auto& [id, task] : waiting) {
      schedule(id, base_.now(), std::move(task));
    }
  }

  [[nodiscard]] bool dead() const { return dead_; }

  [[nodiscard]] bool stopped() const { return stopped_; }

 private:
  void schedule(TimerId id, TimePoint when, Task task) {
    timers_[id] = base_.postAt(when, [this, id, task = std::move(task)]() mutable {
      timers_.erase(id);
      if (dead_) {
        return;
      }
      if (stopped_) {
        waiting_.emplace_back(id, std::move(task));
        return;
      }
      task();
    });
  }

  Executor& base_;
  std::map<TimerId, TimerId> timers_;
  std::vector<std::pair<TimerId, Task>> waiting_;
  TimePoint::duration ignored_ = TimePoint::duration::max();
  TimerId last_ = 0;
  bool dead_ = false;
  bool stopped_ = false;
};

}  // namespace pushrod::sim
