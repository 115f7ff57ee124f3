// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "orchestrator/fsm/push_state.h"

namespace pushrod::orchestrator {

/// What a line of a flight record tells.
enum class FlightKind : std::uint8_t {
  kStep,       ///< an event was fed to the push table
  kPlan,       ///< the pass's steps became known
  kHook,       ///< the trainer's observer of phases failed; the failure is this rank's
  kOperation,  ///< an operation of the trainer's thread ended with a failure, in its own words
  kRequest,    ///< an engine was called
  kReply,      ///< it answered, or the call ended otherwise
  kDropped,    ///< the push goes on without an engine
  kLink,       ///< a message on the rank link
};

inline constexpr std::size_t kFlightKindCount = 8;
[[nodiscard]] std::string_view flightKindName(FlightKind kind);

/// Longest text of one event.
inline constexpr std::size_t kMaxFlightText = 2048;
/// Most steps of a pass that a record tells; a pass with more cannot be replayed.
inline constexpr std::size_t kMaxFlightSteps = 4096;

/// One event of one rank. A plain value; members that a kind does not use keep their defaults.
struct FlightEvent {
  FlightKind kind = FlightKind::kStep;
  std::int64_t micros = 0;  ///< Unix time
  // Where the rank stood after it.
  Phase phase = Phase::kIdle;
  Stage stage = Stage::kNone;
  std::uint32_t attempt = 1;
  std::uint32_t voteStep = 0;
  std::uint64_t stepIndex = 0;
  std::uint64_t tensors = 0;
  bool draft = false;                     ///< it was at the draft model
  std::uint64_t begun = 0, returned = 0;  ///< gathers of this pass

  EventKind event = EventKind::kBegin;    ///< kStep
  Status status;                          ///< without notes
  Verdict verdict;                        ///< kStep on a verdict
  std::int64_t tensor = -1;               ///< index of the tensor that it is about
  std::vector<std::uint64_t> steps;       ///< kPlan
  std::vector<std::uint64_t> draftSteps;  ///< kPlan
  bool packs = false;                     ///< kPlan

  std::string who;         ///< engine
  std::string what;        ///< kStep: ids of the rows taken; the call, the operation, the message
  std::string text;        ///< kStep: what the table ordered; a request's body, a reply's text
  std::uint64_t size = 0;  ///< bytes of the whole body
  int http = 0;
  std::uint64_t declared = 0, actual = 0;  ///< bytes due to the engine, and written to it
  std::int64_t limit = 0;                  ///< kRequest: milliseconds
  int peer = -1;                           ///< kLink: the other rank
  bool sent = false;                       ///< kLink
};

/// `text` fit for one line of a record: at most `limit` bytes, bytes that are no UTF-8 and control
/// characters replaced by '?'.
[[nodiscard]] std::string flightText(std::string_view text, std::size_t limit = kMaxFlightText);
/// `status` without its notes, its texts fit for a record.
[[nodiscard]] Status flightStatus(const Status& status);
/// `body` of an init request without what only its receiver may know (P36). One that is no JSON
/// object is left out whole.
[[nodiscard]] std::string withoutSecrets(std::string_view body);

/// Brings `state` to where it stood after `event`. Kinds that say nothing about it change nothing.
void advance(PushState& state, const FlightEvent& event);

}  // namespace pushrod::orchestrator
