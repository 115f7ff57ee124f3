// SPDX-License-Identifier: Apache-2.0
#include "tools/explain/replay.h"

#include <utility>

#include "orchestrator/fsm/push_table.h"

namespace pushrod::tools {

namespace {

using orchestrator::FlightEvent;
using orchestrator::PushState;

struct Place {
  std::string rows;
  Phase phase;
  orchestrator::Stage stage;
  std::uint32_t attempt;
  std::uint32_t step;
  bool draft;
  std::uint64_t stepIndex;
  std::uint64_t tensors;

  bool operator==(const Place&) const = default;

  [[nodiscard]] std::string text() const {
    return std::string(phaseName(phase)) + " / " + std::string(stageName(stage)) + ", attempt " +
           std::to_string(attempt) + ", step " + std::to_string(step % VoteKey::kDraftStep) +
           (draft ? " (draft), " : ", ") + std::to_string(tensors) + " tensors, by " +
           (rows.empty() ? "no row" : rows);
  }
};

Place recorded(const FlightEvent& event) {
  return {event.what,
          event.phase,
          event.stage,
          event.attempt,
          event.voteStep,
          event.draft,
          event.stepIndex,
          event.tensors};
}

/// Feeds one step and tells where the table leads.
Place follow(PushState& state, const FlightEvent& event) {
  orchestrator::StepResult result = orchestrator::step(
      std::move(state), orchestrator::Event{event.event, event.status, event.verdict});
  std::string rows;
  for (const std::string_view row : result.rows) {
    rows += (rows.empty() ? "" : ",") + std::string(row);
  }
  state = std::move(result.state);
  return {rows,
          state.phase,
          state.stage,
          state.attempt,
          state.voteStep,
          state.draft,
          state.stepIndex,
          state.tensors};
}

Replay replay(const RecordedRank& rank) {
  Replay result;
  PushState state = rank.base;
  for (const RecordedEvent& entry : rank.events) {
    const FlightEvent& event = entry.event;
    if (event.kind != orchestrator::FlightKind::kStep) {
      orchestrator::advance(state, event);
      continue;
    }
    const Place leads = follow(state, event);
    const Place told = recorded(event);
    if (!(leads == told)) {
      result.fault = "step " + std::to_string(result.steps + 1) + " on " +
                     std::string(eventName(event.event)) + ": the record says " + told.text() +
                     "; the table leads to " + leads.text();
      return result;
    }
    ++result.steps;
  }
  return result;
}

}  // namespace

std::map<int, Replay> replayAll(const FlightFile& file) {
  std::map<int, Replay> all;
  for (const auto& [rank, record] : file.ranks) {
    all[rank] = replay(record);
  }
  return all;
}

}  // namespace pushrod::tools
