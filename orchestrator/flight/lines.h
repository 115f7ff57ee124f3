// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <pushrod/tensor.h>

#include "orchestrator/flight/event.h"

namespace pushrod::orchestrator {

// The lines of a flight record: one JSON object each, with its line end (docs/report.md).

inline constexpr int kFlightFormat = 1;

/// One push as the record's first line tells it.
struct FlightHeader {
  std::string job;
  std::uint64_t push = 0;
  std::string version, outcome, startedAt;
  int ranks = 1;
  int writer = 0;
  Status firstCause;
  std::vector<std::string> engines;
  std::map<int, std::string> missing;  ///< ranks without events, and why
  std::uint64_t lines = 0;             ///< that follow
};

[[nodiscard]] std::string headerLine(const FlightHeader& header);
/// The table's state before a rank's first event, and how many earlier events are not told.
[[nodiscard]] std::string stateLine(int rank, const PushState& state, std::uint64_t dropped);

/// What the tensors of a push are named by; either may be null.
struct FlightManifests {
  const Manifest* target = nullptr;
  const Manifest* draft = nullptr;
};

[[nodiscard]] std::string eventLine(int rank,
                                    const FlightEvent& event,
                                    const FlightManifests& manifests);

}  // namespace pushrod::orchestrator
