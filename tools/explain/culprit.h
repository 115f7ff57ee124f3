// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "tools/explain/record.h"

namespace pushrod::tools {

/// Who made a push fail, or be resent.
struct Culprit {
  std::string who;  ///< "engine e1", "rank 2", "the weight source of rank 2", "a stop order"
  std::string why;  ///< one sentence
  std::vector<std::string> evidence;
};

[[nodiscard]] Culprit findCulprit(const FlightFile& file);

}  // namespace pushrod::tools
