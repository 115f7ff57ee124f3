// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <pushrod/config.h>
#include <pushrod/result.h>

namespace pushrod::tools {

enum class EngineOrder { kCloseSession, kPause, kResume, kVersion, kChecksums };

struct EngineLine {
  std::string text;     ///< "rollout-0: version 7"
  bool failed = false;  ///< the order was not carried out there
};

/// Carries the order out on every configured engine, or on the one called `only` when that is not
/// empty, and says in one line each what became of it. `force`: resume whatever the version.
/// Blocks, each wait bounded by the configuration's timeouts. The failure, before any engine was
/// contacted, says what is wrong with the configuration or with `only`.
Result<std::vector<EngineLine>> orderEngines(Config config,
                                             EngineOrder order,
                                             const std::string& only,
                                             bool force);

/// What resume is about, apart from the engines: for each version (empty: not known) why that
/// engine must not be resumed, empty where it may. The version that more engines report than any
/// other counts as the others'.
[[nodiscard]] std::vector<std::string> versionObjections(const std::vector<std::string>& versions);

}  // namespace pushrod::tools
