// SPDX-License-Identifier: Apache-2.0
// Plans that once broke a promise, and their neighbours.
#include <gtest/gtest.h>

#include "tests/sim/world.h"

namespace pushrod::sim {
namespace {

TEST(Regression, PlansThatOnceFailed) {
  FaultPlan unseen{1, 1};
  unseen.kind = FaultKind::kRestartLater;
  unseen.k = 13;
  FaultPlan resumed{1, 1};
  resumed.kind = FaultKind::kResumed;
  resumed.k = 7;
  const auto plan = [](FaultKind kind, std::uint64_t k) {
    FaultPlan made{2, 2};
    made.kind = kind;
    made.k = k;
    return made;
  };
  FaultPlan pair = plan(FaultKind::kRefused, 23);
  pair.second = FaultKind::kRestart;
  pair.secondK = 3;
  for (const FaultPlan& each : {plan(FaultKind::k5xxBefore, 25),
                                plan(FaultKind::k5xxAfter, 17),
                                plan(FaultKind::kRestart, 15),
                                plan(FaultKind::kRestart, 19),
                                plan(FaultKind::kLostReply, 27),
                                plan(FaultKind::kVerdictLost, 37),
                                unseen,
                                resumed,
                                pair}) {
    const Outcome outcome = simulate(each);
    EXPECT_TRUE(outcome.hit) << each.replay();
    for (const std::string& broken : outcome.broken) {
      ADD_FAILURE() << broken << "\n  repeat: " << each.replay();
    }
  }
}

// An engine that waits for its next chunk when another refuses: our end of that wait is no fault of
// its own. With one engine refusing, the others carry the push on.
TEST(Regression, AWaitForAChunkThatWeEndedIsNoRefusal) {
  for (std::uint64_t pace = 1; pace <= 200; ++pace) {
    FaultPlan plan{1, 2};
    plan.seed = pace;
    plan.chunked = true;
    plan.quarantine = true;
    plan.buffer = 1000;
    plan.slowRank = 0;
    plan.verify = false;
    Fault refused;
    refused.kind = FaultKind::k4xx;
    refused.call = CallKind::kUpdate;
    refused.where = 1;
    plan.faults = {refused};
    for (const std::string& broken : simulate(plan).broken) {
      ADD_FAILURE() << broken << "\n  at pace " << pace << ": " << plan.text();
    }
  }
}

// The push's limit may pass at any moment, also in the last one of a resume.
TEST(Regression, ThePushLimitMayPassInAnyMillisecond) {
  for (const bool quarantine : {false, true}) {
    for (int limit = 1; limit <= 600; ++limit) {
      FaultPlan plan{2, 2};
      plan.quarantine = quarantine;
      plan.pushLimit = Duration(limit);
      for (const std::string& broken : simulate(plan).broken) {
        ADD_FAILURE() << broken << "\n  after " << limit << " ms: " << plan.text();
      }
    }
  }
}

// Nor does a wait for what the link may tell outlive the push: of a rank that is gone, of the end.
TEST(Regression, NoWaitForTheLinkOutlivesThePush) {
  for (const FaultKind kind : {FaultKind::kVerdictLost, FaultKind::kRankStops}) {
    for (const int limit : {100, 400, 1000, 1500}) {
      for (FaultPlan plan{2, 1, kind, 1}; plan.k < 400; ++plan.k) {
        plan.pushLimit = Duration(limit);
        const Outcome outcome = simulate(plan);
        for (const std::string& broken : outcome.broken) {
          ADD_FAILURE() << broken << "\n  with a limit of " << limit << " ms: " << plan.replay();
        }
        if (!outcome.hit) {
          break;
        }
      }
    }
  }
}

// An earlier run's session is closed as it stands, by a call that gets no answer: what it held half
// is loaded now, and the engine is not put back. Somebody had resumed it before.
TEST(Regression, AStaleSessionThatMayHaveBeenClosedIsNotPutBack) {
  FaultPlan plan{1, 1};
  plan.starts = {{.session = true}};
  Fault byOther;
  byOther.kind = FaultKind::kResumed;
  Fault then;
  then.chained = true;
  for (const FaultKind kind : {FaultKind::kCancel, FaultKind::kLostReply, FaultKind::k5xxAfter}) {
    then.kind = kind;
    for (then.nth = 1; then.nth < 20; ++then.nth) {
      plan.faults = {byOther, then};
      for (const std::string& broken : simulate(plan).broken) {
        ADD_FAILURE() << broken << "\n  plan: " << plan.text();
      }
    }
  }
}

}  // namespace
}  // namespace pushrod::sim
