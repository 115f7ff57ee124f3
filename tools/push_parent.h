// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "tools/push_options.h"

namespace pushrod::tools {

/// `push --ranks N`: starts N ranks of this program, waits for them, and speaks for all: one
/// summary, the report of the lowest rank that left one, one exit code.
int runPushParent(const PushOptions& options);

/// The command line of one of those ranks.
[[nodiscard]] std::vector<std::string> rankCommand(const PushOptions& options,
                                                   const std::string& folder,
                                                   int rank);

}  // namespace pushrod::tools
