// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

namespace pushrod {

/// A point of the steady clock. Simulation counts its own from the same zero type.
using TimePoint = std::chrono::steady_clock::time_point;
/// The unit of configured limits.
using Duration = std::chrono::milliseconds;

/// Where "now" comes from. Thread-safe.
class Clock {
 public:
  Clock() = default;
  Clock(const Clock&) = delete;
  Clock& operator=(const Clock&) = delete;
  virtual ~Clock() = default;
  [[nodiscard]] virtual TimePoint now() const = 0;
};

/// The real steady clock. One instance serves a process.
class SteadyClock final : public Clock {
 public:
  [[nodiscard]] TimePoint now() const override { return std::chrono::steady_clock::now(); }
};

/// An absolute limit. Budgets nest by taking the earlier of two. A plain value.
class Deadline {
 public:
  /// Never passes. Only for waits that have another bound; configuration never yields it.
  static constexpr Deadline never() { return Deadline(TimePoint::max()); }

  static constexpr Deadline at(TimePoint when) { return Deadline(when); }

  static Deadline after(const Clock& clock, Duration limit) {
    return Deadline(clock.now() + limit);
  }

  [[nodiscard]] constexpr Deadline earliest(Deadline other) const {
    return other.when_ < when_ ? other : *this;
  }

  [[nodiscard]] bool passed(const Clock& clock) const { return clock.now() >= when_; }

  /// Time left, never negative; rounded up to a whole millisecond, so that zero means "passed".
  [[nodiscard]] Duration remaining(const Clock& clock) const {
    const TimePoint now = clock.now();
    if (now >= when_) {
      return Duration::zero();
    }
    constexpr Duration kLongest = std::chrono::hours(24 * 365);
    return when_ - now > kLongest ? kLongest : std::chrono::ceil<Duration>(when_ - now);
  }

  [[nodiscard]] constexpr TimePoint when() const { return when_; }

  [[nodiscard]] constexpr bool isNever() const { return when_ == TimePoint::max(); }

  constexpr auto operator<=>(const Deadline&) const = default;

 private:
  constexpr explicit Deadline(TimePoint when) : when_(when) {}

  TimePoint when_;
};

}  // namespace pushrod
