// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <pushrod/result.h>

#include "orchestrator/flight/lines.h"

namespace pushrod::tools {

/// A record is refused beyond these.
inline constexpr std::size_t kMaxFlightFile = std::size_t{64} << 20;
inline constexpr std::size_t kMaxFlightLine = std::size_t{256} << 10;
inline constexpr std::size_t kMaxFlightLines = std::size_t{1} << 18;

/// One event as it was read.
struct RecordedEvent {
  int rank = 0;
  orchestrator::FlightEvent event;
  std::string tensor;  ///< "3 name [2, 3]"; empty: it is about none
};

/// What one rank left.
struct RecordedRank {
  orchestrator::PushState base;  ///< before its first event
  std::uint64_t dropped = 0;     ///< events before that
  std::vector<RecordedEvent> events;
};

/// A flight record.
struct FlightFile {
  orchestrator::FlightHeader header;
  std::map<int, RecordedRank> ranks;
};

/// Reads a record strictly: every key, type and name must be one that a record of this format has,
/// and all lines that its first one tells of must be there. The failure (invalidArgument) begins
/// with `name` and the line.
[[nodiscard]] Result<FlightFile> parseFlight(std::string_view text, const std::string& name);

}  // namespace pushrod::tools
