// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/unit/engines/client_rig.h"

namespace pushrod::engines::vllm {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

constexpr Duration kRequestLimit = minutes(30);

ScriptedReply healthy() {
  return ScriptedReply::json(200, "");
}

TEST(LivenessTest, ADeadCoreEndsTheCallWithinTenSeconds) {
  struct Case {
    std::string name;
    std::vector<ScriptedReply> health;
  };

  const ScriptedReply dead = ScriptedReply::json(503, "");
  for (const Case& c : {Case{"refused", {ScriptedReply::refused()}},
                        Case{"503", {dead}},
                        Case{"503 then refused", {dead, ScriptedReply::refused()}},
                        Case{"silent once", {ScriptedReply::silence(), dead}},
                        Case{"silent between", {dead, ScriptedReply::silence(), dead}}}) {
    ClientRig rig;
    rig.identify();
    rig.on("/update_weights", ScriptedReply::silence());
    rig.on("/health", c.health);
    const TimePoint started = rig.executor.now();
    const Reply reply = rig.run(CallKind::kUpdate, kRequestLimit);
    EXPECT_EQ(reply.status.code(), Code::kUnavailable) << c.name;
    EXPECT_EQ(reply.status.outcome(), Outcome::kUnknown) << c.name;
    EXPECT_LE(rig.executor.now() - started, seconds(10)) << c.name;
    EXPECT_NE(reply.status.message().find("http://fe-b:8000/update_weights"), std::string::npos);
    EXPECT_NE(reply.status.message().find("/health"), std::string::npos);
  }
}

TEST(LivenessTest, ACoreThatDiesLaterIsFoundToo) {
  ClientRig rig;
  rig.identify();
  rig.on("/finish_weight_update", ScriptedReply::silence());
  std::vector<ScriptedReply> health(20, healthy());
  health.push_back(ScriptedReply::refused());
  rig.on("/health", health);
  const TimePoint started = rig.executor.now();
  EXPECT_EQ(rig.run(finishWithVersion("8"), kRequestLimit).status.code(), Code::kUnavailable);
  EXPECT_GE(rig.executor.now() - started, seconds(42));
  EXPECT_LE(rig.executor.now() - started, seconds(52));
}

TEST(LivenessTest, OneBadAnswerBetweenGoodOnesDoesNothing) {
  ClientRig rig;
  rig.identify();
  rig.on("/update_weights",
         ScriptedReply::json(200, R"({"message":"Weights updated"})", seconds(20)));
  rig.on("/health",
         std::vector<ScriptedReply>{ScriptedReply::json(503, ""),
                                    healthy(),
                                    ScriptedReply::refused(),
                                    healthy(),
                                    ScriptedReply::reset(),
                                    ScriptedReply::reset(),
                                    healthy()});
  EXPECT_TRUE(rig.run(CallKind::kUpdate, kRequestLimit).status.ok());
}

TEST(LivenessTest, UnansweredProbesDoNothing) {
  ClientRig rig;
  rig.identify();
  rig.on("/update_weights",
         ScriptedReply::json(200, R"({"message":"Weights updated"})", seconds(60)));
  rig.on("/health", ScriptedReply::silence());
  EXPECT_TRUE(rig.run(CallKind::kUpdate, kRequestLimit).status.ok());
  EXPECT_GE(rig.server().count("GET /health"), 14);
  EXPECT_LE(rig.server().count("GET /health"), 30);
}

TEST(LivenessTest, QuickCallsAreNotProbed) {
  ClientRig rig;
  rig.identify();
  rig.on("/update_weights",
         ScriptedReply::json(200, R"({"message":"Weights updated"})", Duration(1900)));
  EXPECT_TRUE(rig.run(CallKind::kUpdate, kRequestLimit).status.ok());
  EXPECT_EQ(rig.server().count("GET /health"), 0);
}

TEST(LivenessTest, ASilentButLivingEngineEndsByTheDeadline) {
  ClientRig rig;
  rig.identify();
  rig.on("/start_weight_update", ScriptedReply::silence());
  const TimePoint started = rig.executor.now();
  const Reply reply = rig.run(CallKind::kStart, seconds(30));
  EXPECT_EQ(reply.status.code(), Code::kDeadlineExceeded);
  EXPECT_EQ(reply.status.outcome(), Outcome::kUnknown);
  EXPECT_EQ(rig.executor.now() - started, seconds(30));
}

TEST(LivenessTest, ProbesAreCountedLikeOtherRequests) {
  ClientRig rig;
  rig.identify();
  rig.counted.clear();
  rig.on("/update_weights", ScriptedReply::silence());
  rig.on("/health", std::vector<ScriptedReply>{healthy(), ScriptedReply::refused()});
  EXPECT_FALSE(rig.run(CallKind::kUpdate, kRequestLimit).status.ok());
  using metrics::RequestResult;
  EXPECT_EQ(
      rig.counted["health"],
      (std::vector{RequestResult::kOk, RequestResult::kUnreachable, RequestResult::kUnreachable}));
  EXPECT_EQ(rig.counted["update_weights"], std::vector{RequestResult::kUnreachable});
}

}  // namespace
}  // namespace pushrod::engines::vllm
