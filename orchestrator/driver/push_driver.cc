// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/driver/push_driver.h"

#include <algorithm>
#include <utility>

namespace pushrod::orchestrator {

namespace {

double secondsBetween(TimePoint from, TimePoint to) {
  return std::chrono::duration<double>(to - from).count();
}

}  // namespace

PushDriver::PushDriver(DriverParts parts, DriverPush push, Done done)
    : parts_(parts),
      push_(std::move(push)),
      done_(std::move(done)),
      runner_(parts.executor,
              Origin{parts.rank.rank, {}, Phase::kIdle, push_.epoch, 0},
              GoalRunner::Hooks{
                  [this](Goal, const Status& status) { onGoal(status); },
                  [this](const Status& status) {
                    feed(Event{EventKind::kEarlyReply, status, {}});
                  },
                  [this](std::size_t engine, Goal goal, const Call& call, Deadline limit) {
                    parts_.observer.onCall(engine, goal, call, limit);
                  },
                  [this](std::size_t engine, Goal goal, const Call& call, const Reply& reply) {
                    if (call.kind == CallKind::kPause && pauseFirst_ == TimePoint{}) {
                      pauseFirst_ = phaseEntered_;
                    }
                    if (call.kind == CallKind::kResume) {
                      resumeLast_ = parts_.executor.now();
                    }
                    countChunk(runner_.slots()[engine], call, reply);
                    parts_.observer.onReply(
                        engine, goal, call, reply, runner_.slots()[engine].ledger);
                  }}) {
  state_.leader = parts_.rank.rank == 0;
  state_.stopAtEnd = parts_.config.push.stop == Stop::kPass;
  runner_.slots() = std::move(push_.engines);
  engineBytes_.resize(runner_.slots().size(), 0);
  bytesBefore_ = engineBytes_;
  for (EngineSlot& slot : runner_.slots()) {
    slot.facts.withDraft = push_.draft;
  }
  runner_.setWave(static_cast<std::size_t>(parts_.config.push.wave));
  parts_.link.setListener(this);
}

PushDriver::~PushDriver() {
  parts_.link.setListener(nullptr);
  for (Executor::TimerId* timer : {&expiry_, &drain_, &gather_, &abort_, &lostVote_, &wordWait_}) {
    disarm(*timer);
  }
}

void PushDriver::start() {
  started_ = parts_.executor.now();
  startedAt_ = std::chrono::system_clock::now();
  phaseEntered_ = started_;
  const TimeoutsConfig& limits = parts_.config.timeouts;
  // The last part of the push's limit is kept for closing what is open.
  const Duration work = std::max(limits.push - limits.shutdown, limits.push / 2);
  workDeadline_ = Deadline::after(parts_.executor, work);
  hardDeadline_ = Deadline::after(parts_.executor, limits.push);
  expiry_ =
      parts_.executor.postAt(workDeadline_.when(), [this, alive = std::weak_ptr<int>(alive_)] {
        if (!alive.expired()) {
          expiry_ = 0;
          feed(Event{EventKind::kExpired,
                     mine(Status(Code::kDeadlineExceeded, "timeouts.push is about to pass")),
                     {}});
        }
      });
  feed(Event{EventKind::kBegin, Status(), {}});
}

void PushDriver::cancel(const Status& reason) {
  if (!cancelled_) {
    cancelled_ = true;
    cancelReason_ = reason;
    feed(Event{EventKind::kCancelled, mine(reason), {}});
  }
}

void PushDriver::onStop(int rank, const VoteKey& at, const Status& reason) {
  parts_.observer.onLink({LinkNews::Kind::kStop, false, rank, reason});
  // A stop of another push or attempt is about a pass that is over.
  if (at.epoch == push_.epoch && at.attempt == state_.attempt) {
    Origin origin;
    origin.rank = rank;
    feed(Event{EventKind::kPeerStop, reason.at(origin), {}});
  }
}

void PushDriver::onLost(int rank, const Status& reason) {
  parts_.observer.onLink({LinkNews::Kind::kLost, false, rank, reason});
  peerLost_ = true;
  rankZeroLost_ = rankZeroLost_ || rank == 0;
  Origin origin{rank, {}, state_.phase, push_.epoch, static_cast<int>(state_.attempt)};
  Status lost = Status(Code::kUnavailable,
                       "rank " + std::to_string(rank) + " is gone; restart the job",
                       Outcome::kUnknown)
                    .at(origin);
  lost.addNote(reason.message());
  if (!overslept_.ok()) {
    // The others left because this rank was silent.
    Status cause = overslept_;
    cause.merge(lost);
    lost = cause;
  }
  feed(Event{EventKind::kPeerLost, lost, {}});
  if (lostVote_ != 0 && !rankZeroWillTell()) {
    disarm(lostVote_);
    feed(Event{EventKind::kVoteFailed, lostVoteStatus_, {}});
  }
  if (rankZeroLost_) {
    endWordWait();
  }
}

void PushDriver::onOversleep(Duration silence) {
  runner_.fence(mine(Status(Code::kAborted, "this rank was stopped and contacts no engine")));
  overslept_ = mine(Status(Code::kUnavailable,
                           "this rank did not run for " + std::to_string(silence.count()) +
                               " ms; the others may have gone on without it"));
  parts_.observer.onLink({LinkNews::Kind::kOversleep, false, parts_.rank.rank, overslept_});
  cancel(overslept_);
}

VoteKey PushDriver::key() const {
  return VoteKey{push_.epoch, state_.attempt, state_.phase, state_.voteStep};
}

Status PushDriver::mine(const Status& status) const {
  return status.at(
      Origin{parts_.rank.rank, {}, state_.phase, push_.epoch, static_cast<int>(state_.attempt)});
}

void PushDriver::feed(const Event& event) {
  if (finished_) {
    return;
  }
  const Phase before = state_.phase;
  const bool failedBefore = state_.failed;
  const bool soundBefore = state_.local.ok();
  StepResult result = step(state_, event);
  state_ = result.state;
  parts_.observer.onStep(event, result);
  if (event.kind == EventKind::kVoteFailed && before == Phase::kVerdict && !failedBefore) {
    verdictUnknown_ = true;
  }
  if (!result.fault.ok()) {
    // A hole in the table: end the push as failed, with what is known, rather than go on.
    state_.first.merge(mine(result.fault));
    state_.failed = true;
    state_.phase = Phase::kFailed;
    finish();
    return;
  }
  if (state_.phase != before) {
    enterPhase(before);
  } else if (event.kind == EventKind::kVerdict && state_.phase == Phase::kStream) {
    releaseChunks();
    if (state_.stage != Stage::kCopyShare) {
      copies_.clear();
    }
  }
  haltOthers(event, soundBefore);
  performAll(result.actions);
  if (hookBusy_ && (event.kind == EventKind::kPeerStop || event.kind == EventKind::kPeerLost ||
                    event.kind == EventKind::kExpired || event.kind == EventKind::kCancelled)) {
    abortSource();
  }
}

void PushDriver::enterPhase(Phase from) {
  const TimePoint now = parts_.executor.now();
  const double seconds = secondsBetween(phaseEntered_, now);
  if (from != Phase::kIdle) {
    phaseSeconds_[std::string(phaseName(from))] += seconds;
  }
  phaseEntered_ = now;
  disarm(drain_);
  if (state_.phase == Phase::kRecover) {
    for (EngineSlot& slot : runner_.slots()) {
      slot.ledger = slot.ledger.dropped ? slot.ledger : slot.ledger.forNextAttempt();
    }
    planeFailure_ = Status();
    halt_ = Status();
    haltHeard_ = false;
    if (cancelled_ && state_.pending.ok()) {
      // It came when the first attempt had failed already, and is of the whole push.
      tell(Event{EventKind::kCancelled, mine(cancelReason_), {}});
    }
  }
  if (state_.phase == Phase::kStream) {
    beginPass();
  }
  if ((state_.phase == Phase::kFailing || state_.phase == Phase::kFailed) &&
      failedIn_ == Phase::kIdle) {
    failedIn_ = from;
  }
  if (state_.phase == Phase::kStart) {
    beginSession();
  }
  hookDue_ = push_.onPhase != nullptr;
  parts_.link.setPosition(key());
  parts_.observer.onPhase(from, seconds, state_.phase, state_.attempt);
}

CallerRequest PushDriver::requestOf(ActionKind kind) const {
  CallerRequest request;
  request.kind = kind;
  request.key = key();
  request.manifest = passManifest();
  request.draft = state_.draft;
  request.deadline = capped(phaseLimit());
  request.hashes = kind == ActionKind::kSourceBegin && mustHash();
  return request;
}

void PushDriver::perform(const Action& action) {
  CallerRequest request = requestOf(action.kind);
  switch (action.kind) {
    case ActionKind::kMeet:
    case ActionKind::kPlanePut:
    case ActionKind::kPlaneFlush:
      call(std::move(request));
      return;
    case ActionKind::kSourceManifest:
    case ActionKind::kSourceBegin:
    case ActionKind::kSourceNext:
    case ActionKind::kSourceRecover:
      callSource(std::move(request));
      return;
    case ActionKind::kVote:
      startVote();
      return;
    case ActionKind::kShare:
      startShare();
      return;
    case ActionKind::kPrepare:
      startPrepare(Status());
      return;
    case ActionKind::kStartGoal:
      startGoal();
      return;
    case ActionKind::kCancelGoal:
      runner_.cancel(action.status);
      return;
    case ActionKind::kChannelOpen:
      openChannel();
      return;
    case ActionKind::kChannelAbort:
      abortChannel(action.status);
      return;
    case ActionKind::kSourceAbort:
      abortSource();
      return;
    case ActionKind::kPlaneInterrupt:
      parts_.caller.interruptPlane(action.status.prefixed("given up"));
      return;
    case ActionKind::kVoteInterrupt:
      parts_.caller.interruptVote(action.status);
      return;
    case ActionKind::kStopPeers:
      stopPeers(mine(action.status));
      return;
    case ActionKind::kArmDrain:
      armDrain();
      return;
    case ActionKind::kFinish:
      finish();
      return;
  }
}

void PushDriver::stopPeers(const Status& reason) {
  parts_.observer.onLink({LinkNews::Kind::kStop, true, -1, reason});
  parts_.link.stop(key(), reason);
}

void PushDriver::startGoal() {
  if (!state_.leader) {
    if (state_.phase == Phase::kFailing && state_.agreementDead) {
      awaitWord();
      return;
    }
    parts_.executor.post([this, alive = std::weak_ptr<int>(alive_)] {
      if (!alive.expired()) {
        feed(Event{EventKind::kGoalReached, Status(), {}});
      }
    });
    return;
  }
  if (state_.phase == Phase::kFailing && state_.agreementDead) {
    tellWord();
  }
  Duration limit = phaseLimit();
  if (state_.phase == Phase::kConnect) {
    const auto& slots = runner_.slots();
    const bool allSeen = std::all_of(slots.begin(), slots.end(), [](const EngineSlot& slot) {
      // One that was left out is not waited for as one that starts may be.
      return slot.ledger.identity != nullptr || slot.ledger.quarantined;
    });
    limit = allSeen ? parts_.config.timeouts.connect : parts_.config.timeouts.startup;
  } else if (state_.phase == Phase::kStream) {
    limit = parts_.config.timeouts.request;
    expectChunks();
  }
  runner_.start(goalOf(state_.phase), capped(limit), state_.attempt, state_.phase);
}

void PushDriver::onGoal(const Status& status) {
  Status cause = status;
  bool on = cause.ok() || goOnWithout(cause);
  if (on && state_.phase == Phase::kVerify) {
    cause = compareReplicas();
    on = cause.ok() || goOnWithout(cause);
  }
  if (on) {
    feed(Event{EventKind::kGoalReached, Status(), {}});
    return;
  }
  if (state_.phase == Phase::kStream) {
    preferEngineCause();
  }
  feed(Event{EventKind::kGoalFailed, cause, {}});
}

/// A connection that an engine closed is the symptom of what the same engine then answers: the
/// answer is the first cause, the connection a note on it.
void PushDriver::preferEngineCause() {
  // Notes may have come to it meanwhile: other engines answer in the same moment.
  if (planeFailure_.ok() || state_.local.message() != planeFailure_.message() ||
      state_.local.origin() != planeFailure_.origin()) {
    return;
  }
  for (const EngineSlot& slot : runner_.slots()) {
    const Status& answer = slot.ledger.error;
    const bool spoke = answer.code() == Code::kUnavailable || answer.code() == Code::kInternal ||
                       answer.code() == Code::kFailedPrecondition ||
                       answer.code() == Code::kInvalidArgument ||
                       answer.code() == Code::kDataMismatch;
    if (!answer.ok() && spoke && slot.client->name() == planeFailure_.origin().engine) {
      Status cause = answer;
      cause.merge(planeFailure_);
      for (const std::string& note : state_.local.notes()) {
        if (note != answer.toString()) {
          cause.addNote(note);
        }
      }
      state_.local = cause;
      return;
    }
  }
}

}  // namespace pushrod::orchestrator
