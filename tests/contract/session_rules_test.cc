// SPDX-License-Identifier: Apache-2.0
// The order of calls from pause to resume, through both arms.
#include <gtest/gtest.h>

#include "tests/contract/arms.h"
#include "tests/contract/pushing.h"

namespace pushrod::contract {
namespace {

constexpr const char* kEmptyLists = R"({"names":[],"dtype_names":[],"shapes":[]})";

class SessionRulesTest : public ContractTest {
 protected:
  SessionRulesTest() : plane_(smallBuffers(), std::chrono::seconds(10)) {}

  ~SessionRulesTest() override { plane_.abort(Status(Code::kCancelled, "the test is over")); }

  void good(const Reply& reply) {
    EXPECT_TRUE(reply.status.ok()) << callName(reply.kind) << ": " << reply.status.message();
  }

  /// Init with the data channel beside it, where there is somebody to open it to.
  void prepare() {
    if (engine_->receives()) {
      openChannel(plane_, *client_, engine_->port(), 1);
    } else {
      good(client_->run(bodyCall(CallKind::kInit, announceTo(plane_, engine_->port(), 1))));
    }
  }

  void update() {
    const Manifest manifest = manifestOf(3);
    const auto info = plane_.updateInfo(manifest);
    ASSERT_TRUE(info.ok());
    std::future<Reply> answer = client_->begin(bodyCall(CallKind::kUpdate, *info));
    if (engine_->receives()) {
      const Status streamed = stream(plane_, manifest);
      EXPECT_TRUE(streamed.ok()) << streamed.message();
    }
    good(await(answer));
  }

  /// From the channel to resumed, for a paused engine without a session.
  void wholePush() {
    prepare();
    good(run(CallKind::kStart));
    EXPECT_TRUE(isOpen());
    update();
    EXPECT_TRUE(isOpen());
    good(finish("7"));
    EXPECT_FALSE(isOpen());
    good(run(CallKind::kFlush));
    const Reply version = run(CallKind::kReadVersion);
    expectRoute(version, identity_->features.hasVersion);
    EXPECT_EQ(version.text, identity_->features.hasVersion ? "7" : "");
    expectRoute(run(CallKind::kShutdown), identity_->features.hasShutdown);
    good(run(CallKind::kResume));
    EXPECT_EQ(run(CallKind::kReadPaused).flag, false);
  }

  transports::tcp::TcpPlane plane_;
};

TEST_P(SessionRulesTest, AWholePush) {
  if (begin("whole-push")) {
    connect();
    good(run(CallKind::kPause));
    EXPECT_EQ(run(CallKind::kReadPaused).flag, true);
    EXPECT_FALSE(run(CallKind::kIdentify).identity->asleep) << "only paused";
    wholePush();
  }
}

// An update that fails, the empty session after it, and the resend.
TEST_P(SessionRulesTest, AnEmptySessionBeforeTheResend) {
  if (begin("empty-session")) {
    connect();
    good(run(CallKind::kPause));
    good(run(CallKind::kStart));
    const Reply failed = client_->run(bodyCall(CallKind::kUpdate, kEmptyLists));
    EXPECT_EQ(failed.httpStatus, 500);
    EXPECT_EQ(failed.status.outcome(), Outcome::kUnknown);
    EXPECT_TRUE(has(failed.status.message(), "not initialized")) << failed.status.message();
    EXPECT_EQ(isOpen(), !identity_->features.failedUpdateCloses);
    if (identity_->features.failedUpdateCloses) {
      good(run(CallKind::kStart));
    }
    good(run(CallKind::kFinish));
    EXPECT_FALSE(isOpen());
    wholePush();
  }
}

TEST_P(SessionRulesTest, RefusalsChangeNothing) {
  if (begin("refusals")) {
    connect();
    expectRefused(client_->run(bodyCall(CallKind::kUpdate, kEmptyLists)),
                  500,
                  "must be called before update_weights");
    for (const Reply& refused : {finish("7"), run(CallKind::kFinish)}) {
      expectRefused(refused,
                    500,
                    identity_->features.failedUpdateCloses
                        ? "without a matching start_weight_update"
                        : "must be called before finish_weight_update");
      EXPECT_EQ(refused.status.code(), Code::kFailedPrecondition);
    }
    EXPECT_FALSE(isOpen());
    good(run(CallKind::kStart));
    expectRefused(run(CallKind::kStart), 500, "already active");
    EXPECT_TRUE(isOpen());
    const bool shuts = identity_->features.hasShutdown;
    expectRefused(run(CallKind::kShutdown),
                  shuts ? 500 : 404,
                  shuts ? "Cannot release a trainer connection" : "Not Found");
    EXPECT_TRUE(isOpen());
    good(run(CallKind::kFinish));
  }
}

INSTANTIATE_TEST_SUITE_P(Contract, SessionRulesTest, ::testing::ValuesIn(settings()), settingName);

// An engine with two workers, one of which answers a call late after an error.
class LateRepliesTest : public ContractTest {
 protected:
  void fallBehind() {
    connect();
    EXPECT_TRUE(run(CallKind::kStart).status.ok());
    expectRefused(run(CallKind::kStart), 500, "already active");
    const Reply session = run(CallKind::kReadSession);
    EXPECT_TRUE(session.status.ok()) << session.status.message();
    EXPECT_EQ(session.flag, true);
    EXPECT_EQ(session.lag, 1);
  }
};

TEST_P(LateRepliesTest, AreMeasuredAndMadeUpFor) {
  if (begin("late-replies", 2)) {
    fallBehind();
    const Reply finished = finish("7");
    EXPECT_TRUE(finished.status.ok()) << finished.status.message();
    EXPECT_EQ(finished.lag, 1);
    const Reply version = run(CallKind::kReadVersion);
    expectRoute(version, identity_->features.hasVersion);
    EXPECT_EQ(version.text, identity_->features.hasVersion ? "7" : "");
    EXPECT_FALSE(isOpen());
  }
}

TEST_P(LateRepliesTest, AWorkerThatFailsAloneIsHeardLate) {
  if (begin("late-failure", 2)) {
    fallBehind();
    engine_->faults(R"([{"route":"finish_weight_update","nth":1,"do":"worker_fails","worker":1}])");
    const Reply finished = finish("7");
    EXPECT_FALSE(finished.status.ok()) << "worker 1's failure comes with a later reply";
    EXPECT_EQ(finished.status.outcome(), Outcome::kUnknown);
    EXPECT_EQ(finished.httpStatus, 500);
  }
}

TEST_P(LateRepliesTest, ANewClientMeasuresTheSame) {
  if (begin("late-new-client", 2)) {
    fallBehind();
    client_ = std::make_unique<BlockingClient>(engine_->port());
    EXPECT_TRUE(run(CallKind::kIdentify).status.ok());
    EXPECT_EQ(run(CallKind::kMeasureLag).lag, 1);
    EXPECT_TRUE(run(CallKind::kFinish).status.ok());
  }
}

INSTANTIATE_TEST_SUITE_P(Contract, LateRepliesTest, ::testing::ValuesIn(settings()), settingName);

}  // namespace
}  // namespace pushrod::contract
