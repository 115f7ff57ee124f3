// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/sweep.h"

#include <algorithm>
#include <utility>

namespace pushrod::sim {

namespace {

constexpr std::size_t kMostFailures = 20;
constexpr std::uint64_t kMostCalls = 5000;

bool sameAgain(const FaultPlan& plan, const Outcome& outcome) {
  const Outcome again = simulate(plan);
  return again.trace == outcome.trace && again.lastDraw == outcome.lastDraw;
}

/// Returns whether all faults of the plan happened.
bool runOne(const Sweep& sweep, const FaultPlan& plan, SweepResult& result) {
  const Outcome outcome = simulate(plan);
  ++result.runs;
  result.rows.insert(outcome.rows.begin(), outcome.rows.end());
  for (const std::string& broken : outcome.broken) {
    if (result.failures.size() < kMostFailures) {
      result.failures.push_back(broken + "\n  repeat: " + plan.replay());
    }
  }
  if (result.runs % sweep.twiceEvery == 0 && !sameAgain(plan, outcome)) {
    result.failures.push_back("two runs of one plan differ\n  repeat: " + plan.replay());
  }
  return outcome.hit && (plan.second == FaultKind::kNone || outcome.secondHit);
}

/// Every second fault after the first one of `plan`; returns whether the first happened.
bool runPairs(const Sweep& sweep, FaultPlan plan, SweepResult& result) {
  const bool hit = runOne(sweep, plan, result);
  for (const FaultKind second : sweep.seconds) {
    plan.second = second;
    // Another offset for every first fault, so that strides do not always meet the same calls.
    plan.secondK = 1 + plan.k % sweep.secondStride;
    while (hit && plan.secondK < kMostCalls && runOne(sweep, plan, result)) {
      plan.secondK += sweep.secondStride;
    }
  }
  return hit;
}

}  // namespace

std::vector<FaultKind> everyKind() {
  std::vector<FaultKind> kinds;
  for (std::size_t i = 1; i < kFaultKinds; ++i) {
    kinds.push_back(static_cast<FaultKind>(i));
  }
  return kinds;
}

SweepResult runSweep(const Sweep& sweep) {
  SweepResult result;
  FaultPlan plan{sweep.ranks, sweep.engines};
  plan.oldProfile = sweep.oldProfile;
  plan.quarantine = sweep.quarantine;
  plan.chunked = sweep.chunked;
  plan.pass = sweep.pass;
  plan.draft = sweep.draft;
  plan.replicas = sweep.replicas;
  plan.checksums = sweep.checksums;
  plan.owners = sweep.owners;
  (void)runOne(sweep, plan, result);
  for (const FaultKind kind : sweep.kinds) {
    plan.kind = kind;
    const int victims = kind == FaultKind::kCancel ? sweep.ranks : 1;
    for (plan.victim = 0; plan.victim < victims; ++plan.victim) {
      for (plan.k = 1; plan.k < kMostCalls && runPairs(sweep, plan, result);
           plan.k += sweep.stride) {
      }
    }
    plan.victim = 0;
  }
  return result;
}

namespace {

std::string classOf(const SeamCall& call) {
  return std::to_string(static_cast<int>(call.seam)) + "," +
         std::to_string(std::min(call.rank, 2)) + "," +
         std::string(call.call ? callName(*call.call) : call.what) + "," +
         std::string(phaseName(call.phase)) + (call.draft ? " of the draft," : ",") +
         std::to_string(call.attempt);
}

/// For a fault of this kind, counted from the call `from` on: which call is the first of each
/// class. `engine`: the one that an earlier fault struck; -1: none did, and all engines are alike.
std::vector<std::uint64_t> firstOfEach(FaultKind kind,
                                       const std::vector<SeamCall>& calls,
                                       std::size_t from,
                                       int engine) {
  Fault fault;
  fault.kind = kind;
  std::vector<std::uint64_t> list;
  std::set<std::string> seen;
  std::uint64_t count = 0;
  for (std::size_t i = from; i < calls.size(); ++i) {
    if (fault.fits(calls[i])) {
      ++count;
      const bool same = calls[i].engine == engine;
      if (seen.insert(classOf(calls[i]) + (same ? ",same" : "")).second) {
        list.push_back(count);
      }
    }
  }
  return list;
}

Outcome withCalls(const FaultPlan& plan) {
  World::Options options;
  options.plan = plan;
  options.keepCalls = true;
  options.second = false;
  return World(std::move(options)).run();
}

}  // namespace

SweepResult runPairsOfClasses(const Sweep& sweep) {
  SweepResult result;
  FaultPlan plan{sweep.ranks, sweep.engines};
  plan.oldProfile = sweep.oldProfile;
  plan.quarantine = sweep.quarantine;
  plan.chunked = sweep.chunked;
  plan.draft = sweep.draft;
  plan.owners = sweep.owners;
  const std::vector<SeamCall> calls = withCalls(plan).calls;
  // Another offset for every kind, so that shares do not always meet the same pairs.
  std::uint64_t pair = static_cast<std::uint64_t>(sweep.kinds.front());
  for (const FaultKind kind : sweep.kinds) {
    for (const std::uint64_t k : firstOfEach(kind, calls, 0, -1)) {
      plan.kind = kind;
      plan.k = k;
      plan.second = FaultKind::kNone;
      const Outcome first = withCalls(plan);
      for (const FaultKind second : sweep.seconds) {
        if (first.hits.empty()) {
          continue;
        }
        const FaultSite& hit = first.hits.front();
        for (const std::uint64_t after :
             firstOfEach(second, first.calls, hit.order, hit.at.engine)) {
          plan.second = second;
          plan.secondK = after;
          if (++pair % sweep.stride == 0) {
            (void)runOne(sweep, plan, result);
          }
        }
      }
    }
  }
  return result;
}

}  // namespace pushrod::sim
