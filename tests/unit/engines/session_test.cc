// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/unit/engines/client_rig.h"

namespace pushrod::engines::vllm {
namespace {

using std::chrono::seconds;

const std::string kNoSession =
    "finish_weight_update called without a matching start_weight_update.";

TEST(SessionTest, TheFlagIsRead) {
  ClientRig rig;
  rig.identify();
  EXPECT_EQ(rig.run(CallKind::kReadSession).flag, false);
  ASSERT_EQ(rig.server().seen.size(), 1U);
  EXPECT_EQ(rig.server().seen[0].line, "POST /collective_rpc");
  EXPECT_EQ(rig.server().seen[0].body,
            R"({"method":"__getattr__","args":["_weight_update_active"]})");
  rig.on("/collective_rpc", ScriptedReply::json(200, R"({"results":["True"]})"));
  EXPECT_EQ(rig.run(CallKind::kReadSession).flag, true);
}

TEST(SessionTest, WithOneWorkerAnUnreadableFlagIsTriedOut) {
  for (const ScriptedReply& unreadable : {ScriptedReply::json(404, R"({"detail":"Not Found"})"),
                                          ScriptedReply::json(200, "{}"),
                                          workerError("no attribute")}) {
    for (const ScriptedReply& close :
         {workerError(kNoSession),
          ScriptedReply::json(200, R"({"message":"Weight update finished"})")}) {
      ClientRig rig;
      rig.identify();
      rig.on("/collective_rpc", unreadable);
      rig.on("/finish_weight_update", close);
      const Reply reply = rig.run(CallKind::kReadSession);
      EXPECT_TRUE(reply.status.ok()) << reply.status.message();
      EXPECT_EQ(reply.kind, CallKind::kReadSession);
      EXPECT_EQ(reply.flag, false);
      EXPECT_EQ(rig.server().seen.back().line, "POST /finish_weight_update");
      EXPECT_EQ(rig.server().seen.back().body, "{}") << "never with a version";
    }
  }
}

TEST(SessionTest, ACloseThatFailsIsAFailedRead) {
  ClientRig rig;
  rig.identify();
  rig.on("/collective_rpc", ScriptedReply::json(404, ""));
  rig.on("/finish_weight_update", workerError("CUDA error"));
  const Reply reply = rig.run(CallKind::kReadSession);
  EXPECT_EQ(reply.status.code(), Code::kUnavailable);
  EXPECT_FALSE(reply.flag.has_value());
}

TEST(SessionTest, WithSeveralWorkersAnUnreadableFlagLosesTheEngine) {
  ClientRig rig("0.32.0", 2);
  rig.connect();
  rig.on("/collective_rpc", ScriptedReply::json(404, R"({"detail":"Not Found"})"));
  const Reply reply = rig.run(CallKind::kReadSession);
  EXPECT_TRUE(reply.lost);
  EXPECT_FALSE(reply.status.ok());
  EXPECT_EQ(rig.server().count("POST /finish_weight_update"), 0);
}

TEST(SessionTest, NoAnswerIsNeitherTriedOutNorALoss) {
  ClientRig rig;
  rig.identify();
  rig.on("/collective_rpc", ScriptedReply::silence());
  const Reply reply = rig.run(CallKind::kReadSession, seconds(3));
  EXPECT_EQ(reply.status.code(), Code::kDeadlineExceeded);
  EXPECT_FALSE(reply.lost);
  EXPECT_EQ(rig.server().count("POST /finish_weight_update"), 0);
}

}  // namespace
}  // namespace pushrod::engines::vllm
