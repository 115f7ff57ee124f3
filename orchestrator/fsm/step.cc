// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <optional>

#include "orchestrator/fsm/push_table.h"
#include "orchestrator/fsm/rules.h"

namespace pushrod::orchestrator {

std::string_view stageName(Stage stage) {
  constexpr std::array<std::string_view, kStageCount> kNames = {
      "none",           "meet",     "config vote", "config share", "manifest", "manifest vote",
      "manifest share", "work",     "vote",        "begin",        "next",     "put",
      "tensor",         "hold",     "end",         "flush",        "tail",     "settle",
      "copy share",     "mend vote"};
  return kNames.at(static_cast<std::size_t>(stage));
}

std::string_view eventName(EventKind kind) {
  constexpr std::array<std::string_view, kEventCount> kNames = {"Begin",
                                                                "LocalDone",
                                                                "Verdict",
                                                                "VoteFailed",
                                                                "GoalReached",
                                                                "GoalFailed",
                                                                "SourceItem",
                                                                "SourceEnd",
                                                                "SourceFailed",
                                                                "PlaneDone",
                                                                "PlaneFailed",
                                                                "EarlyReply",
                                                                "PeerStop",
                                                                "PeerLost",
                                                                "Expired",
                                                                "Drained",
                                                                "Cancelled",
                                                                "TensorDone",
                                                                "TailDone"};
  return kNames.at(static_cast<std::size_t>(kind));
}

std::string_view actionName(ActionKind kind) {
  constexpr std::array<std::string_view, kActionCount> kNames = {
      "Meet",           "Vote",          "Share",         "SourceManifest", "Prepare",
      "StartGoal",      "CancelGoal",    "ChannelOpen",   "ChannelAbort",   "SourceBegin",
      "SourceNext",     "SourceAbort",   "SourceRecover", "PlanePut",       "PlaneFlush",
      "PlaneInterrupt", "VoteInterrupt", "StopPeers",     "ArmDrain",       "Finish"};
  return kNames.at(static_cast<std::size_t>(kind));
}

namespace {

/// Completions free what they complete before guards look.
void settle(PushState& state, EventKind kind) {
  switch (kind) {
    case EventKind::kLocalDone:
    case EventKind::kVerdict:
    case EventKind::kVoteFailed:
    case EventKind::kSourceItem:
    case EventKind::kSourceEnd:
    case EventKind::kSourceFailed:
    case EventKind::kPlaneDone:
    case EventKind::kPlaneFailed:
      state.callerBusy = false;
      return;
    case EventKind::kGoalReached:
    case EventKind::kGoalFailed:
      state.goalBusy = false;
      return;
    case EventKind::kBegin:
    case EventKind::kEarlyReply:
    case EventKind::kPeerStop:
    case EventKind::kPeerLost:
    case EventKind::kExpired:
    case EventKind::kDrained:
    case EventKind::kCancelled:
    case EventKind::kTensorDone:
    case EventKind::kTailDone:
      return;
  }
}

const Row* findRow(const PushState& state, const Event& event) {
  for (const Row& row : pushTable()) {
    if ((row.from & only(state.phase)) != 0 && row.event == event.kind &&
        (row.stage == kAnyStage || row.stage == state.stage) &&
        (row.guard.holds == nullptr || row.guard.holds(state, event))) {
      return &row;
    }
  }
  return nullptr;
}

/// The event that a row raises itself, if any.
std::optional<EventKind> raised(const Row& row) {
  for (const Effect& effect : row.effects) {
    if (effect.apply != nullptr && effect.apply == effect::kTensorDone.apply) {
      return EventKind::kTensorDone;
    }
    if (effect.apply != nullptr && effect.apply == effect::kTailDone.apply) {
      return EventKind::kTailDone;
    }
  }
  return std::nullopt;
}

void take(const Row& row, const Event& event, StepResult& result) {
  PushState& state = result.state;
  if (row.to != kSamePhase) {
    const bool entered = row.to != state.phase;
    state.phase = row.to;
    state.voteStep = entered ? state.firstVoteStep() : state.voteStep;
    state.stage = row.toStage;
  } else if (row.toStage != kSameStage) {
    state.stage = row.toStage;
  }
  for (const Effect& effect : row.effects) {
    if (effect.apply != nullptr) {
      effect.apply(state, event, result.actions);
    }
  }
  result.rows.push_back(row.id);
}

}  // namespace

StepResult step(PushState state, const Event& event) {
  StepResult result{std::move(state), {}, {}, Status()};
  Event current = event;
  for (;;) {
    settle(result.state, current.kind);
    const Row* row = findRow(result.state, current);
    if (row == nullptr) {
      result.fault =
          Status(Code::kInternal,
                 "the push table has no row for " + std::string(eventName(current.kind)) + " in " +
                     std::string(phaseName(result.state.phase)) + ", " +
                     std::string(stageName(result.state.stage)));
      return result;
    }
    take(*row, current, result);
    const std::optional<EventKind> next = raised(*row);
    if (!next) {
      return result;
    }
    current = Event{*next, Status(), {}};
  }
}

}  // namespace pushrod::orchestrator
