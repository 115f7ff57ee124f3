// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/plan.h"

#include <gtest/gtest.h>

namespace pushrod::orchestrator {
namespace {

TEST(Plan, WhatIsEncodedDecodesToTheSame) {
  const std::vector<std::vector<std::uint64_t>> lists = {
      {1}, {3}, {1, 2, 3}, {2, 7, 1000000007}, {1, 18446744073709551615U}};
  for (const auto& steps : lists) {
    const Plan plan{steps};
    const Result<Plan> back = Plan::decode(plan.encode(), steps.back());
    ASSERT_TRUE(back.ok()) << plan.encode() << ": " << back.status().toString();
    EXPECT_EQ(*back, plan);
  }
}

TEST(Plan, TextIsStable) {
  EXPECT_EQ((Plan{{2, 5}}).encode(), "plan 1 2 5");
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
