// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <pushrod/config.h>
#include <pushrod/result.h>

#include "tools/sources/drill_plan.h"

namespace pushrod::tools {

/// The configuration in file `path` as `rank` plays it in the plan, checked as if the file had been
/// written so. The failure names the place in the plan.
Result<Config> overriddenConfig(const std::string& path, const DrillPlan& plan, int rank);

/// Whether every rank's is sound; the failure holds all faults, one per line, `plan`'s name before
/// each.
Status checkOverrides(const std::string& path, const DrillPlan& plan, const std::string& planName);

}  // namespace pushrod::tools
