// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include <pushrod/executor.h>

namespace pushrod::testing {

/// An Executor in virtual time: tasks run on the calling thread, in the order (time, sequence), and
/// the clock jumps from one to the next. One thread only.
class VirtualExecutor final : public Executor {
 public:
  /// Time begins one hour after the clock's zero, so that earlier points exist.
  VirtualExecutor() : now_(TimePoint() + std::chrono::hours(1)), start_(now_) {}

  [[nodiscard]] TimePoint now() const override { return now_; }

  /// Virtual time since construction.
  [[nodiscard]] Duration elapsed() const {
    return std::chrono::duration_cast<Duration>(now_ - start_);
  }

  void post(Task task) override { add(now_, std::move(task)); }

  TimerId postAt(TimePoint when, Task task) override {
    return add(when < now_ ? now_ : when, std::move(task));
  }

  void cancel(TimerId id) override {
    const auto at = index_.find(id);
    if (at != index_.end()) {
      queue_.erase(at->second);
      index_.erase(at);
    }
  }

  /// Runs the next task, if any; returns whether there was one.
  bool step() {
    if (queue_.empty()) {
      return false;
    }
    const auto first = queue_.begin();
    now_ = first->first.when;
    Task task = std::move(first->second);
    index_.erase(first->first.sequence);
    queue_.erase(first);
    task();
    return true;
  }

  /// Runs until nothing is left, or `limit` tasks ran (a loop that never ends is a failed test, not
  /// a hanging one). Returns whether nothing is left.
  bool run(std::size_t limit = 1'000'000) {
    for (std::size_t i = 0; i < limit; ++i) {
      if (!step()) {
        return true;
      }
    }
    return queue_.empty();
  }

  /// Runs what is due up to and including `when`, then sets the clock to it.
  void runUntil(TimePoint when) {
    while (!queue_.empty() && queue_.begin()->first.when <= when) {
      step();
    }
    if (now_ < when) {
      now_ = when;
    }
  }

  void runFor(Duration duration) { runUntil(now_ + duration); }

  /// Tasks and timers that have not run.
  [[nodiscard]] std::size_t pending() const { return queue_.size(); }

 private:
  struct Key {
    TimePoint when;
    std::uint64_t sequence;
    auto operator<=>(const Key&) const = default;
  };

  TimerId add(TimePoint when, Task task) {
    const Key key{when, ++sequence_};
    queue_.emplace(key, std::move(task));
    index_.emplace(key.sequence, key);
    return key.sequence;
  }

  TimePoint now_;
  TimePoint start_;
  std::uint64_t sequence_ = 0;
  std::map<Key, Task> queue_;
  std::map<TimerId, Key> index_;
};

}  // namespace pushrod::testing
