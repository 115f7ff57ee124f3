// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/ledger/ending.h"

#include "orchestrator/ledger/steps.h"

namespace pushrod::orchestrator {

namespace {

Status otherVersion(const Ledger& ledger, const PushFacts& facts) {
  return Status(Code::kDataMismatch,
                "it reports version '" + ledger.labelText + "' instead of '" + facts.version + "'",
                Outcome::kApplied);
}

/// After a resume without a usable answer: whether it acted, and that it is still the same engine,
/// is read before anything is repeated or believed.
Next resolveResume(const Ledger& ledger, const PushFacts& facts, const Reply* last) {
  const bool again = last != nullptr && last->kind != CallKind::kResume && !last->status.ok();
  if (ledger.paused == Paused::kUnknown) {
    return again ? askAgain(CallKind::kReadPaused) : ask(CallKind::kReadPaused);
  }
  if (facts.verify && !ledger.verifyRead) {
    return again ? askAgain(CallKind::kReadVersion) : ask(CallKind::kReadVersion);
  }
  if (facts.verify && !ledger.proved) {
    return failed(otherVersion(ledger, facts));
  }
  return ledger.paused == Paused::kYes ? askAgain(CallKind::kResume) : reached();
}

}  // namespace

/// The version first: an engine that restarted lost both it and its pause, and can be sent anew.
Next verified(const Ledger& ledger, const PushFacts& facts) {
  if (facts.verify && !ledger.verifyRead) {
    return ask(CallKind::kReadVersion);
  }
  if (ledger.proof == Proof::kDiffers) {
    return failed(Status(Code::kDataMismatch, ledger.proofText, Outcome::kApplied));
  }
  if (facts.verify && !ledger.proved) {
    return failed(otherVersion(ledger, facts));
  }
  if (!ledger.pausedChecked) {
    return ask(CallKind::kReadPaused);
  }
  if (ledger.paused == Paused::kNo) {
    return refuse(
        "somebody else resumed it in the middle of the push; its caches may hold values "
        "of half loaded weights");
  }
  // Last: it reads every weight, which is for an engine that is sound otherwise. Where replies come
  // late (P16) the one to this call would be another's.
  const bool asks =
      facts.checksums && ledger.lag == 0 && ledger.checksums == nullptr && hasChecker(ledger);
  return asks ? ask(CallKind::kChecksums) : reached();
}

Next resumed(const Ledger& ledger, const PushFacts& facts, const Reply* last) {
  const bool answered = last != nullptr && last->status.ok();
  if (ledger.resumeAsked && !(answered && last->kind == CallKind::kResume)) {
    return resolveResume(ledger, facts, last);
  }
  if (ledger.resumed || staysAsleep(ledger, facts)) {
    return reached();
  }
  if (facts.verify && !ledger.proved) {
    return failed(otherVersion(ledger, facts));
  }
  // Read once more, right before: it may have restarted since its verify, in an earlier wave's
  // time.
  if (facts.verify && !answered) {
    return last == nullptr ? ask(CallKind::kReadVersion) : askAgain(CallKind::kReadVersion);
  }
  return ask(CallKind::kResume);
}

/// Failing: the session is closed without a version; then, if no start was sent, P3's put-back.
Next closed(const Ledger& ledger, const PushFacts& facts) {
  if (ledger.reach != Reach::kUp || !ledger.closing.ok()) {
    return reached();
  }
  if (ledger.session == Session::kUnknown) {
    return ask(CallKind::kReadSession);
  }
  const bool started = ledger.startSent || facts.anyStartSent;
  if (ledger.session == Session::kOpen && started) {
    return ask(CallKind::kFinish);
  }
  if (started || ledger.dropped) {
    // A resume without an answer: the report tells whether it generates.
    const bool mayGenerate = ledger.resumeAsked && ledger.paused == Paused::kUnknown;
    return mayGenerate && !ledger.dropped ? ask(CallKind::kReadPaused) : reached();
  }
  if (!ledger.oldLabel.empty()) {
    if (ledger.label == Label::kUnknown) {
      return ask(CallKind::kReadVersion);
    }
    if (ledger.label == Label::kMarker) {
      return setVersion(ledger.oldLabel);
    }
  }
  // Asleep, or loaded with what somebody's session left: its label proves nothing (P39).
  const bool doubtful = foundAsleep(ledger) || ledger.leftPaused || ledger.staleClosed;
  const bool putBack =
      ledger.pausedByUs && !ledger.foundPaused && !doubtful && ledger.session == Session::kClosed;
  return putBack && !ledger.resumed ? ask(CallKind::kResume) : reached();
}

}  // namespace pushrod::orchestrator
