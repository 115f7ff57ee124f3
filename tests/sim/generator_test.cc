// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/generator.h"

#include <gtest/gtest.h>

#include "tests/sim/campaign.h"
#include "tests/sim/random.h"

namespace pushrod::sim {
namespace {

bool has(const FaultPlan& plan, FaultKind kind) {
  for (const Fault& fault : plan.faults) {
    if (fault.kind == kind) {
      return true;
    }
  }
  return false;
}

// The reference values of SplitMix64 for the seed 0.
TEST(Random, DrawsTheSameNumbersEverywhere) {
  Random random(0);
  EXPECT_EQ(random.next(), 0xE220A8397B1DCDAFU);
  EXPECT_EQ(random.next(), 0x6E789E6AA1B965F4U);
  EXPECT_EQ(random.next(), 0x06C45D188009454FU);
}

TEST(RandomPlan, IsAFunctionOfItsSeed) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    EXPECT_EQ(randomPlan(seed).text(), randomPlan(seed).text());
  }
  EXPECT_NE(randomPlan(1).text(), randomPlan(2).text());
}

TEST(RandomPlan, DrawsEveryKindAndEverySize) {
  std::set<FaultKind> kinds;
  int ranks = 0;
  int engines = 0;
  int skewed = 0;
  std::size_t most = 0;
  for (std::uint64_t seed = 1; seed <= 50'000; ++seed) {
    const FaultPlan plan = randomPlan(seed);
    for (const Fault& fault : plan.faults) {
      kinds.insert(fault.kind);
    }
    most = std::max(most, plan.faults.size());
    skewed += plan.rankSkews.empty() && plan.engineSkews.empty() ? 0 : 1;
    ranks = std::max(ranks, plan.ranks);
    engines = std::max(engines, plan.engines);
  }
  EXPECT_EQ(kinds.size(), kFaultKinds - 1);
  EXPECT_EQ(most, 6U);
  EXPECT_GE(skewed, 10'000);
  EXPECT_GE(ranks, 32);
  EXPECT_GE(engines, 16);
}

// The largest world there is, whatever the generator draws.
TEST(RandomPlan, KeepsThePromisesWith64RanksAnd32Engines) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    const FaultPlan plan = shrunkTo(randomPlan(seed), 64, 32);
    for (const std::string& broken : simulate(plan).broken) {
      ADD_FAILURE() << broken << "\n  plan: " << plan.text() << "\n  repeat: " << plan.replay();
    }
  }
}

TEST(RandomPlan, RunsTwiceTheSame) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    const Outcome once = simulate(randomPlan(seed));
    const Outcome again = simulate(randomPlan(seed));
    EXPECT_EQ(once.trace, again.trace) << seed;
    EXPECT_EQ(once.lastDraw, again.lastDraw) << seed;
  }
}

TEST(Shrink, LeavesTheFaultThatMattersInTheSmallestWorld) {
  const Runner run = [](const FaultPlan& plan) {
    Outcome outcome;
    if (has(plan, FaultKind::kDead) && plan.ranks >= 2) {
      outcome.broken.emplace_back("broken");
    }
    return outcome;
  };
  int shrunk = 0;
  for (std::uint64_t seed = 1; shrunk < 5; ++seed) {
    const FaultPlan plan = randomPlan(seed);
    if (plan.ranks < 3 || plan.engines < 2 || plan.faults.size() < 3 ||
        !has(plan, FaultKind::kDead)) {
      continue;
    }
    ++shrunk;
    const FaultPlan small = shrink(plan, run);
    ASSERT_EQ(small.faults.size(), 1U);
    EXPECT_EQ(small.faults.front().kind, FaultKind::kDead);
    EXPECT_EQ(small.ranks, 2);
    EXPECT_EQ(small.engines, 1);
    ASSERT_TRUE(small.kept.has_value());
    EXPECT_EQ(plan.faults.at(small.kept->front()).text(), small.faults.front().text());
  }
}

}  // namespace
}  // namespace pushrod::sim
