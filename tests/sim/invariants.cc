// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/invariants.h"

#include <algorithm>

#include "tests/sim/scenery.h"

namespace pushrod::sim {

namespace {

constexpr std::size_t kMostComplaints = 8;

bool isDropped(const PushReport& report, const std::string& engine) {
  return std::find(report.droppedEngines.begin(), report.droppedEngines.end(), engine) !=
         report.droppedEngines.end();
}

/// Whether one of the faults struck at this engine's calls, and `fits`.
template <typename Fits>
bool struckAt(const std::vector<FaultSite>& hits, std::size_t engine, Fits fits) {
  return std::any_of(hits.begin(), hits.end(), [&](const FaultSite& hit) {
    return hit.at.engine == static_cast<int>(engine) && fits(hit);
  });
}

bool anyFault(const FaultSite& /*hit*/) {
  return true;
}

/// Answers that do not come leave it open what an engine does afterwards.
bool silent(FaultKind kind) {
  return kind == FaultKind::kLostReply || kind == FaultKind::kLostRequest ||
         kind == FaultKind::kLateReply || kind == FaultKind::kStopsReading;
}

}  // namespace

Invariants::Invariants(std::vector<FakeEngine*> engines, const FaultPlan& plan)
    : engines_(std::move(engines)), plan_(plan), limits_(theConfig(plan).timeouts) {}

void Invariants::complain(const std::string& text) {
  const bool known = std::find(broken_.begin(), broken_.end(), text) != broken_.end();
  if (!known && broken_.size() < kMostComplaints) {
    broken_.push_back(text);
  }
}

void Invariants::beginPush(int number, const std::string& version, bool draft) {
  push_ = number;
  draft_ = draft;
  version_ = version;
  mayResume_ = false;
  lost_ = TimePoint::max();
  before_.clear();
  for (const FakeEngine* engine : engines_) {
    const bool asleep = engine->asleep() && plan_.wake == Wake::kFalse;
    const bool same = engine->label() == version && plan_.marker == VersionMarker::kNever;
    before_.push_back(Before{engine->content(),
                             engine->draftContent(),
                             engine->paused(),
                             engine->session(),
                             engine->asleep(),
                             asleep || same,
                             engine->starts(),
                             engine->restarts(),
                             engine->resumes()});
  }
}

/// Whether the push must refuse an engine as it was found, or all.
bool Invariants::mayRefuse() const {
  return (plan_.verify && !plan_.versions) || (draft_ && plan_.oldProfile) ||
         std::any_of(
             before_.begin(), before_.end(), [](const Before& each) { return each.mayRefuse; });
}

void Invariants::check(Phase phase) {
  mayResume_ = mayResume_ || phase == Phase::kResume;
  for (std::size_t i = 0; i < engines_.size(); ++i) {
    const FakeEngine& engine = *engines_[i];
    if (engine.alive() && !engine.paused() && !engine.frozen() && !engine.surprised()) {
      checkServing(i);
    }
  }
}

void Invariants::onCall(const Call& call, std::size_t engine, Phase phase, bool stopped) {
  if (stopped) {
    complain("promise 9: rank 0 was stopped and speaks to " + engines_[engine]->name());
  }
  if (call.kind == CallKind::kFinish && call.hasVersion && phase != Phase::kFinish) {
    complain("promise 5: a version was sent to " + engines_[engine]->name() + " in " +
             std::string(phaseName(phase)));
  }
  if (call.kind == CallKind::kFinish && call.hasVersion && draft_ && !engines_[engine]->atDraft()) {
    complain("P31: a version was sent to " + engines_[engine]->name() + " before its draft model");
  }
}

/// Promise 3, after every event: an engine that generates holds one whole model, and the new one
/// only under its own version.
void Invariants::checkServing(std::size_t index) {
  const FakeEngine& engine = *engines_[index];
  if (!engine.whole()) {
    complain("promise 3: " + engine.name() + " generates from torn weights");
    return;
  }
  const bool moved =
      engine.starts() != before_[index].starts || engine.restarts() != before_[index].restarts;
  const Before& before = before_[index];
  if (!moved && (engine.content() != before.content || engine.draftContent() != before.draft)) {
    complain("promise 3: " + engine.name() + " generates from other weights than before");
  }
  if (plan_.verify && engine.content() == push_ && engine.label() != version_) {
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
  if (ours && draft_ && engine.draftContent() != push_) {
    complain("promise 3: " + engine.name() + " generates with another push's draft model");
  }
}

/// An engine that a good push counts.
void Invariants::checkGood(std::size_t index, const std::vector<FaultSite>& hits) {
  const FakeEngine& engine = *engines_[index];
  const bool restarted = engine.restarts() != before_[index].restarts;
  const bool unseen = struckAt(
      hits, index, [](const FaultSite& hit) { return hit.fault.kind == FaultKind::kRestartLater; });
  const bool labelled = !plan_.verify || engine.label() == version_;
  const bool pair = !draft_ || engine.draftContent() == push_;
  const bool current = engine.content() == push_ && pair && labelled;
  if (!current && !(restarted && (unseen || !plan_.verify))) {
    complain("promise 3: the push is good, but " + engine.name() + " holds content " +
             std::to_string(engine.content()) + " as " + engine.label() +
             (restarted ? " after a restart" : ""));
  }
  // Left for whoever wakes its cache; a restart wakes it, unseen.
  const bool half = plan_.wake == Wake::kWeights && before_[index].asleep;
  if (engine.paused() && !half) {
    complain("the push is good, but " + engine.name() + " is still paused");
  }
}

/// An engine that a good push left out. One that was resumed as proved may be lost afterwards.
void Invariants::checkLeftOut(std::size_t index, const std::vector<FaultSite>& hits) {
  const bool inResume =
      struckAt(hits, index, [](const FaultSite& hit) { return hit.phase == Phase::kResume; });
  const bool tooLate = plan_.tight || plan_.pushLimit > Duration::zero();
  if (engines_[index]->resumes() != before_[index].resumes && !inResume && !tooLate) {
    complain("P1: " + engines_[index]->name() + " was left out, and resumed");
  }
}

void Invariants::checkFailed(std::size_t index, const std::vector<FaultSite>& hits, bool anyStart) {
  const FakeEngine& engine = *engines_[index];
  const bool onlyCancelled = hits.size() == 1 && hits.front().fault.kind == FaultKind::kCancel &&
                             plan_.starts.empty() && sound_;
  if (!anyStart && !before_[index].paused && engine.paused() && onlyCancelled) {
    complain("P3: " + engine.name() + " was not put back");
  }
}

void Invariants::checkEngines(const RankEnd& leader, const std::vector<FaultSite>& hits) {
  if (leader.gone || !leader.ended) {
    return;  // P37: nobody takes over; the next job cleans up
  }
  bool anyStart = false;
  for (std::size_t i = 0; i < engines_.size(); ++i) {
    anyStart = anyStart || engines_[i]->starts() != before_[i].starts;
  }
  for (std::size_t i = 0; i < engines_.size(); ++i) {
    const FakeEngine& engine = *engines_[i];
    if (!engine.alive() || engine.frozen()) {
      continue;
    }
    // The fault may have hit the clean-up itself, or made what is left behind unreadable.
    const bool unclean =
        !sound_ || hits.size() > 1 || plan_.pushLimit > Duration::zero()
            ? !sound_ || plan_.tight || plan_.pushLimit > Duration::zero() ||
                  struckAt(hits, i, anyFault)
            : std::any_of(hits.begin(), hits.end(), [this](const FaultSite& hit) {
                // An engine that reads from a rank that was stopped answers nobody.
                const bool reads = plan_.owners > 0 && hit.fault.kind == FaultKind::kRankStops;
                return reads || silent(hit.fault.kind) || hit.fault.kind == FaultKind::kLost;
              });
    const bool foreign = before_[i].session && engine.starts() == before_[i].starts;
    // A rank that was stopped contacts no engine any more, not even to close.
    if (engine.session() && !unclean && !foreign && !leader.stopped) {
      complain("promise 8: " + engine.name() + " is left with an open session");
    }
    if (!good(leader.report)) {
      checkFailed(i, hits, anyStart);
    } else if (isDropped(leader.report, engine.name())) {
      checkLeftOut(i, hits);
    } else {
      checkGood(i, hits);
    }
  }
}

namespace {

/// With quarantine and another engine, one engine's fault never ends a push: it is sent again, or
/// goes on without it. An init without an answer holds up the others', so that none can be blamed.
bool mustGoOn(const FaultPlan& plan, const FaultSite& site) {
  const FaultKind kind = site.fault.kind;
  const bool silentInit = site.phase == Phase::kChannel &&
                          (silent(kind) || kind == FaultKind::kOneSided ||
                           kind == FaultKind::kFrozen || kind == FaultKind::kRestartLater);
  return plan.quarantine && plan.engines > 1 && !plan.minHealthy.percent &&
         plan.minHealthy.value < plan.engines && plan.resend && !silentInit &&
         seamOf(kind) == Seam::kEngine && site.phase != Phase::kFailing;
}

}  // namespace

bool mustRecover(const FaultPlan& plan, const FaultSite& site) {
  const bool window = site.phase >= Phase::kClean && site.phase <= Phase::kConfirm && plan.resend;
  switch (site.fault.kind) {
    case FaultKind::kRefused:
    case FaultKind::k5xxBefore:
    case FaultKind::k5xxAfter:
    case FaultKind::kRestart:
    case FaultKind::kRestartAfter:
    case FaultKind::kThrows:
    case FaultKind::kHangs:
    case FaultKind::kHangsDeaf:
    case FaultKind::kPlaneFails:
    case FaultKind::kKeepsLabel:
    case FaultKind::kAnswersEarly:
      return window;
    case FaultKind::kCorrupt:
      return window || !plan.provesContent();
    case FaultKind::kStopsReading:
      // Over shm it goes on reading much later, and nothing else can be asked of it until then.
      return window && !plan.chunked;
    case FaultKind::kLostReply:
    case FaultKind::kLostRequest:
    case FaultKind::kLateReply:
      // An init that reached its limit is final (P2).
      return window && site.phase != Phase::kChannel;
    default:
      return site.fault.harmless();
  }
}

/// Whether the ranks compare the copy that a fault made another; the end of a pass has none.
bool Invariants::compared(const FaultSite& site) const {
  const std::string end = ", tensor " + std::to_string(site.at.draft ? kDraftTensors : kTensors);
  return plan_.replicas && plan_.ranks > 1 && !site.what.ends_with(end);
}

void Invariants::checkOutcome(const RankEnd& leader, const std::vector<FaultSite>& hits) {
  const PushReport& report = leader.report;
  if (leader.gone || !leader.known || mayRefuse() || plan_.pushLimit > Duration::zero()) {
    return;
  }
  const bool undisturbed = std::all_of(hits.begin(), hits.end(), [&](const FaultSite& hit) {
    // What is sent is the same on all ranks here.
    return hit.fault.harmless() || (hit.fault.kind == FaultKind::kOtherValues && !compared(hit)) ||
           (hit.fault.kind == FaultKind::kCorrupt && !plan_.provesContent());
  });
  // A stalled engine may use up its share of a limit that many have to share.
  const bool shares = plan_.quarantine && plan_.engines > 3;
  if (hits.empty() || (undisturbed && !plan_.tight && !shares)) {
    if (!report.droppedEngines.empty()) {
      complain("P1: without a fault " + report.droppedEngines.front() + " is left out");
    }
    if (report.outcome != PushOutcome::kDone) {
      complain("without a fault the push ends " + std::string(pushOutcomeName(report.outcome)) +
               ": " + report.firstCause.toString());
    }
    return;
  }
  if (hits.size() > 1 || plan_.tight) {
    return;
  }
  const FaultSite& site = hits.front();
  if (site.fault.kind == FaultKind::kOtherValues && compared(site) && good(report)) {
    complain("P25: the push is good though a rank's copy differed");
  }
  // The first attempt's own label can be told from the second's by a marker only.
  if (plan_.marker == VersionMarker::kNever && site.phase >= Phase::kFinish) {
    return;
  }
  if (report.firstCause.message().find("the limit of this phase") != std::string::npos) {
    complain("promise 10: a limit hides the cause: " + report.firstCause.toString());
  }
  if ((mustRecover(plan_, site) || mustGoOn(plan_, site)) && !good(report)) {
    complain("one " + std::string(faultName(site.fault.kind)) + " in " +
             std::string(phaseName(site.phase)) + " (" + site.what +
             ") ends the push: " + report.firstCause.toString());
  }
}

void Invariants::checkEnd(const std::vector<RankEnd>& ends,
                          const std::vector<FaultSite>& hits,
                          bool sound) {
  for (std::size_t rank = 0; rank < ends.size(); ++rank) {
    if (!ends[rank].gone && !ends[rank].ended) {
      complain("promise 2: rank " + std::to_string(rank) + " never ended");
      return;
    }
  }
  checkInTime(ends, sound && hits.size() == 1);
  checkOneVerdict(ends);
  checkLostVerdict(ends, hits);
  sound_ = sound;
  checkEngines(ends.front(), hits);
  if (sound) {
    checkOutcome(ends.front(), hits);
  }
}

}  // namespace pushrod::sim
