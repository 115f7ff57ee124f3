// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "orchestrator/ledger/ledger.h"

namespace pushrod::orchestrator {

namespace {

/// The session after a call inside it failed. A 4xx was refused before the worker heard of it;
/// anything else may stem from before, in or after the worker's own work: it is read, never guessed
/// (P16).
Session afterFailure(Session before, const Reply& reply) {
  const bool refused = reply.status.outcome() == Outcome::kRejected && reply.httpStatus >= 400 &&
                       reply.httpStatus < 500;
  return refused ? before : Session::kUnknown;
}

/// Whether pieces may be left (P15) in the model of the session at hand.
bool& needsEmpty(Ledger& ledger) {
  return ledger.draftOpen ? ledger.needsEmptyDraft : ledger.needsEmpty;
}

/// Whether a failed call certainly changed nothing.
bool harmless(const Reply& reply) {
  return reply.status.outcome() == Outcome::kNotSent ||
         reply.status.outcome() == Outcome::kRejected;
}

void applyIdentity(Ledger& ledger, const Reply& reply, const PushFacts& facts) {
  if (!reply.status.ok()) {
    return;
  }
  ledger.reach = Reach::kUp;
  ledger.identified = true;
  ledger.identity = reply.identity;
  const EngineIdentity* before = facts.expected.get();
  // A server that did not tell its model once has not changed it (P5).
  const bool otherModel = before != nullptr && !before->model.empty() &&
                          !reply.identity->model.empty() && before->model != reply.identity->model;
  if (before != nullptr && (before->worldSize != reply.identity->worldSize || otherModel)) {
    ledger.error.merge(Status(Code::kFailedPrecondition,
                              "it changed since the last push: " + before->model + " on " +
                                  std::to_string(before->worldSize) + " workers is now " +
                                  reply.identity->model + " on " +
                                  std::to_string(reply.identity->worldSize),
                              Outcome::kRejected));
  }
}

void applyLabel(Ledger& ledger, const std::string& text, const PushFacts& facts) {
  ledger.labelText = text;
  if (text == facts.version) {
    ledger.label = Label::kPushed;
  } else {
    ledger.label = text == facts.marker ? Label::kMarker : Label::kOther;
  }
}

void applyPaused(Ledger& ledger, Goal goal, bool paused) {
  if (goal == Goal::kIdentified) {
    ledger.foundPaused = paused;
  }
  ledger.paused = paused ? Paused::kYes : Paused::kNo;
  if (!paused && ledger.session == Session::kOpen) {
    // Sessions are opened on paused engines only: it restarted, or somebody resumed it. Which it
    // was is read (P16).
    ledger.session = Session::kUnknown;
  }
  ledger.pausedChecked = goal == Goal::kVerified;
  if (goal == Goal::kResumed && !paused) {
    ledger.resumed = true;
  }
}

void applyVersionRead(Ledger& ledger, Goal goal, const Reply& reply, const PushFacts& facts) {
  applyLabel(ledger, reply.text, facts);
  if (goal == Goal::kIdentified && !ledger.left.empty() && ledger.left != reply.text) {
    // It restarted, or somebody else pushed to it: neither the channel nor its sessions are ours.
    ledger.changed = true;
    ledger.channel = ledger.channel == ChannelState::kReady ? ChannelState::kDead : ledger.channel;
    ledger.needsEmpty = true;
    ledger.needsEmptyDraft = true;
  }
  ledger.verifyRead = goal == Goal::kVerified || goal == Goal::kResumed;
  ledger.proved = ledger.verifyRead && ledger.label == Label::kPushed;
  if (goal == Goal::kFinished && ledger.label == Label::kPushed) {
    // The marker was set before any start (P7), so this label proves that the finish was done.
    ledger.session = Session::kClosed;
    needsEmpty(ledger) = false;
    ledger.draftBroken = ledger.draftBroken && !ledger.draftOpen;
  }
}

/// What a read answered; a read that failed teaches nothing.
void applyRead(
    Ledger& ledger, Goal goal, CallKind kind, const Reply& reply, const PushFacts& facts) {
  if (!reply.status.ok()) {
    return;
  }
  if (kind == CallKind::kReadVersion) {
    applyVersionRead(ledger, goal, reply, facts);
  } else if (!reply.flag) {
    return;
  } else if (kind == CallKind::kReadPaused) {
    applyPaused(ledger, goal, *reply.flag);
  } else {
    ledger.session = *reply.flag ? Session::kOpen : Session::kClosed;
  }
}

void applyPause(Ledger& ledger, const Reply& reply) {
  ledger.pauseSent = reply.status.ok();
  // An unanswered pause may have acted, and is put back as if it had.
  ledger.pausedByUs = ledger.pausedByUs || reply.status.outcome() != Outcome::kNotSent;
  ledger.paused = Paused::kUnknown;
}

void applyStart(Ledger& ledger, Goal goal, const Call& call, const Reply& reply) {
  ledger.startSent = true;
  ledger.draftOpen = call.draft;
  ledger.draftBroken = ledger.draftBroken || (call.draft && goal == Goal::kStarted);
  if (reply.status.ok()) {
    ledger.session = Session::kOpen;
    ledger.emptyOpen = goal == Goal::kClean;
    if (goal == Goal::kStarted) {
      ledger.chunksDone = 0;
      ledger.updateSent = false;
      ledger.content = Content::kBegun;
      ledger.proved = false;
      ledger.flushed = false;
      ledger.pausedChecked = false;  // P19: whether it stayed paused is read again before verify
    }
    return;
  }
  // "already active" leaves a session of somebody's open; a failure of start itself leaves none.
  // Which it was is read, never tried.
  ledger.session = Session::kUnknown;
  needsEmpty(ledger) = true;
}

void applyUpdate(Ledger& ledger, const Reply& reply, const PushFacts& facts) {
  ledger.updateSent = true;
  // Also one that a worker refused has ended the session, with its placeholders.
  ledger.touched =
      ledger.touched || reply.status.outcome() != Outcome::kRejected || reply.httpStatus >= 500;
  if (reply.status.ok()) {
    ++ledger.chunksDone;
    const bool more = facts.chunkBodies != nullptr && ledger.chunksDone < facts.chunkBodies->size();
    ledger.content = more ? Content::kBegun : Content::kComplete;
    return;
  }
  ledger.content = Content::kUnknown;
  needsEmpty(ledger) = true;
  ledger.session = afterFailure(ledger.session, reply);
}

void applyFinish(Ledger& ledger, Goal goal, const Call& call, const Reply& reply) {
  if (!reply.status.ok()) {
    ledger.session = afterFailure(ledger.session, reply);
    if (call.hasVersion) {
      ledger.finishAnswer = reply.status.message();
      ledger.finishUnknown = reply.status.outcome() == Outcome::kUnknown;
      ledger.label = harmless(reply) ? ledger.label : Label::kUnknown;
    }
    needsEmpty(ledger) = true;
    // It may have closed an earlier run's session all the same.
    ledger.staleClosed = ledger.staleClosed || (!ledger.startSent && !harmless(reply));
    return;
  }
  ledger.session = Session::kClosed;
  if (goal == Goal::kFinished && ledger.draftOpen) {
    ledger.draftBroken = false;
  }
  if (call.hasVersion) {
    needsEmpty(ledger) = false;
    ledger.label = Label::kUnknown;  // stored by a second call (P23): read, not believed
    return;
  }
  if (ledger.emptyOpen || goal == Goal::kFinished) {
    ledger.emptyOpen = false;
    needsEmpty(ledger) = false;
    return;
  }
  // A session closed as it stood: whatever it held is loaded now. On releases whose failed update
  // keeps the session open, this close is itself the empty session (P15).
  ledger.staleClosed = ledger.staleClosed || !ledger.startSent;
  const bool closes = ledger.identity == nullptr || ledger.identity->features.failedUpdateCloses;
  // Whose model an earlier run's session was of is not known.
  ledger.needsEmpty = ledger.startSent && ledger.draftOpen ? ledger.needsEmpty : closes;
  ledger.needsEmptyDraft = ledger.needsEmptyDraft || !ledger.startSent || ledger.draftOpen;
  ledger.content = Content::kUnknown;
}

void applyResume(Ledger& ledger, const Reply& reply) {
  if (reply.status.ok()) {
    ledger.resumed = true;
    ledger.paused = Paused::kNo;
    return;
  }
  ledger.resumeAsked = true;
  if (reply.status.outcome() != Outcome::kRejected) {
    // It may have acted, or the engine may have restarted: what was proved is proved again.
    ledger.paused = Paused::kUnknown;
    ledger.proved = false;
    ledger.verifyRead = false;
  }
}

void applyWake(Ledger& ledger, const Call& call, const Reply& reply) {
  // Up to 0.23 a part of the tags resumes scheduling: whether it stayed paused is read again.
  ledger.paused = Paused::kUnknown;
  ledger.pauseSent = false;
  if (reply.status.ok()) {
    (call.tag == kWeightsTag ? ledger.weightsWoken : ledger.cacheWoken) = true;
  }
}

void applySetVersion(
    Ledger& ledger, Goal goal, const Call& call, const Reply& reply, const PushFacts& facts) {
  if (!reply.status.ok() && harmless(reply)) {
    return;
  }
  if (goal == Goal::kClean && ledger.oldLabel.empty()) {
    ledger.oldLabel = ledger.labelText;
  }
  if (reply.status.ok()) {
    applyLabel(ledger, call.version, facts);
  } else {
    ledger.label = Label::kUnknown;
  }
}

void applyChecksums(Ledger& ledger, const Reply& reply, const PushFacts& facts) {
  if (!reply.status.ok() || reply.checksums == nullptr) {
    return;
  }
  ledger.checksums = reply.checksums;
  ContentFinding finding = compareWithSent(*reply.checksums, *ledger.identity, facts.digests.get());
  ledger.proof = finding.proof;
  ledger.proofText = std::move(finding.text);
  if (ledger.proof == Proof::kDiffers) {
    // Its label proves nothing any more, and what it holds is cleared before a resend.
    ledger.proved = false;
    ledger.needsEmpty = true;
  }
}

void applyFailure(Ledger& ledger, Goal goal, const Reply& reply, const PushFacts& facts) {
  if (reply.lost) {
    ledger.reach = Reach::kLost;
  }
  if (reply.status.ok()) {
    return;
  }
  if (reply.httpStatus == 0) {
    // Nobody answered: it may have restarted, which ends a session and opens none.
    if (ledger.session == Session::kOpen) {
      ledger.session = Session::kUnknown;
    }
  }
  Origin origin;
  origin.engine = facts.engine;
  const Status located = reply.status.at(origin);
  if (goal == Goal::kClosed) {
    ledger.closing.merge(located);
  }
}

}  // namespace

Fault faultOf(const Ledger& ledger, const Status& why, bool interrupted) {
  if (why.ok()) {
    return Fault::kNone;
  }
  if (ledger.reach == Reach::kLost) {
    return Fault::kLost;
  }
  if (interrupted) {
    return Fault::kFailed;
  }
  const bool refused =
      why.code() == Code::kInvalidArgument || why.code() == Code::kFailedPrecondition;
  const bool nobodyThere = ledger.silent && why.code() == Code::kUnavailable;
  return refused || nobodyThere ? Fault::kUnfit : Fault::kFailed;
}

Ledger drop(Ledger ledger) {
  ledger.dropped = true;
  ledger.quarantined = true;
  if (ledger.channel == ChannelState::kReady) {
    ledger.channel = ChannelState::kDead;
  }
  return ledger;
}

bool staysAsleep(const Ledger& ledger, const PushFacts& facts) {
  return ledger.identity != nullptr && ledger.identity->asleep && facts.wake == Wake::kWeights;
}

Ledger Ledger::forNextPush() const {
  Ledger next;
  next.identity = identity;
  next.channel = channel;
  next.content = content;
  // What a dropped engine went through after its last answer is not known.
  next.needsEmpty = needsEmpty || dropped;
  next.needsEmptyDraft = needsEmptyDraft || dropped;
  next.draftBroken = draftBroken;
  next.lagMeasured = lagMeasured && reach != Reach::kLost;
  next.lag = lag;
  next.staleCaches = staleCaches || (startSent && !proved);
  next.leftPaused = paused == Paused::kYes && !resumed;
  next.quarantined = quarantined;
  next.left = proved ? labelText : std::string();
  return next;
}

Ledger Ledger::forNextAttempt() const {
  Ledger next = *this;
  next.updateSent = false;
  next.chunksDone = 0;
  next.finishUnknown = false;
  next.flushed = false;
  next.staleCaches = staleCaches || startSent;
  next.proved = false;
  next.verifyRead = false;
  next.checksums = nullptr;
  next.proof = Proof::kNone;
  next.proofText.clear();
  next.pausedChecked = false;
  next.error = Status();
  // The first attempt may have stored the version, and the engine may have restarted since.
  next.label = Label::kUnknown;
  next.paused = Paused::kUnknown;
  next.pauseSent = false;
  return next;
}

Ledger apply(
    Ledger ledger, Goal goal, const Call& call, const Reply& reply, const PushFacts& facts) {
  ledger.lag = reply.lag;
  ledger.silent =
      !reply.status.ok() && reply.httpStatus == 0 && reply.status.outcome() != Outcome::kRejected;
  switch (call.kind) {
    case CallKind::kIdentify:
      applyIdentity(ledger, reply, facts);
      break;
    case CallKind::kMeasureLag:
      ledger.lagMeasured = reply.status.ok();
      break;
    case CallKind::kReadPaused:
    case CallKind::kReadSession:
    case CallKind::kReadVersion:
      applyRead(ledger, goal, call.kind, reply, facts);
      break;
    case CallKind::kPause:
      applyPause(ledger, reply);
      break;
    case CallKind::kResume:
      applyResume(ledger, reply);
      break;
    case CallKind::kSetVersion:
      applySetVersion(ledger, goal, call, reply, facts);
      break;
    case CallKind::kShutdown:
      ledger.channel = reply.status.ok() ? ChannelState::kNone : ChannelState::kDead;
      break;
    case CallKind::kInit:
      ledger.channel = reply.status.ok() ? ChannelState::kReady : ChannelState::kDead;
      break;
    case CallKind::kStart:
      applyStart(ledger, goal, call, reply);
      break;
    case CallKind::kUpdate:
      applyUpdate(ledger, reply, facts);
      break;
    case CallKind::kFinish:
      applyFinish(ledger, goal, call, reply);
      break;
    case CallKind::kFlush:
      ledger.flushed = reply.status.ok();
      ledger.staleCaches = ledger.staleCaches && !ledger.flushed;
      break;
    case CallKind::kWake:
      applyWake(ledger, call, reply);
      break;
    case CallKind::kChecksums:
      applyChecksums(ledger, reply, facts);
      break;
  }
  applyFailure(ledger, goal, reply, facts);
  return ledger;
}

}  // namespace pushrod::orchestrator
