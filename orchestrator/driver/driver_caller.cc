// SPDX-License-Identifier: Apache-2.0
// The trainer thread's operations: what is asked of it and which events its answers become.
#include <algorithm>
#include <utility>

#include "common/hash.h"
#include "orchestrator/driver/push_driver.h"
#include "orchestrator/fsm/decide.h"

namespace pushrod::orchestrator {

namespace {

/// A vote's first failure is an engine's when rank 0 names one; only rank 0 speaks of engines.
Ruling decideVote(DecideInput input, const Status& first) {
  input.enginesAlone = !first.origin().engine.empty();
  return decide(input, first);
}

/// How long a lost vote waits for the link to say which rank is gone.
constexpr Duration kLostVoteGrace = std::chrono::seconds(1);
/// How often a gather that must end is aborted.
constexpr Duration kAbortPeriod = std::chrono::milliseconds(500);

}  // namespace

void PushDriver::call(CallerRequest request) {
  const ActionKind kind = request.kind;
  const Stage stage = state_.stage;
  const bool source = kind == ActionKind::kSourceManifest || kind == ActionKind::kSourceBegin ||
                      kind == ActionKind::kSourceNext || kind == ActionKind::kSourceRecover;
  parts_.observer.onOperation(
      kind, source ? parts_.config.timeouts.gather : request.deadline.remaining(parts_.executor));
  parts_.caller.perform(
      std::move(request),
      [this, kind, stage, alive = std::weak_ptr<int>(alive_)](CallerResult result) {
        if (!alive.expired() && !finished_) {
          onCaller(kind, stage, std::move(result));
        }
      });
}

void PushDriver::callSource(CallerRequest request) {
  gatherExpired_ = Status();
  const TimePoint when = parts_.executor.now() + parts_.config.timeouts.gather;
  gather_ = parts_.executor.postAt(when, [this, alive = std::weak_ptr<int>(alive_)] {
    if (alive.expired()) {
      return;
    }
    gather_ = 0;
    gatherExpired_ = mine(Status(Code::kDeadlineExceeded,
                                 "one call of the weight source took longer than timeouts.gather"));
    // The peers are in the same collective; they are told even when this source cannot be ended.
    stopPeers(gatherExpired_);
    abortSource();
  });
  call(std::move(request));
}

/// Again and again until the call has ended: an abort that comes before the trainer's thread has
/// entered its collective ends nothing.
void PushDriver::abortSource() {
  disarm(abort_);
  parts_.caller.abortSource();
  const TimePoint when = parts_.executor.now() + kAbortPeriod;
  abort_ = parts_.executor.postAt(when, [this, alive = std::weak_ptr<int>(alive_)] {
    if (!alive.expired()) {
      abort_ = 0;
      abortSource();
    }
  });
}

void PushDriver::onCaller(ActionKind kind, Stage stage, CallerResult result) {
  disarm(gather_);
  disarm(abort_);
  parts_.observer.onOperationEnd(kind, result.status);
  if (!gatherExpired_.ok() && !result.status.ok()) {
    result.status = gatherExpired_;
  }
  gatherExpired_ = Status();
  switch (kind) {
    case ActionKind::kVote:
      onVote(std::move(result));
      return;
    case ActionKind::kShare:
      onShared(result);
      return;
    case ActionKind::kPrepare:
      onPrepared(result);
      return;
    case ActionKind::kSourceNext:
      onItem(result, stage);
      return;
    case ActionKind::kPlanePut:
    case ActionKind::kPlaneFlush:
      takeDigests(result.digests);
      if (result.status.ok()) {
        feed(Event{EventKind::kPlaneDone, Status(), {}});
      } else {
        planeFailure_ = state_.local.ok() ? mine(result.status) : planeFailure_;
        feed(Event{EventKind::kPlaneFailed, mine(result.status), {}});
      }
      return;
    case ActionKind::kSourceManifest:
      if (result.status.ok()) {
        result.status = takeManifest(result);
      }
      break;
    case ActionKind::kSourceBegin:
      counting_ = true;
      break;
    case ActionKind::kChannelOpen:
      if (result.exchange) {
        onExchanged(result);
        return;
      }
      if (result.status.ok()) {
        parts_.observer.onChannel(true);
      }
      break;
    default:
      break;
  }
  feed(Event{EventKind::kLocalDone, result.status.ok() ? Status() : mine(result.status), {}});
}

void PushDriver::onItem(const CallerResult& result, Stage stage) {
  if (!result.status.ok()) {
    feed(Event{EventKind::kSourceFailed, mine(result.status), {}});
    return;
  }
  const Manifest& manifest = *passManifest();
  const std::uint64_t declared = manifest.tensors.size();
  if (result.end) {
    if (!result.note.empty()) {
      parts_.observer.onNote(result.note);
    }
    Status early;
    if (stage != Stage::kEnd && state_.tensors < declared) {
      early = mine(Status(Code::kDataMismatch,
                          "the source ended after " + std::to_string(state_.tensors) + " of " +
                              std::to_string(declared) + " tensors; missing first: " +
                              manifest.tensors[state_.tensors].describe(),
                          Outcome::kNotSent));
    }
    feed(Event{EventKind::kSourceEnd, early, {}});
    return;
  }
  copies_.push_back(result.copy);
  passBytes_ += result.bytesGathered;
  const std::uint64_t before = state_.draft ? manifest_->tensors.size() : 0;
  parts_.observer.onTensor(before + state_.tensors + 1, passBytes_);
  feed(Event{EventKind::kSourceItem, result.mismatch.ok() ? Status() : mine(result.mismatch), {}});
}

std::uint64_t PushDriver::digest() const {
  switch (state_.stage) {
    case Stage::kConfigVote:
      return common::fnv1a(push_.agreement);
    case Stage::kManifestVote:
      return manifestDigest_;
    case Stage::kMendVote:
      // Unequal digests are how one rank's failed gather becomes known to all.
      return state_.gatherFailed ? 2 : 1;
    case Stage::kVote:
      return state_.phase == Phase::kStream ? copiesDigest() : 0;
    default:
      return 0;
  }
}

void PushDriver::startVote() {
  CallerRequest request;
  request.kind = ActionKind::kVote;
  request.key = key();
  request.ballot.status = state_.local;
  // An engine fails its update as well when another rank ends the connection that it reads from.
  request.ballot.symptom = parts_.owned != nullptr && !state_.local.origin().engine.empty();
  if (state_.stage == Stage::kConfigVote && !push_.refusal.ok()) {
    request.ballot.status.merge(mine(push_.refusal));
  }
  if (parts_.owned != nullptr && !state_.local.ok() &&
      (state_.phase == Phase::kChannel || state_.phase == Phase::kStream ||
       state_.phase == Phase::kAgree)) {
    // An engine that connects to this rank or reads from it must not wait for what will not come.
    abortChannel(state_.local);
  }
  request.ballot.digest = digest();
  request.ballot.stopped = state_.stopPass;
  request.deadline = voteDeadline();
  if (state_.leader) {
    voteInput_ = decideInput();
    request.ballot.decide = [input = voteInput_](const Status& first) {
      return decideVote(input, first).decision;
    };
    if (state_.passingOn) {
      // The vote that failed the pass has decided, and left out whom it had to.
      const Decision kept = voteInput_.timeLeft ? lastVerdict_.decision : Decision::kFail;
      request.ballot.decide = [kept](const Status&) { return kept; };
    }
  }
  voteStarted_ = parts_.executor.now();
  parts_.link.setPosition(key());
  call(std::move(request));
}

void PushDriver::onVote(CallerResult result) {
  if (!result.status.ok() && state_.phase == Phase::kVerdict && toldGo()) {
    // A rank that had the verdict has left; its leaving interrupted this vote, not the agreement.
    result.status = Status();
    result.verdict = *word_;
  }
  const double seconds =
      std::chrono::duration<double>(parts_.executor.now() - voteStarted_).count();
  parts_.observer.onVote(seconds, result.status);
  if (!result.status.ok()) {
    holdLostVote(mine(result.status));
    return;
  }
  nameDifferingRanks(result.verdict);
  lastVerdict_ = result.verdict;
  if (state_.phase == Phase::kVerdict) {
    finalVote_ = result.verdict;
  }
  // The vote at a failed pass's end brings the failure once more.
  if (!result.verdict.first.ok() && state_.phase != Phase::kVerdict && !state_.passingOn) {
    parts_.observer.onFailure(state_.phase, result.verdict.first);
  }
  if (state_.leader && result.verdict.decision == Decision::kResend && !state_.passingOn) {
    dropEngines(decideVote(voteInput_, result.verdict.first).withoutEngines);
  }
  feed(Event{EventKind::kVerdict, Status(), std::move(result.verdict)});
}

/// A vote that broke rarely knows why; the link mostly does, a moment later. Of the last vote it
/// even tells the outcome.
void PushDriver::holdLostVote(const Status& status) {
  lostVoteStatus_ = status;
  const bool linkHasSpoken = peerLost_ && !rankZeroWillTell();
  if (linkHasSpoken || parts_.rank.size == 1 || status.code() == Code::kDeadlineExceeded) {
    feed(Event{EventKind::kVoteFailed, status, {}});
    return;
  }
  const TimePoint when = std::min(parts_.executor.now() + kLostVoteGrace, hardDeadline_.when());
  lostVote_ = parts_.executor.postAt(when, [this, alive = std::weak_ptr<int>(alive_)] {
    if (!alive.expired()) {
      lostVote_ = 0;
      feed(Event{EventKind::kVoteFailed, lostVoteStatus_, {}});
    }
  });
}

void PushDriver::startShare() {
  CallerRequest request;
  request.kind = ActionKind::kShare;
  request.key = key();
  request.deadline = voteDeadline();
  if (state_.leader) {
    request.bytes = state_.stage == Stage::kConfigShare ? push_.agreement
                    : state_.stage == Stage::kCopyShare ? copiesText()
                                                        : manifestText_;
  }
  call(std::move(request));
}

void PushDriver::onShared(const CallerResult& result) {
  if (!result.status.ok()) {
    holdLostVote(mine(result.status));
    return;
  }
  std::string difference;
  if (state_.stage == Stage::kCopyShare) {
    difference = compareCopies(result.bytes);
    feed(Event{EventKind::kLocalDone,
               difference.empty()
                   ? Status()
                   : mine(Status(Code::kDataMismatch, difference, Outcome::kNotSent)),
               {}});
    return;
  }
  if (!state_.leader && state_.stage == Stage::kConfigShare) {
    if (result.bytes != push_.agreement) {
      difference = push_.compareAgreement(push_.agreement, result.bytes);
      if (difference.empty()) {
        // The votes would find the same difference for ever.
        difference = "the configuration differs from rank 0's, in no key that can be named";
      }
    }
  } else if (!state_.leader && result.bytes != manifestText_) {
    difference = differenceFrom(result.bytes);
  } else if (state_.leader) {
    // Rank 0 has nothing to compare with; the rank that differs says so in the vote.
    feed(Event{EventKind::kLocalDone, Status(), {}});
    return;
  }
  feed(Event{EventKind::kLocalDone,
             difference.empty()
                 ? Status()
                 : mine(Status(Code::kInvalidArgument, difference, Outcome::kNotSent)),
             {}});
}

}  // namespace pushrod::orchestrator
