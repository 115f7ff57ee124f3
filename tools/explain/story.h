// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "tools/explain/record.h"

namespace pushrod::tools {

/// What a record tells, for people: the push, its culprit, the timeline of ranks and engines, where
/// each stood at the end, and whether the recorded states follow from the push table.
[[nodiscard]] std::string explainFlight(const FlightFile& file);

}  // namespace pushrod::tools
