// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "tools/explain/record.h"

namespace pushrod::tools {

/// How one rank's record does when its events are fed to the push table again.
struct Replay {
  std::uint64_t steps = 0;  ///< that agree
  std::string fault;        ///< the first that does not, and how; empty: all do
};

/// The recorded events of each rank through the push table of this build: whether the recorded
/// rows and places follow.
[[nodiscard]] std::map<int, Replay> replayAll(const FlightFile& file);

}  // namespace pushrod::tools
