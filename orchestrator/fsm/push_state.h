// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include <pushrod/agreement.h>
#include <pushrod/status.h>

#include "orchestrator/fsm/goal.h"

namespace pushrod::orchestrator {

/// What a rank waits for inside its phase.
enum class Stage : std::uint8_t {
  kNone,           ///< nothing: idle, done, failed
  kMeet,           ///< check: ranks meet
  kConfigVote,     ///< check: vote on the configuration's digest
  kConfigShare,    ///< check: rank 0's configuration, after a difference
  kManifest,       ///< check: the source's manifest
  kManifestVote,   ///< check: vote on the manifest's digest
  kManifestShare,  ///< check: rank 0's manifest, after a difference
  kWork,           ///< a goal, a caller operation, or both
  kVote,           ///< the vote that ends the phase (stream: the step)
  kBegin,          ///< stream: the pass begins
  kNext,           ///< stream: a tensor is gathered
  kPut,            ///< stream: a tensor is sent
  kTensor,         ///< stream: a tensor is done with; left at once
  kHold,           ///< stream: a failed step waits for the engines' answers before its vote
  kEnd,            ///< stream: the source's end is awaited
  kFlush,          ///< stream: the last bytes leave
  kTail,           ///< stream: the pass is over on this rank; left at once
  kSettle,         ///< stream: the engines' answers are awaited
  kCopyShare,      ///< stream: rank 0's digests of a step's tensors, after a difference
  kMendVote,       ///< recover: did a gather fail anywhere
};

inline constexpr std::size_t kStageCount = 20;
[[nodiscard]] std::string_view stageName(Stage stage);

enum class EventKind : std::uint8_t {
  kBegin,        ///< push() was called
  kLocalDone,    ///< the caller operation ended, with a status
  kVerdict,      ///< a vote ended
  kVoteFailed,   ///< a vote or a share gave no result: agreement is dead
  kGoalReached,  ///< every engine is where the phase wants it (followers: at once)
  kGoalFailed,   ///< some engine is not, and every engine's call has settled
  kSourceItem,   ///< a tensor was gathered and checked, with the check's status
  kSourceEnd,    ///< the source ended its pass, with a status when that is too early
  kSourceFailed,
  kPlaneDone,
  kPlaneFailed,
  kEarlyReply,  ///< an engine's update failed while the pass runs
  kPeerStop,    ///< another rank failed inside this collective
  kPeerLost,    ///< another rank is gone
  kExpired,     ///< the push's own limit
  kDrained,     ///< timeouts.drain after one side of the stream ended
  kCancelled,   ///< the caller or a signal
  kTensorDone,  ///< internal: raised by the table itself
  kTailDone,    ///< internal
};

inline constexpr std::size_t kEventCount = 19;
[[nodiscard]] std::string_view eventName(EventKind kind);

struct Event {
  EventKind kind = EventKind::kBegin;
  Status status;
  Verdict verdict;  ///< kVerdict
};

enum class ActionKind : std::uint8_t {
  kMeet,
  kVote,
  kShare,
  kSourceManifest,
  kPrepare,  ///< plan shared, bodies encoded, first buffers
  kStartGoal,
  kCancelGoal,
  kChannelOpen,
  kChannelAbort,
  kSourceBegin,
  kSourceNext,
  kSourceAbort,
  kSourceRecover,
  kPlanePut,
  kPlaneFlush,
  kPlaneInterrupt,
  kVoteInterrupt,
  kStopPeers,
  kArmDrain,
  kFinish,
};

inline constexpr std::size_t kActionCount = 20;
[[nodiscard]] std::string_view actionName(ActionKind kind);

struct Action {
  ActionKind kind = ActionKind::kVote;
  Status status;  ///< reason of the interrupting ones
};

/// Everything the push table knows, a plain value. The driver keeps the rest (ledgers, bodies,
/// views).
struct PushState {
  Phase phase = Phase::kIdle;
  Stage stage = Stage::kNone;
  bool leader = false;  ///< rank 0: talks to the engines and sends
  bool packs = false;   ///< another rank that sends: it packs its host's chunks
  std::uint32_t attempt = 1;
  std::uint32_t voteStep = 0;  ///< collectives so far in this phase and attempt
  bool goalBusy = false;
  bool callerBusy = false;

  std::vector<std::uint64_t> steps;  ///< tensors after which a step's vote stands; last = count
  std::vector<std::uint64_t> draftSteps;  ///< the same of the draft model's pass; empty: none
  bool draft = false;                     ///< at the draft model, after the target's finish
  std::size_t stepIndex = 0;
  std::uint64_t tensors = 0;  ///< gathered in this pass

  bool stopAtEnd = false;     ///< push.stop: pass
  bool passingOn = false;     ///< a failed pass goes on to the source's end, sending nothing
  bool stopPass = false;      ///< no further gather in this pass
  bool peerStopped = false;   ///< ... because another rank said so
  bool gatherFailed = false;  ///< a gather of this pass failed or was aborted here
  bool agreementDead = false;
  bool failed = false;  ///< the push will not succeed
  Status local;         ///< this rank's failure since the last vote
  Status pending;       ///< trouble heard while a ballot was already cast; part of the next one
  Status lost;   ///< the first rank heard to be gone: what broke the votes and gathers after it
  Status first;  ///< the push's first cause, once agreed (or once agreement died)

  /// Of the pass at hand.
  [[nodiscard]] const std::vector<std::uint64_t>& passSteps() const {
    return draft ? draftSteps : steps;
  }

  /// Whether the draft model's session is still to come in this attempt.
  [[nodiscard]] bool draftComes() const { return !draft && !draftSteps.empty(); }

  /// Where the collectives of the phase at hand begin to count: one of the draft's session has the
  /// name of one of the target's.
  [[nodiscard]] std::uint32_t firstVoteStep() const {
    const bool session = phase >= Phase::kStart && phase <= Phase::kFinish;
    return draft && session ? VoteKey::kDraftStep : 0;
  }
};

}  // namespace pushrod::orchestrator
