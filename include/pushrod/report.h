// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <pushrod/status.h>

namespace pushrod {

enum class PushOutcome : std::uint8_t { kDone, kRecovered, kFailed, kRefused };
[[nodiscard]] std::string_view pushOutcomeName(PushOutcome outcome);

/// The state of one engine at the end of a push.
struct EngineReport {
  std::string name, url;
  std::string outcome;                 ///< current | unproved | old | mixed | unknown | lost
  std::optional<std::string> version;  ///< as last read
  std::optional<bool> paused;
  std::string session = "unknown";     ///< open | closed | unknown
  std::optional<std::string> content;  ///< proved | equal | not_comparable
  int replyLag = 0;
  std::uint64_t bytes = 0;  ///< payload written to it in the last attempt, all workers
  std::string error, remedy;
};

/// The result of one push; the JSON of docs/report.md.
struct PushReport {
  std::string version;
  PushOutcome outcome = PushOutcome::kFailed;
  int attempts = 0;
  bool resent = false;
  std::string startedAt;  ///< UTC, ISO 8601
  double durationSeconds = 0;
  double pausedSeconds = 0;
  std::uint64_t bytes = 0;  ///< one copy of the manifest
  std::uint64_t tensors = 0;
  int ranks = 1;
  std::vector<std::string> droppedEngines;
  Status firstCause;  ///< ok: none
  std::vector<std::string> notes;
  std::map<std::string, double> phases;  ///< seconds per phase, summed over attempts
  std::vector<EngineReport> engines;     ///< rank 0 only
  std::uint64_t casts = 0;

  /// One JSON object.
  [[nodiscard]] std::string toJson() const;
  /// One paragraph for people: what failed, where, why, each engine's state, what to do.
  [[nodiscard]] std::string summary() const;
};

}  // namespace pushrod
