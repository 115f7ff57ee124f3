// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <pushrod/agreement.h>

#include "orchestrator/fsm/push_state.h"

namespace pushrod::orchestrator {

/// Where one rank stands, as this one knows it.
struct RankStand {
  int rank = 0;
  VoteKey key;
  Stage stage = Stage::kNone;
  std::uint64_t begun = 0, returned = 0;  ///< gathers of this pass
  std::string tensor;                     ///< "3 name [2, 3]", of the gather in hand; empty: none
  Duration age{};                         ///< since it came to this place
  Duration still{};                       ///< since it last made progress
  Duration silence{};                     ///< since it was heard
  std::uint64_t kibPerSecond = 0;         ///< gathered of late
};

/// What one engine is asked for, on rank 0.
struct EngineWork {
  std::string name;
  std::string call;  ///< the last one
  bool out = false;  ///< it is not answered yet
  Duration age{};    ///< since it was sent
  Duration limit{};
  std::uint64_t declared = 0, actual = 0;  ///< bytes due to it, and written
  Duration still{};                        ///< since bytes were last written to it
};

/// An operation of the trainer's thread, or the drain of a stream.
struct OwnWait {
  std::string name;
  Duration age{};
  Duration limit{};  ///< zero: none of its own
};

/// All that a stall report is made of.
struct StallInput {
  std::string push;  ///< number and version
  Duration pushAge{};
  Duration pushLimit{};
  Duration agreement{};
  Duration progress{};
  RankStand own;
  std::vector<RankStand> others;
  std::vector<EngineWork> engines;
  std::optional<OwnWait> operation;
  std::optional<OwnWait> drain;
};

/// One wait: who waits for whom, for how long, and whether what is awaited moves.
struct StallWait {
  std::string id;  ///< the same as long as it is the same kind of wait
  std::string text;
  std::string awaited;  ///< "engine e0", "rank 3", "rank 2's weight source"
  Duration age{};
  Duration limit{};  ///< zero: none
  Duration still{};  ///< since what is awaited last moved

  /// Longer than half of its limit.
  [[nodiscard]] bool stalled() const { return limit > Duration::zero() && age * 2 > limit; }

  /// Nothing moved for a quarter of the limit: stuck; else slow.
  [[nodiscard]] bool stuck() const { return still * 4 > limit; }
};

struct StallReport {
  std::vector<StallWait> waits;

  [[nodiscard]] bool stalled() const;
};

/// Pure.
[[nodiscard]] StallReport makeStallReport(const StallInput& input);

/// For people: a line per rank and engine, at most `most` of each.
[[nodiscard]] std::vector<std::string> stallLines(const StallInput& input, std::size_t most);
/// The member `waiting` of /status, as JSON.
[[nodiscard]] std::string stallJson(const StallInput& input, const StallReport& report);

}  // namespace pushrod::orchestrator
