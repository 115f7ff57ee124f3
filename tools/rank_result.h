// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <pushrod/report.h>
#include <pushrod/result.h>

namespace pushrod::tools {

/// What one push came to on this rank.
struct RankResult {
  int exit = 0;
  std::string outcome;  ///< the report's, or "refused", or "unknown" when there is no report
  std::string report;   ///< JSON, empty: none
  std::string summary;  ///< one paragraph
  bool rankZeroLost = false;
};

/// Of a push that did not begin.
[[nodiscard]] RankResult resultOfRefusal(const Status& why, const std::string& version, int ranks);
[[nodiscard]] RankResult resultOf(const Result<PushReport>& pushed);

}  // namespace pushrod::tools
