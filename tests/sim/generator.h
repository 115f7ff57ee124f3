// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "tests/sim/fault_plan.h"

namespace pushrod::sim {

/// A world, its configuration and up to six faults, all drawn from `seed`.
[[nodiscard]] FaultPlan randomPlan(std::uint64_t seed);

/// The same plan with only the faults that are listed.
[[nodiscard]] FaultPlan keepOnly(const FaultPlan& plan, const std::vector<std::size_t>& faults);

/// The same plan in a smaller world, or a larger one; faults of places that are not there any more
/// fall away.
[[nodiscard]] FaultPlan shrunkTo(const FaultPlan& plan, int ranks, int engines);

}  // namespace pushrod::sim
