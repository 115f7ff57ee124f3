// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tests/sim/world.h"

namespace pushrod::sim {

/// Every so many random runs are made twice: the same plan, the same trace, the same next draw.
inline constexpr std::uint64_t kTwiceEvery = 20;

/// What many seeds came to.
struct Campaign {
  std::uint64_t runs = 0;
  std::uint64_t failed = 0;
  std::vector<std::string> failures;  ///< each with its plan and the command that repeats it
  std::set<std::string_view> rows;
};

using Runner = std::function<Outcome(const FaultPlan&)>;

/// Runs the seeds from `first` on, every `stride`-th, up to and including `last`.
[[nodiscard]] Campaign runSeeds(std::uint64_t first,
                                std::uint64_t last,
                                std::uint64_t stride,
                                const Runner& run);

/// The smallest plan that still fails: faults are left out one by one, then engines and ranks.
[[nodiscard]] FaultPlan shrink(FaultPlan plan, const Runner& run);

}  // namespace pushrod::sim
