// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "common/time_text.h"
#include "orchestrator/driver/push_driver.h"
#include "orchestrator/dtype_note.h"

namespace pushrod::orchestrator {

namespace {

/// Whether its last session was the push's last one, of the draft where there is one.
bool wholePush(const Ledger& ledger, const PushFacts& facts) {
  const bool last = !facts.withDraft || (ledger.draftOpen && !ledger.needsEmptyDraft);
  return last && ledger.content == Content::kComplete && ledger.session == Session::kClosed &&
         !ledger.needsEmpty;
}

std::string contentWord(const Ledger& ledger, const PushFacts& facts) {
  if (ledger.reach == Reach::kLost || (ledger.dropped && ledger.silent)) {
    return "lost";
  }
  if (ledger.proof == Proof::kDiffers) {
    return "mixed";
  }
  if (ledger.proved) {
    return "current";
  }
  if (wholePush(ledger, facts)) {
    return "unproved";
  }
  if (ledger.reach == Reach::kUnknown || (ledger.silent && ledger.startSent)) {
    return "unknown";
  }
  if (!ledger.startSent) {
    return ledger.staleClosed ? "unknown" : "old";
  }
  if (!ledger.touched) {
    // Only start and finish were sent: without a tensor a session brings the old weights back.
    return ledger.session == Session::kClosed ? "old" : "unknown";
  }
  return "mixed";
}

std::string remedyOfUnknown(const Ledger& ledger) {
  if (ledger.startSent) {
    return "push again; if it does not answer, restart it";
  }
  if (ledger.silent) {
    return "make it reachable, then push again";
  }
  if (ledger.staleClosed) {
    return "do not resume it, as its content is not known; push again";
  }
  return ledger.error.ok() ? "push again" : "mend what its error names, then push again";
}

std::string remedyOf(const Ledger& ledger, const std::string& word) {
  if (word == "lost") {
    return "restart this engine, then push again";
  }
  if (word == "unknown") {
    return remedyOfUnknown(ledger);
  }
  if (word == "mixed") {
    return "do not resume it; push again";
  }
  if (ledger.paused == Paused::kYes && !ledger.resumed) {
    return word == "current" ? "push again, or resume it when its peers hold the same version"
                             : "push again before resuming it";
  }
  return "";
}

std::string remedyOfDropped(const Ledger& ledger) {
  const std::string then = "; the next push takes it in again once it is reached and verified";
  if (ledger.reach == Reach::kLost) {
    return "restart this engine" + then;
  }
  if (ledger.silent) {
    return "make it reachable, or restart it" + then;
  }
  return "mend what its error names" + then;
}

}  // namespace

EngineReport PushDriver::engineReport(const EngineSlot& slot, std::size_t index) const {
  const Ledger& ledger = slot.ledger;
  EngineReport report;
  report.name = slot.client->name();
  report.url = slot.client->url();
  report.outcome = contentWord(ledger, slot.facts);
  if (ledger.label != Label::kUnknown) {
    report.version = ledger.labelText;
  }
  if (ledger.paused != Paused::kUnknown) {
    report.paused = ledger.paused == Paused::kYes;
  }
  if (ledger.session != Session::kUnknown) {
    report.session = ledger.session == Session::kOpen ? "open" : "closed";
  }
  report.content = contentOf(slot);
  report.replyLag = ledger.lag;
  report.bytes = engineBytes_[index];
  if (!ledger.error.ok()) {
    report.error = ledger.error.toString();
  }
  if (!ledger.closing.ok()) {
    report.error += (report.error.empty() ? "" : "; ") + ledger.closing.toString();
  }
  if (ledger.dropped) {
    report.remedy = remedyOfDropped(ledger);
  } else if (state_.phase == Phase::kDone && staysAsleep(ledger, slot.facts)) {
    report.remedy = "wake its KV cache (/wake_up with the tag kv_cache), then resume it";
  } else if (state_.phase == Phase::kFailed) {
    report.remedy = failedIn_ == Phase::kCheck ? "this push did not contact it"
                                               : remedyOf(ledger, report.outcome);
  }
  return report;
}

void PushDriver::noteDtypes() {
  for (const EngineSlot& slot : runner_.slots()) {
    if (slot.ledger.identity == nullptr) {
      continue;
    }
    const std::string note = dtypeNote(*manifest_, slot.ledger.identity->dtype);
    if (!note.empty()) {
      // One engine stands for its peers.
      parts_.observer.onNote("engine " + slot.client->name() + " " + note);
      return;
    }
  }
}

void PushDriver::addEngines(PushReport& report) const {
  for (std::size_t i = 0; i < engineBytes_.size(); ++i) {
    const EngineSlot& slot = runner_.slots()[i];
    report.engines.push_back(engineReport(slot, i));
    if (state_.phase == Phase::kFailed && slot.ledger.pausedByUs && slot.ledger.resumed &&
        !slot.ledger.startSent) {
      report.notes.push_back("engine " + slot.client->name() +
                             " generates again, as it did before this push");
    }
    if (slot.ledger.changed) {
      report.notes.push_back("engine " + slot.client->name() + " was found without version '" +
                             slot.ledger.left +
                             "', which the last push left there: it restarted, or somebody else "
                             "pushed to it");
    }
    if (slot.ledger.dropped) {
      report.droppedEngines.push_back(slot.client->name());
    }
  }
}

PushReport PushDriver::buildReport() const {
  PushReport report;
  const TimePoint now = parts_.executor.now();
  report.version = push_.version;
  report.attempts = static_cast<int>(state_.attempt);
  report.resent = state_.attempt > 1;
  report.ranks = parts_.rank.size;
  report.startedAt = common::utcText(startedAt_);
  report.durationSeconds = std::chrono::duration<double>(now - started_).count();
  if (pauseFirst_ != TimePoint{}) {
    const bool allResumed = state_.phase == Phase::kDone;
    const TimePoint until = allResumed && resumeLast_ != TimePoint{} ? resumeLast_ : now;
    report.pausedSeconds = std::chrono::duration<double>(until - pauseFirst_).count();
  }
  if (manifest_ != nullptr) {
    report.bytes = declaredBytes();
    report.tensors = declaredTensors();
  }
  report.phases = phaseSeconds_;
  report.casts = casts_;
  if (state_.phase == Phase::kDone) {
    report.outcome = report.resent ? PushOutcome::kRecovered : PushOutcome::kDone;
  } else {
    // A refusal that a vote has brought stays one when a rank then leaves before the last vote; a
    // rank that hangs or dies is none, and the others, who left it, say so too.
    const Code code = lastVerdict_.first.code();
    const bool refusal = code == Code::kInvalidArgument || code == Code::kDataMismatch;
    const bool agreed = !state_.agreementDead || refusal;
    report.outcome =
        failedIn_ == Phase::kCheck && agreed ? PushOutcome::kRefused : PushOutcome::kFailed;
  }
  report.firstCause = state_.first;
  report.notes = state_.first.notes();
  report.notes.insert(report.notes.end(), dropNotes_.begin(), dropNotes_.end());
  const std::vector<std::string> contents = contentNotes();
  report.notes.insert(report.notes.end(), contents.begin(), contents.end());
  addEngines(report);
  return report;
}

void PushDriver::finish() {
  if (finished_) {
    return;
  }
  finished_ = true;
  for (Executor::TimerId* timer : {&expiry_, &drain_, &gather_, &abort_, &lostVote_, &wordWait_}) {
    disarm(*timer);
  }
  if (parts_.plane != nullptr) {
    countBytes();
    casts_ = castsBefore_ + (counting_ ? parts_.plane->casts() : 0);
    if (!parts_.config.transport.keepBuffers) {
      parts_.plane->releaseBuffers();
    }
  }
  tellWord();
  readmit();
  PushReport report = buildReport();
  Ending ending{std::move(report), runner_.leave(), manifest_, draftManifest_, !verdictUnknown_};
  parts_.observer.onEnd(ending.report);
  parts_.executor.post(
      [done = std::move(done_), ending = std::move(ending)]() mutable { done(std::move(ending)); });
}

}  // namespace pushrod::orchestrator
