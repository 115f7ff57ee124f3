// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/plan.h"

#include <gtest/gtest.h>

namespace pushrod::orchestrator {
namespace {

TEST(Plan, WhatIsEncodedDecodesToTheSame) {
  const std::vector<std::vector<std::uint64_t>> lists = {
      {1}, {3}, {1, 2, 3}, {2, 7, 1000000007}, {1, 18446744073709551615U}};
  for (const auto& steps : lists) {
    const Plan plan{steps, "", {}};
    const Result<Plan> back = Plan::decode(plan.encode(), steps.back());
    ASSERT_TRUE(back.ok()) << plan.encode() << ": " << back.status().toString();
    EXPECT_EQ(*back, plan);
  }
}

TEST(Plan, TextIsStable) {
  EXPECT_EQ((Plan{{2, 5}, "", {}}).encode(), "plan 1 2 5");
}

TEST(Plan, CarriesTheSegmentsNameAndWhoPacks) {
  const Plan plan{{2, 5}, "00ff", {0, 4, 12}};
  EXPECT_EQ(plan.encode(), "plan 1 2 5 shm 00ff 0 4 12");
  const Result<Plan> back = Plan::decode(plan.encode(), 5);
  ASSERT_TRUE(back.ok()) << back.status().toString();
  EXPECT_EQ(*back, plan);
  EXPECT_TRUE(back->packs(4));
  EXPECT_FALSE(back->packs(1));
  EXPECT_FALSE((Plan{{2}, "", {}}).packs(0));
}

TEST(Plan, ADraftsStepsStandBetween) {
  const Plan plan{{2, 5}, "00ff", {0, 4}, {1, 3}};
  EXPECT_EQ(plan.encode(), "plan 1 2 5 draft 1 3 shm 00ff 0 4");
  const Result<Plan> back = Plan::decode(plan.encode(), 5, 3);
  ASSERT_TRUE(back.ok()) << back.status().message();
  EXPECT_EQ(*back, plan);
  EXPECT_FALSE(Plan::decode(plan.encode(), 5).ok());
  EXPECT_FALSE(Plan::decode("plan 1 2 5", 5, 3).ok());
  EXPECT_FALSE(Plan::decode("plan 1 5 draft 2 1", 5, 1).ok());
  EXPECT_FALSE(Plan::decode("plan 1 5 draft 3 draft 3", 5, 3).ok());
  for (const char* text : {"plan 1 5 shm ",
                           "plan 1 5 shm x",
                           "plan 1 5 shm x 1 1",
                           "plan 1 5 shm",
                           "plan 1 5 shm x -1",
                           "plan 1 5 shm x 0 y",
                           "plan 1 5 tcp x 0",
                           "plan 1 shm x 0",
                           "plan 1 5 shm x 0 shm y 1"}) {
    EXPECT_FALSE(Plan::decode(text, 5).ok()) << text;
  }
}

TEST(Plan, RefusesEverythingElse) {
  struct Case {
    const char* text;
    std::uint64_t tensors;
  };

  const Case cases[] = {
      {"", 3},
      {"plan 1", 3},
      {"plan 1 ", 3},
      {"plan 1 3 ", 3},
      {"plan 1  3", 3},
      {"plan 13", 3},
      {"plan 2 3", 3},
      {"plan 1 2", 3},      // ends too early
      {"plan 1 4", 3},      // ends too late
      {"plan 1 2 2 3", 3},  // does not ascend
      {"plan 1 3 2", 2},
      {"plan 1 -1 3", 3},
      {"plan 1 +3", 3},
      {"plan 1 x", 3},
      {"plan 1 3x", 3},
      {"plan 1 3\n", 3},
      {"plan 1 99999999999999999999", 3},  // more than 64 bits
  };
  for (const Case& test : cases) {
    const Result<Plan> plan = Plan::decode(test.text, test.tensors);
    EXPECT_FALSE(plan.ok()) << '"' << test.text << '"';
    EXPECT_EQ(plan.status().code(), Code::kInternal);
  }
}

}  // namespace
}  // namespace pushrod::orchestrator
