// SPDX-License-Identifier: Apache-2.0
// Negative controls: what the simulation must catch. One that it does not catch is a test that
// proves nothing.
#include <gtest/gtest.h>

#include "tests/sim/known_bad/decorators.h"
#include "tests/sim/known_bad/send_then_agree.h"

namespace pushrod::sim {
namespace {

using Decorate = std::unique_ptr<EngineClient> (*)(std::unique_ptr<EngineClient>, World&);

constexpr std::uint64_t kMostCalls = 400;

/// Fails every seam call with `kind`; returns the first promise that was seen to break.
std::string caught(Decorate decorate, FaultKind kind) {
  FaultPlan plan{2, 2};
  plan.kind = kind;
  for (plan.k = 1; plan.k < kMostCalls; ++plan.k) {
    World::Options options;
    options.plan = plan;
    options.second = false;
    options.decorate = decorate;
    const Outcome outcome = World(std::move(options)).run();
    if (!outcome.broken.empty()) {
      return outcome.broken.front();
    }
    if (!outcome.hit) {
      break;
    }
  }
  return "";
}

std::unique_ptr<EngineClient> asItIs(std::unique_ptr<EngineClient> inner, World& /*world*/) {
  return inner;
}

TEST(KnownBad, TheProductIsNotCaught) {
  EXPECT_EQ(caught(asItIs, FaultKind::kPlaneFails), "");
  EXPECT_EQ(caught(asItIs, FaultKind::kLostRequest), "");
}

TEST(KnownBad, SendingFirstAndAgreeingAfterwardsHangs) {
  EXPECT_EQ(known_bad::sendThenAgree(3, 0), "") << "it works as long as nothing fails";
  EXPECT_NE(known_bad::sendThenAgree(3, 2), "");
  EXPECT_EQ(known_bad::sendThenAgree(1, 2), "") << "a single rank waits for nobody";
}

TEST(KnownBad, AResendWithoutTheEmptySessionIsTorn) {
  const std::string broken = caught(known_bad::withoutEmptySession, FaultKind::kPlaneFails);
  EXPECT_NE(broken.find("promise 3"), std::string::npos) << broken;
}

TEST(KnownBad, AResumeWithoutProofIsTorn) {
  const std::string broken = caught(known_bad::withoutVerify, FaultKind::kLostRequest);
  EXPECT_NE(broken.find("promise 3"), std::string::npos) << broken;
}

TEST(KnownBad, AFailedUpdateTakenForAGoodOneIsSeen) {
  const std::string broken = caught(known_bad::withoutUpdateCheck, FaultKind::k5xxBefore);
  EXPECT_NE(broken.find("a finish reached"), std::string::npos) << broken;
}

TEST(KnownBad, AStartOverAnOpenSessionIsSeen) {
  const std::string broken = caught(known_bad::withoutStaleClose, FaultKind::kLostReply);
  EXPECT_NE(broken.find("second start"), std::string::npos) << broken;
}

}  // namespace
}  // namespace pushrod::sim
