// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include <pushrod/config.h>
#include <pushrod/tensor.h>

#include "tests/sim/fault_plan.h"

namespace pushrod::sim {

/// What every push of the simulation sends.
[[nodiscard]] std::shared_ptr<const Manifest> theManifest(const FaultPlan& plan);
/// Its draft model; null: it carries none.
[[nodiscard]] std::shared_ptr<const Manifest> theDraft(const FaultPlan& plan);
/// What a rank declares that is not like the others.
[[nodiscard]] std::shared_ptr<const Manifest> otherManifest();
[[nodiscard]] Config theConfig(const FaultPlan& plan);

}  // namespace pushrod::sim
