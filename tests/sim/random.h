// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include <pushrod/deadline.h>

namespace pushrod::sim {

/// The simulation's own random numbers (SplitMix64): the same with every compiler and library.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    state_ += 0x9E3779B97F4A7C15U;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27U)) * 0x94D049BB133111EBU;
    return z ^ (z >> 31U);
  }

  /// From 0 to `count` - 1.
  std::uint64_t below(std::uint64_t count) { return next() % count; }

  /// From `low` to `high`, both included.
  int between(int low, int high) {
    return low + static_cast<int>(below(static_cast<std::uint64_t>(high - low) + 1));
  }

  bool chance(unsigned percent) { return below(100) < percent; }

 private:
  std::uint64_t state_;
};

/// How long things take in virtual time: as usual, so that the k-th call of a sweep is always the
/// same one, or drawn, so that things happen in another order in every run.
class Pace {
 public:
  explicit Pace(std::optional<std::uint64_t> seed)
      : random_(seed.value_or(0)), drawn_(seed.has_value()) {}

  Duration of(Duration usual, int slowness = 1) {
    const auto most =
        static_cast<std::uint64_t>(usual.count()) * 3 * static_cast<std::uint64_t>(slowness);
    return drawn_ ? Duration(static_cast<Duration::rep>(random_.below(most + 1)))
                  : usual * slowness;
  }

  /// The next number: equal after two runs that drew the same.
  std::uint64_t lastDraw() { return random_.next(); }

 private:
  Random random_;
  bool drawn_;
};

}  // namespace pushrod::sim
