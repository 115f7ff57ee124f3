// SPDX-License-Identifier: Apache-2.0
#include <ostream>

#include <gtest/gtest.h>

#include "tests/contract/engine_pair.h"

namespace pushrod::contract {
namespace {

struct Release {
  const char* text;
  const char* profile;
  int minor;
};

std::ostream& operator<<(std::ostream& out, const Release& release) {
  return out << release.text;
}

/// Every profile of the reference engine, spoken to by the product's client.
class SessionRulesTest : public ::testing::TestWithParam<Release> {};

TEST_P(SessionRulesTest, IdentifiesAndReads) {
  TestEngine engine(GetParam().text);
  BlockingClient client(engine.port());
  const auto identity = client.connect();
  ASSERT_NE(identity, nullptr);
  EXPECT_EQ(identity->features.profile, GetParam().profile);
  EXPECT_EQ(identity->worldSize, 1);
  EXPECT_EQ(identity->model, "reference");
  EXPECT_EQ(identity->backend, "pushrod_tcp");
  EXPECT_FALSE(identity->asleep);
  EXPECT_EQ(client.run(CallKind::kReadPaused).flag, false);
  EXPECT_EQ(client.run(CallKind::kReadSession).flag, false);
  if (identity->features.hasVersion) {
    EXPECT_EQ(client.run(CallKind::kReadVersion).text, "default");
  } else {
    EXPECT_EQ(client.run(CallKind::kReadVersion).status.outcome(), Outcome::kRejected);
  }
}

TEST_P(SessionRulesTest, AnEmptySessionFromPauseToResume) {
  TestEngine engine(GetParam().text);
  BlockingClient client(engine.port());
  const auto identity = client.connect();
  ASSERT_NE(identity, nullptr);
  EXPECT_TRUE(client.run(CallKind::kPause).status.ok());
  EXPECT_EQ(client.run(CallKind::kReadPaused).flag, true);
  EXPECT_FALSE(client.run(CallKind::kIdentify).identity->asleep) << "only paused";
  const Reply start = client.run(CallKind::kStart);
  EXPECT_TRUE(start.status.ok()) << start.status.message();
  EXPECT_EQ(client.run(CallKind::kReadSession).flag, true);
  const Reply finish = client.finish("v \"7\"");
  EXPECT_TRUE(finish.status.ok()) << finish.status.message();
  EXPECT_EQ(client.run(CallKind::kReadSession).flag, false);
  const Reply flush = client.run(CallKind::kFlush);
  EXPECT_TRUE(flush.status.ok()) << flush.status.message();
  if (identity->features.hasVersion) {
    EXPECT_EQ(client.run(CallKind::kReadVersion).text, "v \"7\"");
    Call marker;
    marker.kind = CallKind::kSetVersion;
    marker.version = "marker";
    EXPECT_TRUE(client.run(marker).status.ok());
    EXPECT_EQ(client.run(CallKind::kReadVersion).text, "marker");
  }
  const Reply shutdown = client.run(CallKind::kShutdown);
  EXPECT_EQ(shutdown.status.ok(), identity->features.hasShutdown) << shutdown.status.message();
  EXPECT_TRUE(client.run(CallKind::kResume).status.ok());
  EXPECT_EQ(client.run(CallKind::kReadPaused).flag, false);
}

TEST_P(SessionRulesTest, RefusalsAreRejectedNotUnknown) {
  TestEngine engine(GetParam().text);
  BlockingClient client(engine.port());
  ASSERT_NE(client.connect(), nullptr);
  Call update;
  update.kind = CallKind::kUpdate;
  update.body = std::make_shared<const std::string>(R"({"names":[],"dtype_names":[],"shapes":[]})");
  for (const Call& call : {update, Call{CallKind::kFinish, nullptr, "", false}}) {
    const Reply reply = client.run(call);
    EXPECT_EQ(reply.status.code(), Code::kFailedPrecondition) << reply.status.message();
    EXPECT_EQ(reply.status.outcome(), Outcome::kRejected);
    EXPECT_EQ(reply.httpStatus, 500);
  }
  EXPECT_TRUE(client.run(CallKind::kStart).status.ok());
  EXPECT_EQ(client.run(CallKind::kStart).status.outcome(), Outcome::kRejected);
  EXPECT_EQ(client.run(CallKind::kReadSession).flag, true);
  EXPECT_TRUE(client.run(CallKind::kFinish).status.ok());
}

TEST_P(SessionRulesTest, AFailedUpdateLeavesTheSessionAsTheProfileSays) {
  TestEngine engine(GetParam().text);
  BlockingClient client(engine.port());
  const auto identity = client.connect();
  ASSERT_NE(identity, nullptr);
  EXPECT_TRUE(client.run(CallKind::kStart).status.ok());
  Call update;
  update.kind = CallKind::kUpdate;
  update.body = std::make_shared<const std::string>(R"({"bogus":1})");
  const Reply failed = client.run(update);
  EXPECT_EQ(failed.status.outcome(), Outcome::kUnknown) << failed.status.message();
  EXPECT_EQ(client.run(CallKind::kReadSession).flag, !identity->features.failedUpdateCloses);
}

INSTANTIATE_TEST_SUITE_P(Releases,
                         SessionRulesTest,
                         ::testing::Values(Release{"0.22", "0.22", 22},
                                           Release{"0.24", "0.23", 24},
                                           Release{"0.25", "0.25", 25},
                                           Release{"0.26", "0.26", 26},
                                           Release{"0.27", "0.27", 27},
                                           Release{"0.29", "0.28", 29},
                                           Release{"0.31", "0.30", 31},
                                           Release{"0.32", "0.32", 32},
                                           Release{"0.33", "0.33", 33}));

TEST(SeveralWorkersTest, LateRepliesAreMeasuredAndMadeUpFor) {
  TestEngine engine("0.32", 2);
  BlockingClient client(engine.port());
  ASSERT_NE(client.connect(), nullptr);
  EXPECT_TRUE(client.run(CallKind::kStart).status.ok());
  EXPECT_EQ(client.run(CallKind::kStart).status.outcome(), Outcome::kRejected);
  const Reply session = client.run(CallKind::kReadSession);
  EXPECT_TRUE(session.status.ok()) << session.status.message();
  EXPECT_EQ(session.flag, true);
  EXPECT_EQ(session.lag, 1);
  const Reply finish = client.finish("7");
  EXPECT_TRUE(finish.status.ok()) << finish.status.message();
  EXPECT_EQ(client.run(CallKind::kReadVersion).text, "7");
  EXPECT_EQ(client.run(CallKind::kReadSession).flag, false);
  EXPECT_TRUE(has(engine.state(), R"("lag":[0,1])")) << engine.state();
  // A new process knows no history and measures the same.
  BlockingClient second(engine.port());
  EXPECT_TRUE(second.run(CallKind::kIdentify).status.ok());
  EXPECT_EQ(second.run(CallKind::kMeasureLag).lag, 1);
  EXPECT_TRUE(second.run(CallKind::kStart).status.ok());
  EXPECT_TRUE(second.run(CallKind::kFinish).status.ok());
}

TEST(SeveralWorkersTest, AWorkerThatFailsAloneIsHeardLate) {
  TestEngine engine("0.32", 2);
  BlockingClient client(engine.port());
  ASSERT_NE(client.connect(), nullptr);
  EXPECT_TRUE(client.run(CallKind::kStart).status.ok());
  EXPECT_FALSE(client.run(CallKind::kStart).status.ok());
  EXPECT_EQ(client.run(CallKind::kReadSession).lag, 1);
  engine.faults(R"([{"route":"finish_weight_update","nth":1,"do":"worker_fails","worker":1}])");
  const Reply finish = client.finish("7");
  EXPECT_FALSE(finish.status.ok()) << "worker 1's failure comes with a later reply";
  EXPECT_EQ(finish.status.outcome(), Outcome::kUnknown);
}

}  // namespace
}  // namespace pushrod::contract
