// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/ledger/ledger.h"

namespace pushrod::orchestrator {

namespace {

bool answered(const Reply& reply) {
  return reply.httpStatus != 0;
}

/// A call that changes a session got no usable answer, or one that does not say what was done.
Session afterUnclear(const Reply& reply, Session whenAnswered) {
  return answered(reply) ? whenAnswered : Session::kUnknown;
}

void applyIdentity(Ledger& ledger, const Reply& reply, const PushFacts& facts) {
  if (!reply.status.ok()) {
    return;
  }
  ledger.reach = Reach::kUp;
  ledger.identified = true;
  ledger.identity = reply.identity;
  const EngineIdentity* before = facts.expected.get();
  if (before != nullptr &&
      (before->worldSize != reply.identity->worldSize || before->model != reply.identity->model)) {
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
  ledger.pausedChecked = true;
  if (goal == Goal::kResumed && !paused) {
    ledger.resumed = true;
  }
}

void applyStart(Ledger& ledger, Goal goal, const Reply& reply) {
  ledger.startSent = true;
  if (reply.status.ok()) {
    ledger.session = Session::kOpen;
    ledger.emptyOpen = goal == Goal::kClean;
    if (goal == Goal::kStarted) {
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
  ledger.needsEmpty = true;
}

void applyUpdate(Ledger& ledger, const Reply& reply) {
  ledger.updateSent = true;
  if (reply.status.ok()) {
    ledger.content = Content::kComplete;
    return;
  }
  ledger.content = Content::kUnknown;
  ledger.needsEmpty = true;
  const bool closes = ledger.identity == nullptr || ledger.identity->features.failedUpdateCloses;
  if (reply.httpStatus >= 400 && reply.httpStatus < 500) {
    ledger.session = Session::kOpen;  // refused before the worker heard of it
  } else {
    ledger.session = afterUnclear(reply, closes ? Session::kClosed : Session::kOpen);
  }
}

void applyFinish(Ledger& ledger, const Call& call, const Reply& reply) {
  if (!reply.status.ok()) {
    // A finish that fails in the engine leaves its session open.
    ledger.session = afterUnclear(reply, Session::kOpen);
    if (call.hasVersion) {
      ledger.finishUnknown = reply.status.outcome() == Outcome::kUnknown;
    }
    ledger.needsEmpty = true;
    return;
  }
  ledger.session = Session::kClosed;
  if (call.hasVersion) {
    ledger.needsEmpty = false;
    return;
  }
  if (ledger.emptyOpen) {
    ledger.emptyOpen = false;
    ledger.needsEmpty = false;
    return;
  }
  // A session closed as it stood: whatever it held is loaded now. On releases whose failed update
  // keeps the session open, this close is itself the empty session (P15).
  const bool closes = ledger.identity == nullptr || ledger.identity->features.failedUpdateCloses;
  ledger.needsEmpty = closes;
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
    ledger.paused = Paused::kUnknown;
  }
}

void applyFailure(Ledger& ledger, Goal goal, const Reply& reply, const PushFacts& facts) {
  if (reply.lost) {
    ledger.reach = Reach::kLost;
  }
  if (reply.status.ok()) {
    return;
  }
  Origin origin;
  origin.engine = facts.engine;
  const Status located = reply.status.at(origin);
  if (goal == Goal::kClosed) {
    ledger.closing.merge(located);
  }
}

}  // namespace

Ledger Ledger::forNextPush() const {
  Ledger next;
  next.identity = identity;
  next.channel = channel;
  next.content = content;
  next.needsEmpty = needsEmpty;
  next.lagMeasured = lagMeasured && reach != Reach::kLost;
  next.lag = lag;
  next.leftPaused = paused == Paused::kYes && !resumed;
  return next;
}

Ledger Ledger::forNextAttempt() const {
  Ledger next = *this;
  next.updateSent = false;
  next.finishUnknown = false;
  next.flushed = false;
  next.proved = false;
  next.verifyRead = false;
  next.pausedChecked = false;
  next.error = Status();
  return next;
}

Ledger apply(
    Ledger ledger, Goal goal, const Call& call, const Reply& reply, const PushFacts& facts) {
  ledger.lag = reply.lag;
  switch (call.kind) {
    case CallKind::kIdentify:
      applyIdentity(ledger, reply, facts);
      break;
    case CallKind::kMeasureLag:
      ledger.lagMeasured = reply.status.ok();
      break;
    case CallKind::kReadPaused:
      if (reply.status.ok() && reply.flag) {
        applyPaused(ledger, goal, *reply.flag);
      }
      break;
    case CallKind::kReadSession:
      if (reply.status.ok() && reply.flag) {
        ledger.session = *reply.flag ? Session::kOpen : Session::kClosed;
      }
      break;
    case CallKind::kReadVersion:
      if (reply.status.ok()) {
        applyLabel(ledger, reply.text, facts);
        ledger.verifyRead = goal == Goal::kVerified;
        ledger.proved = goal == Goal::kVerified && ledger.label == Label::kPushed;
        if (goal == Goal::kFinished && ledger.label == Label::kPushed) {
          // The marker was set before any start (P7), so this label proves that the finish was
          // done.
          ledger.session = Session::kClosed;
          ledger.needsEmpty = false;
        }
      }
      break;
    case CallKind::kPause:
      ledger.pauseSent = reply.status.ok();
      // An unanswered pause may have acted, and is put back as if it had.
      ledger.pausedByUs = ledger.pausedByUs || reply.status.outcome() != Outcome::kNotSent;
      ledger.paused = Paused::kUnknown;
      break;
    case CallKind::kResume:
      applyResume(ledger, reply);
      break;
    case CallKind::kSetVersion:
      if (reply.status.ok()) {
        if (goal == Goal::kClean && ledger.oldLabel.empty()) {
          ledger.oldLabel = ledger.labelText;
        }
        applyLabel(ledger, call.version, facts);
      }
      break;
    case CallKind::kShutdown:
      ledger.channel = reply.status.ok() ? ChannelState::kNone : ChannelState::kDead;
      break;
    case CallKind::kInit:
      ledger.channel = reply.status.ok() ? ChannelState::kReady : ChannelState::kDead;
      break;
    case CallKind::kStart:
      applyStart(ledger, goal, reply);
      break;
    case CallKind::kUpdate:
      applyUpdate(ledger, reply);
      break;
    case CallKind::kFinish:
      applyFinish(ledger, call, reply);
      break;
    case CallKind::kFlush:
      ledger.flushed = reply.status.ok();
      break;
  }
  applyFailure(ledger, goal, reply, facts);
  return ledger;
}

}  // namespace pushrod::orchestrator
