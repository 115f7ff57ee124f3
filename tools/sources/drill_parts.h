// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "tools/sources/drill_plan.h"
#include "tools/sources/plan_reader.h"

namespace pushrod::tools {

/// The plan's `tensors`, then those of `repeat`.
[[nodiscard]] std::vector<DrillTensor> readDrillTensors(const JsonNode& root, PlanReader& reader);

/// One of the plan's `pushes`, of a job of `ranks` and a manifest of `tensors`.
[[nodiscard]] DrillPush readDrillPush(const JsonNode& node,
                                      const std::string& path,
                                      int ranks,
                                      std::size_t tensors,
                                      PlanReader& reader);

}  // namespace pushrod::tools
