// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/sweep.h"

namespace pushrod::sim {

namespace {

constexpr std::size_t kMostFailures = 20;
constexpr std::uint64_t kMostCalls = 5000;
/// Every so many runs are made twice: the same plan, the same trace.
constexpr std::uint64_t kTwiceEvery = 16;

/// Returns whether all faults of the plan happened.
bool runOne(const FaultPlan& plan, SweepResult& result) {
  const Outcome outcome = simulate(plan);
  ++result.runs;
  result.rows.insert(outcome.rows.begin(), outcome.rows.end());
  for (const std::string& broken : outcome.broken) {
    if (result.failures.size() < kMostFailures) {
      result.failures.push_back(broken + "\n  repeat: " + plan.replay());
    }
  }
  if (result.runs % kTwiceEvery == 0 && simulate(plan).trace != outcome.trace) {
    result.failures.push_back("two runs of one plan differ\n  repeat: " + plan.replay());
  }
  return outcome.hit && (plan.second == FaultKind::kNone || outcome.secondHit);
}

/// Every second fault after the first one of `plan`; returns whether the first happened.
bool runPairs(const Sweep& sweep, FaultPlan plan, SweepResult& result) {
  const bool hit = runOne(plan, result);
  for (const FaultKind second : sweep.seconds) {
    plan.second = second;
    // Another offset for every first fault, so that strides do not always meet the same calls.
    plan.secondK = 1 + plan.k % sweep.secondStride;
    while (hit && plan.secondK < kMostCalls && runOne(plan, result)) {
      plan.secondK += sweep.secondStride;
    }
  }
  return hit;
}

}  // namespace

SweepResult runSweep(const Sweep& sweep) {
  SweepResult result;
  FaultPlan plan{sweep.ranks, sweep.engines};
  plan.oldProfile = sweep.oldProfile;
  plan.quarantine = sweep.quarantine;
  plan.chunked = sweep.chunked;
  plan.pass = sweep.pass;
  (void)runOne(plan, result);
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

}  // namespace pushrod::sim
