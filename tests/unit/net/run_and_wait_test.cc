// SPDX-License-Identifier: Apache-2.0
#include "net/run_and_wait.h"

#include <gtest/gtest.h>

namespace pushrod::net {
namespace {

TEST(RunAndWait, TheTaskHasEndedOnTheControlThread) {
  IoExecutor executor;
  bool there = false;
  runAndWait(executor, [&] { there = executor.onThread(); });
  EXPECT_TRUE(there);
}

TEST(RunAndWait, IsInlineOnTheControlThreadItself) {
  IoExecutor executor;
  int order = 0;
  runAndWait(executor, [&] {
    runAndWait(executor, [&] { order = 1; });
    order = order == 1 ? 2 : -1;
  });
  EXPECT_EQ(order, 2);
}

}  // namespace
}  // namespace pushrod::net
