// SPDX-License-Identifier: Apache-2.0
// Which of two failures with one reason is told as the first cause.
#include <gtest/gtest.h>

#include "tests/sim/world.h"

namespace pushrod::sim {
namespace {

// The connections of an engine that restarts close first; what its update call then answers is the
// cause all the same.
TEST(Cause, AnEnginesAnswerAndNotItsClosedConnection) {
  int stream = 0;
  bool hit = true;
  for (FaultPlan plan{2, 2, FaultKind::kRestart, 1}; hit && plan.k < 400; ++plan.k) {
    const Outcome outcome = simulate(plan);
    hit = outcome.hit;
    if (!hit || outcome.hitIn != Phase::kStream) {
      continue;
    }
    ++stream;
    EXPECT_EQ(outcome.first.front().report.firstCause.message(), "connection reset")
        << plan.replay();
  }
  EXPECT_GT(stream, 0);
}

}  // namespace
}  // namespace pushrod::sim
