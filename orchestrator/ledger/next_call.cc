// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/ledger/next_call.h"

#include <algorithm>

#include "orchestrator/ledger/ending.h"
#include "orchestrator/ledger/steps.h"

namespace pushrod::orchestrator {

namespace {

Status notPaused() {
  return Status(Code::kDeadlineExceeded,
                "it was told to pause and still generates; it is slow to pause, or somebody else "
                "resumed it",
                Outcome::kApplied);
}

Next identified(const Ledger& ledger, const PushFacts& facts) {
  if (!ledger.identified) {
    return ask(CallKind::kIdentify);
  }
  if (!ledger.error.ok()) {
    return failed(ledger.error);
  }
  if (facts.verify && !hasVersion(ledger)) {
    return refuse("release " + ledger.identity->release +
                  " has no version route, so a push to it cannot be verified; upgrade it or set "
                  "push.verify: none");
  }
  if (facts.withDraft && !ledger.identity->features.hasDraft) {
    return refuse("release " + ledger.identity->release +
                  " has no sessions of a draft model; upgrade it to 0.26 or later, or push without "
                  "draft weights");
  }
  if (ledger.draftBroken && !facts.withDraft) {
    return refuse(
        "an earlier push left its draft model half loaded; push the draft weights as well");
  }
  if (ledger.identity->asleep && facts.wake == Wake::kFalse) {
    return refuse(
        "it is asleep, and an update would kill it; wake it, or set engines.wake: weights or all");
  }
  if (!ledger.lagMeasured) {
    return ask(CallKind::kMeasureLag);
  }
  if (ledger.session == Session::kUnknown) {
    return ask(CallKind::kReadSession);
  }
  if (ledger.paused == Paused::kUnknown) {
    return ask(CallKind::kReadPaused);
  }
  if (hasVersion(ledger) && ledger.label == Label::kUnknown) {
    return ask(CallKind::kReadVersion);
  }
  return reached();
}

Next wake(std::string_view tag) {
  Next next = ask(CallKind::kWake);
  next.call.tag = tag;
  return next;
}

/// Paused first, then woken (P9): an engine must not generate before it holds the new weights.
Next paused(const Ledger& ledger, const PushFacts& facts) {
  if (!ledger.pauseSent && !(ledger.weightsWoken && ledger.paused != Paused::kNo)) {
    return ask(CallKind::kPause);
  }
  if (ledger.paused != Paused::kYes) {
    return ledger.paused == Paused::kNo ? askAgain(CallKind::kReadPaused, notPaused())
                                        : ask(CallKind::kReadPaused);
  }
  const bool asleep = foundAsleep(ledger);
  if (asleep && !ledger.weightsWoken) {
    return wake(kWeightsTag);
  }
  if (asleep && facts.wake == Wake::kAll && !ledger.cacheWoken) {
    return wake(kCacheTag);
  }
  return reached();
}

Next start(bool draft) {
  Next next = ask(CallKind::kStart);
  next.call.draft = draft;
  return next;
}

/// Before anything is sent: an engine that is not paused any more (it restarted) is paused again.
Next pausedAgain(const Ledger& ledger) {
  if (ledger.paused == Paused::kUnknown) {
    return ask(CallKind::kReadPaused);
  }
  return ledger.pauseSent ? askAgain(CallKind::kReadPaused, notPaused()) : ask(CallKind::kPause);
}

/// Stale close, version marker and empty session: first push and recovery take the same way.
Next clean(const Ledger& ledger, const PushFacts& facts) {
  if (ledger.paused != Paused::kYes) {
    return pausedAgain(ledger);
  }
  if (ledger.session == Session::kUnknown) {
    return ask(CallKind::kReadSession);
  }
  if (ledger.session == Session::kOpen) {
    return ask(CallKind::kFinish);
  }
  if (hasVersion(ledger) && ledger.label == Label::kUnknown) {
    return ask(CallKind::kReadVersion);
  }
  const bool equal = ledger.label == Label::kPushed;
  const bool mark = facts.markerMode == VersionMarker::kAlways && ledger.label != Label::kMarker;
  if (hasVersion(ledger) && (equal || mark)) {
    if (facts.markerMode == VersionMarker::kNever) {
      return refuse("it already reports version '" + facts.version +
                    "', so a push of it could not be proved; push another version, or set "
                    "push.version_marker: auto");
    }
    return setVersion(facts.marker);
  }
  if (ledger.needsEmpty) {
    return start(false);
  }
  if (facts.withDraft && ledger.needsEmptyDraft) {
    return start(true);
  }
  return reached();
}

Next channelled(const Ledger& ledger, const PushFacts& facts) {
  if (facts.initComes) {
    Next next;
    next.kind = Next::Kind::kHold;
    return next;
  }
  if (facts.initBody == nullptr) {
    return reached();
  }
  switch (ledger.channel) {
    case ChannelState::kReady:
      return reached();
    case ChannelState::kUnknown:
    case ChannelState::kDead:
      if (hasShutdown(ledger)) {
        return ask(CallKind::kShutdown);
      }
      [[fallthrough]];
    case ChannelState::kNone:
      break;
  }
  Next next = ask(CallKind::kInit);
  next.call.body = facts.initBody;
  return next;
}

Next started(const Ledger& ledger, const PushFacts& facts) {
  return ledger.session == Session::kOpen ? reached() : start(facts.draft);
}

Next updated(const Ledger& ledger, const PushFacts& facts) {
  if (ledger.content == Content::kComplete && ledger.updateSent) {
    return reached();
  }
  Next next = ask(CallKind::kUpdate);
  next.call.body = facts.updateBody;
  if (facts.chunkBodies != nullptr) {
    if (ledger.chunksDone >= std::min(facts.chunksReady, facts.chunkBodies->size())) {
      next.kind = Next::Kind::kHold;
      return next;
    }
    next.call.body = (*facts.chunkBodies)[ledger.chunksDone];
  }
  return next;
}

Next finished(const Ledger& ledger, const PushFacts& facts, const Reply* last) {
  if (ledger.finishUnknown) {
    // No usable answer: whether it was done is read before anything is decided. Where it cannot be,
    // the finish has failed.
    if (last != nullptr && last->kind == CallKind::kReadVersion) {
      return ledger.label == Label::kPushed
                 ? reached()
                 : failed(Status(Code::kUnavailable,
                                 "the finish had no usable answer and the version is '" +
                                     ledger.labelText + "': " + ledger.finishAnswer,
                                 Outcome::kUnknown));
    }
    return ask(CallKind::kReadVersion);
  }
  if (ledger.session == Session::kClosed) {
    return reached();
  }
  Next next = ask(CallKind::kFinish);
  // The version travels with the last session of the push.
  next.call.hasVersion = facts.draft || !facts.withDraft;
  next.call.version = next.call.hasVersion ? facts.version : "";
  return next;
}

/// Whether a failed call still leaves its goal a way: reads resolve what happened.
bool resolvable(Goal goal, const Ledger& ledger, const Reply& last) {
  if (goal == Goal::kFinished) {
    return last.kind == CallKind::kFinish && ledger.finishUnknown && hasVersion(ledger);
  }
  if (goal == Goal::kResumed) {
    // Refused outright is final; anything else is asked again until the phase's limit.
    return last.status.outcome() != Outcome::kRejected;
  }
  return goal == Goal::kClosed;
}

}  // namespace

Next nextCall(const Ledger& ledger, Goal goal, const PushFacts& facts, const Reply* last) {
  if (ledger.reach == Reach::kLost && goal != Goal::kClosed) {
    return failed(last != nullptr && !last->status.ok()
                      ? last->status
                      : Status(Code::kUnavailable, "it is lost; restart it"));
  }
  if (ledger.dropped && goal != Goal::kClosed) {
    return failed(Status(Code::kAborted, "this push goes on without it"));
  }
  if (last != nullptr && !last->status.ok() && !resolvable(goal, ledger, *last)) {
    return failed(last->status);
  }
  switch (goal) {
    case Goal::kIdentified:
      return identified(ledger, facts);
    case Goal::kPaused:
      return paused(ledger, facts);
    case Goal::kClean:
      return clean(ledger, facts);
    case Goal::kChannelled:
      return channelled(ledger, facts);
    case Goal::kStarted:
      return started(ledger, facts);
    case Goal::kUpdated:
      return updated(ledger, facts);
    case Goal::kFinished:
      return finished(ledger, facts, last);
    case Goal::kFlushed:
      // After a failure also where push.flush is off: blocks of torn weights outlive the repair
      // (P19).
      return (facts.flush || ledger.staleCaches) && !ledger.flushed ? ask(CallKind::kFlush)
                                                                    : reached();
    case Goal::kVerified:
      return verified(ledger, facts);
    case Goal::kResumed:
      return resumed(ledger, facts, last);
    case Goal::kClosed:
      return closed(ledger, facts);
  }
  return failed(Status(Code::kInternal, "no such goal"));
}

}  // namespace pushrod::orchestrator
