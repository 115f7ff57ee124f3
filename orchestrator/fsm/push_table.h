// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "orchestrator/fsm/push_state.h"

namespace pushrod::orchestrator {

using Actions = std::vector<Action>;

/// A named condition of a row; null function: always.
struct Guard {
  std::string_view name;
  bool (*holds)(const PushState&, const Event&) = nullptr;
};

/// A named effect of a row: changes the state and may add actions.
struct Effect {
  std::string_view name;
  void (*apply)(PushState&, const Event&, Actions&) = nullptr;
};

/// A set of phases, one bit each.
using PhaseSet = std::uint32_t;

[[nodiscard]] constexpr PhaseSet only(Phase phase) {
  return PhaseSet{1} << static_cast<unsigned>(phase);
}

/// Row targets that are not a fixed phase or stage.
inline constexpr Phase kSamePhase = Phase::kIdle;
inline constexpr Stage kSameStage = Stage::kNone;
/// Matches a row's stage whatever the state's is.
inline constexpr Stage kAnyStage = Stage::kNone;

/// One transition. The first row that matches phase, stage, event and guard is taken.
struct Row {
  std::string_view id;
  PhaseSet from = 0;
  Stage stage = kAnyStage;
  EventKind event = EventKind::kBegin;
  Guard guard;
  Phase to = kSamePhase;
  Stage toStage = kSameStage;
  std::array<Effect, 5> effects{};
};

[[nodiscard]] std::span<const Row> pushTable();

struct StepResult {
  PushState state;
  Actions actions;
  std::vector<std::string_view> rows;  ///< ids taken; more than one when the table raised an event
  Status fault;                        ///< internal, when no row matches
};

/// The push table applied once: pure and total. A pair that no row lists is a fault, never ignored
/// silently; pairs that may rightly arrive late have rows of their own.
[[nodiscard]] StepResult step(PushState state, const Event& event);

/// The text of docs/state-machine.md.
[[nodiscard]] std::string describeTable();

}  // namespace pushrod::orchestrator
