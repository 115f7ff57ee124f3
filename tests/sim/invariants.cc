// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/invariants.h"

#include <algorithm>

namespace pushrod::sim {

namespace {

constexpr std::size_t kMostComplaints = 8;

bool good(const PushReport& report) {
  return report.outcome == PushOutcome::kDone || report.outcome == PushOutcome::kRecovered;
}

bool isDropped(const PushReport& report, const std::string& engine) {
  return std::find(report.droppedEngines.begin(), report.droppedEngines.end(), engine) !=
         report.droppedEngines.end();
}

std::string versionOf(int push) {
  return "v" + std::to_string(push);
}

}  // namespace

void Invariants::complain(const std::string& text) {
  const bool known = std::find(broken_.begin(), broken_.end(), text) != broken_.end();
  if (!known && broken_.size() < kMostComplaints) {
    broken_.push_back(text);
  }
}

void Invariants::beginPush(int number) {
  push_ = number;
  mayResume_ = false;
  before_.clear();
  for (const FakeEngine* engine : engines_) {
    before_.push_back(Before{engine->content(),
                             engine->paused(),
                             engine->starts(),
                             engine->restarts(),
                             engine->resumes()});
  }
}

void Invariants::check(Phase phase) {
  mayResume_ = mayResume_ || phase == Phase::kResume;
  for (std::size_t i = 0; i < engines_.size(); ++i) {
    checkServing(i);
  }
}

void Invariants::onCall(const Call& call, const std::string& engine, Phase phase) {
  if (call.kind == CallKind::kFinish && call.hasVersion && phase != Phase::kFinish) {
    complain("promise 5: a version was sent to " + engine + " in " + std::string(phaseName(phase)));
  }
}

/// Promise 3, after every event: an engine that generates holds one whole model, and the new one
/// only under its own version.
void Invariants::checkServing(std::size_t index) {
  const FakeEngine& engine = *engines_[index];
  if (!engine.alive() || engine.paused()) {
    return;
  }
  if (!engine.whole()) {
    complain("promise 3: " + engine.name() + " generates from torn weights");
    return;
  }
  const bool moved =
      engine.starts() != before_[index].starts || engine.restarts() != before_[index].restarts;
  if (!moved && engine.content() != before_[index].content) {
    complain("promise 3: " + engine.name() + " generates from other weights than before");
  }
  if (engine.content() == push_ && engine.label() != versionOf(push_)) {
    complain("promise 3: " + engine.name() + " generates the new weights as " + engine.label());
  }
  // Resumed by us after a start: only with the new content.
  const bool ours =
      engine.starts() != before_[index].starts && engine.restarts() == before_[index].restarts;
  if (ours && !mayResume_) {
    complain("promise 3: " + engine.name() + " generates before it was proved");
  }
  if (ours && engine.content() != push_) {
    complain("promise 3: " + engine.name() + " was started and generates the old weights");
  }
}

void Invariants::checkOneVerdict(const std::vector<RankEnd>& ends) {
  const RankEnd* first = nullptr;
  for (std::size_t rank = 0; rank < ends.size(); ++rank) {
    const RankEnd& end = ends[rank];
    if (end.gone || !end.ended || !end.known) {
      continue;
    }
    if (end.report.attempts > 2) {
      complain("promise 4: rank " + std::to_string(rank) + " made more than two attempts");
    }
    if (first == nullptr) {
      first = &end;
      continue;
    }
    if (good(first->report) != good(end.report) ||
        (good(end.report) && first->report.outcome != end.report.outcome)) {
      complain("promise 1: rank " + std::to_string(rank) + " says " +
               std::string(pushOutcomeName(end.report.outcome)) + ", another " +
               std::string(pushOutcomeName(first->report.outcome)));
    }
    const Status& mine = end.report.firstCause;
    const Status& theirs = first->report.firstCause;
    if (!first->agreementDead && !end.agreementDead &&
        (mine.message() != theirs.message() || !(mine.origin() == theirs.origin()))) {
      complain("promise 1: rank " + std::to_string(rank) + " names '" + mine.toString() +
               "', another '" + theirs.toString() + "'");
    }
    if (!good(end.report) && mine.ok()) {
      complain("promise 10: rank " + std::to_string(rank) + " failed without a cause");
    }
  }
}

/// Rank 0 does not know that the push is done when it did not hear the last vote. The others may
/// have rank 0's own word by the link.
void Invariants::checkLostVerdict(const std::vector<RankEnd>& ends,
                                  const FaultPlan& plan,
                                  const FaultSite& site) {
  const std::string last = std::string(phaseName(Phase::kVerdict)) + ", step";
  if (plan.kind != FaultKind::kVerdictLost || site.rank != 0 ||
      site.what.find(last) == std::string::npos) {
    return;
  }
  const RankEnd& end = ends[static_cast<std::size_t>(site.rank)];
  if (end.ended && end.known) {
    complain("promise 1: rank " + std::to_string(site.rank) + " says " +
             std::string(pushOutcomeName(end.report.outcome)) +
             ", but never heard the last verdict");
  }
}

void Invariants::checkEngines(const std::vector<RankEnd>& ends, const FaultPlan& plan) {
  const RankEnd& leader = ends.front();
  if (leader.gone || !leader.ended) {
    return;  // P37: nobody takes over; the next job cleans up
  }
  bool anyStart = false;
  for (std::size_t i = 0; i < engines_.size(); ++i) {
    anyStart = anyStart || engines_[i]->starts() != before_[i].starts;
  }
  // The fault may have hit the clean-up itself, or made what is left behind unreadable.
  const bool unclean = plan.second != FaultKind::kNone || plan.kind == FaultKind::kLostReply ||
                       plan.kind == FaultKind::kLostRequest;
  for (std::size_t i = 0; i < engines_.size(); ++i) {
    const FakeEngine& engine = *engines_[i];
    if (!engine.alive()) {
      continue;
    }
    // A rank that was stopped contacts no engine any more, not even to close.
    if (engine.session() && !unclean && !leader.stopped) {
      complain("promise 8: " + engine.name() + " is left with an open session");
    }
    if (good(leader.report) && isDropped(leader.report, engine.name())) {
      if (engine.resumes() != before_[i].resumes) {
        complain("P1: " + engine.name() + " was left out, and resumed");
      }
    } else if (good(leader.report)) {
      const bool restarted = engine.restarts() != before_[i].restarts;
      if (engine.content() != push_ || engine.label() != versionOf(push_)) {
        complain("promise 3: the push is good, but " + engine.name() + " holds content " +
                 std::to_string(engine.content()) + " as " + engine.label() +
                 (restarted ? " after a restart" : ""));
      }
      if (engine.paused()) {
        complain("the push is good, but " + engine.name() + " is still paused");
      }
    } else if (!anyStart && !before_[i].paused && engine.paused() &&
               plan.second == FaultKind::kNone && plan.kind == FaultKind::kCancel) {
      complain("P3: " + engine.name() + " was not put back");
    }
  }
}

/// With quarantine and another engine, one engine's fault never ends a push: it is sent again, or
/// goes on without it. An init without an answer holds up the others', so that none can be blamed.
bool mustGoOn(const FaultPlan& plan, const FaultSite& site) {
  const bool silentInit = site.phase == Phase::kChannel && (plan.kind == FaultKind::kLostReply ||
                                                            plan.kind == FaultKind::kLostRequest);
  return plan.quarantine && plan.engines > 1 && plan.second == FaultKind::kNone && !silentInit &&
         seamOf(plan.kind) == Seam::kEngine && site.phase != Phase::kFailing;
}

bool mustRecover(const FaultPlan& plan, const FaultSite& site) {
  const bool window = site.phase >= Phase::kClean && site.phase <= Phase::kConfirm;
  if (plan.second != FaultKind::kNone) {
    return false;
  }
  switch (plan.kind) {
    case FaultKind::kNone:
      return true;
    case FaultKind::kRefused:
    case FaultKind::k5xxBefore:
    case FaultKind::k5xxAfter:
    case FaultKind::kRestart:
      return window;
    case FaultKind::kLostReply:
    case FaultKind::kLostRequest:
      // An init that reached its limit is final (P2).
      return window && site.phase != Phase::kChannel;
    case FaultKind::kThrows:
    case FaultKind::kHangs:
    case FaultKind::kHangsDeaf:
    case FaultKind::kPlaneFails:
      return window;
    default:
      return false;
  }
}

void Invariants::checkOutcome(const std::vector<RankEnd>& ends,
                              const FaultPlan& plan,
                              const FaultSite& site) {
  const PushReport& report = ends.front().report;
  if (ends.front().gone || !ends.front().known) {
    return;
  }
  if (plan.kind == FaultKind::kNone || !site.hit) {
    if (!report.droppedEngines.empty()) {
      complain("P1: without a fault " + report.droppedEngines.front() + " is left out");
    }
    if (report.outcome != PushOutcome::kDone) {
      complain("without a fault the push ends " + std::string(pushOutcomeName(report.outcome)) +
               ": " + report.firstCause.toString());
    }
    return;
  }
  if (plan.second == FaultKind::kNone &&
      report.firstCause.message().find("the limit of this phase") != std::string::npos) {
    complain("promise 10: a limit hides the cause: " + report.firstCause.toString());
  }
  if ((mustRecover(plan, site) || mustGoOn(plan, site)) && !good(report)) {
    complain("one " + std::string(faultName(plan.kind)) + " in " +
             std::string(phaseName(site.phase)) + " (" + site.what +
             ") ends the push: " + report.firstCause.toString());
  }
}

void Invariants::checkEnd(const std::vector<RankEnd>& ends,
                          const FaultPlan& plan,
                          const FaultSite& site) {
  for (std::size_t rank = 0; rank < ends.size(); ++rank) {
    if (!ends[rank].gone && !ends[rank].ended) {
      complain("promise 2: rank " + std::to_string(rank) + " never ended");
      return;
    }
  }
  checkOneVerdict(ends);
  checkLostVerdict(ends, plan, site);
  checkEngines(ends, plan);
  checkOutcome(ends, plan, site);
}

}  // namespace pushrod::sim
