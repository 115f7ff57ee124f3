// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pushrod/status.h>

#include "tools/push_options.h"
#include "tools/sources/drill_plan.h"

namespace pushrod::tools {

/// Whether each version that these options ask for, `plan`'s in a drill, could be pushed.
[[nodiscard]] Status checkVersions(const PushOptions& options, const DrillPlan& plan);

}  // namespace pushrod::tools
