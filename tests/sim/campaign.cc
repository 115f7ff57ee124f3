// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/campaign.h"

#include "tests/sim/generator.h"

namespace pushrod::sim {

namespace {

constexpr std::size_t kMostFailures = 5;

bool fails(const FaultPlan& plan, const Runner& run) {
  return !run(plan).broken.empty();
}

FaultPlan withFewerFaults(FaultPlan plan, const Runner& run) {
  for (std::size_t out = plan.faults.size(); out-- > 0;) {
    std::vector<std::size_t> rest;
    for (std::size_t i = 0; i < plan.faults.size(); ++i) {
      if (i != out) {
        rest.push_back(i);
      }
    }
    if (const FaultPlan less = keepOnly(plan, rest); fails(less, run)) {
      plan = less;
    }
  }
  return plan;
}

}  // namespace

FaultPlan shrink(FaultPlan plan, const Runner& run) {
  plan = withFewerFaults(std::move(plan), run);
  for (int engines = 1; engines < plan.engines; ++engines) {
    if (const FaultPlan less = shrunkTo(plan, plan.ranks, engines); fails(less, run)) {
      plan = less;
    }
  }
  for (int ranks = 1; ranks < plan.ranks; ++ranks) {
    if (const FaultPlan less = shrunkTo(plan, ranks, plan.engines); fails(less, run)) {
      plan = less;
    }
  }
  return plan;
}

Campaign runSeeds(std::uint64_t first,
                  std::uint64_t last,
                  std::uint64_t stride,
                  const Runner& run) {
  Campaign campaign;
  for (std::uint64_t seed = first; seed <= last; seed += stride) {
    const FaultPlan plan = randomPlan(seed);
    Outcome outcome = run(plan);
    ++campaign.runs;
    campaign.rows.insert(outcome.rows.begin(), outcome.rows.end());
    if (seed % kTwiceEvery == 0) {
      const Outcome again = run(plan);
      if (again.trace != outcome.trace || again.lastDraw != outcome.lastDraw) {
        outcome.broken.emplace_back("two runs of one plan differ");
      }
    }
    if (outcome.broken.empty() || ++campaign.failed > kMostFailures) {
      continue;
    }
    const FaultPlan small = shrink(plan, run);
    const Outcome last2 = run(small);
    const std::string& why = last2.broken.empty() ? outcome.broken.front() : last2.broken.front();
    campaign.failures.push_back("seed " + std::to_string(seed) + ": " + outcome.broken.front() +
                                "\n  plan: " + plan.text() + "\n  shrunk: " + small.text() +
                                "\n  then: " + why + "\n  repeat: " + small.replay());
  }
  return campaign;
}

}  // namespace pushrod::sim
