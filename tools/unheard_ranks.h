// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include <pushrod/config.h>
#include <pushrod/report.h>

#include "tools/exit_code.h"

namespace pushrod::tools {

/// What the ranks themselves cannot tell: who died and who had to be ended. Each a sentence with a
/// space before it.
[[nodiscard]] std::string deathsText(const std::vector<ChildEnd>& ends);

/// In place of the ranks' own word where none left a result in their supervisor's `folder`.
[[nodiscard]] std::string unheardText(const std::vector<ChildEnd>& ends, const std::string& folder);

/// The supervisor's own report of a push of which no rank told: `why`, and engines whose state
/// nobody knows.
[[nodiscard]] PushReport unheardReport(const std::string& version,
                                       const Config& config,
                                       int ranks,
                                       std::chrono::system_clock::time_point started,
                                       const std::string& why);

}  // namespace pushrod::tools
