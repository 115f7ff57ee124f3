// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/generator.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "tests/sim/random.h"

namespace pushrod::sim {

namespace {

constexpr std::uint64_t kMostFaults = 6;
constexpr int kCallsPerEngine = 18;
constexpr int kCallsPerRank = 30;

/// About how many calls of a rank a push makes at a seam.
int callsAt(std::optional<Seam> seam) {
  if (!seam) {
    return kCallsPerRank;
  }
  return *seam == Seam::kVote ? 24 : 8;
}

template <typename Value, std::size_t kCount>
Value oneOf(Random& random, const std::array<Value, kCount>& values) {
  return values.at(random.below(kCount));
}

/// Small worlds mostly: they are quick, and whatever breaks in a large one breaks in a small one.
void drawSize(Random& random, FaultPlan& plan) {
  const std::uint64_t draw = random.below(2000);
  const int mostRanks = draw == 0 ? 64 : draw < 40 ? 12 : draw < 600 ? 5 : 3;
  const int mostEngines = draw == 0 ? 32 : draw < 40 ? 8 : draw < 600 ? 4 : 3;
  plan.ranks = random.between(1, mostRanks);
  plan.engines = random.between(1, mostEngines);
}

void drawConfiguration(Random& random, FaultPlan& plan) {
  plan.chunked = random.chance(40);
  plan.oldProfile = random.chance(20);
  plan.quarantine = random.chance(45);
  plan.wave = random.chance(50) ? random.between(0, 3) : 1;
  plan.minHealthy.percent = random.chance(20);
  plan.minHealthy.value = plan.minHealthy.percent ? random.between(1, 100)
                                                  : random.between(1, std::min(plan.engines, 2));
  plan.tight = random.chance(20);
  plan.buffer = oneOf<std::uint64_t, 4>(random, {1, 16, 20, 1000});
  plan.resend = !random.chance(7);
  plan.flush = !random.chance(10);
  plan.marker = random.chance(15) ? oneOf<VersionMarker, 2>(
                                        random, {VersionMarker::kAlways, VersionMarker::kNever})
                                  : VersionMarker::kAuto;
  plan.wake =
      random.chance(10) ? oneOf<Wake, 2>(random, {Wake::kWeights, Wake::kAll}) : Wake::kFalse;
  plan.versions = !random.chance(4);
  plan.verify = random.chance(plan.versions ? 96 : 25);
  plan.sameVersion = random.chance(20);
  plan.workers = random.chance(25) ? random.between(2, 4) : 1;
  plan.pushes = random.chance(25) ? 2 : 1;
}

void drawConditions(Random& random, FaultPlan& plan) {
  plan.pushLimit = random.chance(6) ? Duration(random.between(50, 5000)) : Duration::zero();
  plan.slowRank = random.chance(15) ? random.between(0, plan.ranks - 1) : -1;
  plan.slowEngine = random.chance(15) ? random.between(0, plan.engines - 1) : -1;
  plan.otherConfig = random.chance(2) ? random.between(0, plan.ranks - 1) : -1;
  plan.pauseTakes = random.chance(15) ? Duration(random.between(1, 200)) : Duration::zero();
  if (!random.chance(40)) {
    return;
  }
  for (int i = 0; i < plan.engines; ++i) {
    EngineStart start;
    start.paused = random.chance(30);
    start.session = random.chance(30);
    start.asleep = random.chance(plan.wake == Wake::kFalse ? 4 : 60);
    start.session = start.session && !start.asleep;
    start.label =
        oneOf<const char*, 8>(random, {"default", "v1", "v1", "v1", "v1", "v10", "V1", ""});
    plan.starts.push_back(std::move(start));
  }
}

/// Where what a push has done stands or falls with an answer.
constexpr std::array<CallKind, 14> kTelling = {CallKind::kUpdate,
                                               CallKind::kUpdate,
                                               CallKind::kFinish,
                                               CallKind::kFinish,
                                               CallKind::kFinish,
                                               CallKind::kStart,
                                               CallKind::kStart,
                                               CallKind::kInit,
                                               CallKind::kReadVersion,
                                               CallKind::kReadSession,
                                               CallKind::kReadPaused,
                                               CallKind::kResume,
                                               CallKind::kSetVersion,
                                               CallKind::kPause};

/// What the time of a fault is compared with by the ranks is drawn around their limits.
Duration drawTime(Random& random, const FaultPlan& plan) {
  const int scale = plan.tight ? 1 : 5;
  return Duration(random.chance(50) ? random.between(1, 300) : random.between(300, 4000) * scale);
}

void drawPlace(Random& random, const FaultPlan& plan, Fault& fault) {
  const std::optional<Seam> seam = seamOf(fault.kind);
  if (seam == Seam::kEngine) {
    fault.where = random.chance(70) ? random.between(0, plan.engines - 1) : -1;
    if (random.chance(60)) {
      fault.call = oneOf(random, kTelling);
      fault.nth = 1 + random.below(2);
      return;
    }
    const int engines = fault.where < 0 ? plan.engines : 1;
    fault.nth = static_cast<std::uint64_t>(random.between(1, engines * kCallsPerEngine));
    return;
  }
  fault.where = random.chance(70) ? random.between(0, plan.ranks - 1) : -1;
  const int ranks = fault.where < 0 ? plan.ranks : 1;
  if (fault.kind == FaultKind::kVerdictLost && random.chance(50)) {
    // The last votes of a push are those that tell its outcome.
    fault.nth = static_cast<std::uint64_t>(ranks * random.between(16, 24));
    return;
  }
  fault.nth = static_cast<std::uint64_t>(random.between(1, ranks * callsAt(seam)));
}

Fault drawFault(Random& random, const FaultPlan& plan, bool first) {
  Fault fault;
  fault.kind = static_cast<FaultKind>(1 + random.below(kFaultKinds - 1));
  if (random.chance(35)) {
    fault.kind = oneOf<FaultKind, 9>(random,
                                     {FaultKind::k5xxBefore,
                                      FaultKind::k5xxAfter,
                                      FaultKind::kLostReply,
                                      FaultKind::kLostRequest,
                                      FaultKind::kRestart,
                                      FaultKind::kThrows,
                                      FaultKind::kPlaneFails,
                                      FaultKind::kVerdictLost,
                                      FaultKind::kLateReply});
  }
  drawPlace(random, plan, fault);
  fault.push = random.between(1, plan.pushes);
  fault.chained = !first && random.chance(40);
  if (fault.chained) {
    fault.nth = 1 + random.below(fault.call ? 1 : 12);
  }
  if (seamOf(fault.kind)) {
    fault.lasts = random.chance(70) ? drawTime(random, plan) : Duration::zero();
    return fault;
  }
  if (fault.kind == FaultKind::kRankStops) {
    fault.lasts = drawTime(random, plan) * 2;
  }
  fault.victim = random.chance(60) ? random.between(0, plan.ranks - 1) : -1;
  fault.delay = random.chance(50) ? Duration(random.between(1, 40)) : Duration::zero();
  return fault;
}

/// Swizzle: a part of the engines or ranks stops within a short time, and they go on in another
/// order.
void drawSwizzle(Random& random, FaultPlan& plan) {
  const bool engines = random.chance(50);
  const int count = engines ? plan.engines : plan.ranks;
  const auto from = static_cast<std::uint64_t>(random.between(1, kCallsPerEngine));
  for (int i = 0; i < count && plan.faults.size() < kMostFaults; ++i) {
    if (random.chance(40)) {
      continue;
    }
    Fault fault;
    fault.kind = engines ? FaultKind::kStalls : FaultKind::kRankStops;
    fault.where = i;
    fault.nth = from + random.below(3);
    fault.lasts = drawTime(random, plan);
    plan.faults.push_back(fault);
  }
}

/// What a push carries and who sends it; over shm rank 0's host sends a target alone.
void drawLoad(Random& random, FaultPlan& plan) {
  plan.replicas = random.chance(20);
  plan.checksums = random.chance(25);
  const bool draft = random.chance(plan.oldProfile ? 5 : 35);
  const int owners = random.chance(30) ? random.between(1, 3) : 0;
  if (plan.chunked) {
    return;
  }
  plan.draft = draft;
  plan.owners = owners;
  plan.targetOnly = draft && random.chance(30) ? random.between(1, plan.pushes) : 0;
  for (EngineStart& start : plan.starts) {
    // A target alone cannot mend what a dead run left of a draft, nor can anybody see it.
    start.draft = draft && plan.targetOnly == 0 && random.chance(50);
  }
}

/// Shorter than any limit: nobody's fault.
std::vector<Duration> drawSkews(Random& random, int count) {
  std::vector<Duration> skews;
  const int most = random.chance(50) ? 30 : 800;
  for (int i = 0; i < count; ++i) {
    skews.emplace_back(random.chance(30) ? 0 : random.between(1, most));
  }
  return skews;
}

}  // namespace

FaultPlan randomPlan(std::uint64_t seed) {
  Random random(seed * 0x2545F4914F6CDD1DU + 1);
  FaultPlan plan;
  plan.seed = seed;
  drawSize(random, plan);
  drawConfiguration(random, plan);
  drawConditions(random, plan);
  if (random.chance(8)) {
    drawSwizzle(random, plan);
  }
  const std::uint64_t draw = random.below(100);
  const std::uint64_t more = draw < 4 ? 0 : draw < 40 ? 1 : draw < 70 ? 2 : 3 + random.below(4);
  while (plan.faults.size() < std::min(more, kMostFaults)) {
    plan.faults.push_back(drawFault(random, plan, plan.faults.empty()));
  }
  plan.pass = random.chance(15);
  drawLoad(random, plan);
  if (plan.provesContent() && plan.faults.size() < kMostFaults && random.chance(30)) {
    Fault corrupt;
    corrupt.kind = FaultKind::kCorrupt;
    corrupt.nth = 1 + random.below(3);
    plan.faults.push_back(corrupt);
  }
  if (random.chance(25)) {
    plan.rankSkews = drawSkews(random, plan.ranks);
  }
  if (random.chance(25)) {
    plan.engineSkews = drawSkews(random, plan.engines);
  }
  return plan;
}

FaultPlan keepOnly(const FaultPlan& plan, const std::vector<std::size_t>& faults) {
  FaultPlan less = plan;
  less.faults.clear();
  less.kept.emplace();
  for (const std::size_t each : faults) {
    if (each < plan.faults.size()) {
      less.faults.push_back(plan.faults[each]);
      less.kept->push_back(plan.kept ? (*plan.kept)[each] : each);
    }
  }
  return less;
}

FaultPlan shrunkTo(const FaultPlan& plan, int ranks, int engines) {
  FaultPlan less = plan;
  less.ranks = ranks;
  less.engines = engines;
  if (less.starts.size() > static_cast<std::size_t>(engines)) {
    less.starts.resize(static_cast<std::size_t>(engines));
  }
  less.slowRank = plan.slowRank < ranks ? plan.slowRank : -1;
  less.slowEngine = plan.slowEngine < engines ? plan.slowEngine : -1;
  less.otherConfig = plan.otherConfig < ranks ? plan.otherConfig : -1;
  for (Fault& fault : less.faults) {
    fault.victim = std::min(fault.victim, ranks - 1);
  }
  return less;
}

}  // namespace pushrod::sim
