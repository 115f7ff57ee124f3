// SPDX-License-Identifier: Apache-2.0
// A server with two workers behind one core, whose replies come late after errors. What it is does
// not change; how late it is grows from test to test, as the recorded scenes and the names say.
#include "tests/real_vllm/real_server.h"

namespace pushrod::real_vllm {
namespace {

class TwoWorkers : public RealServerTest {
 protected:
  static void expectRecorded(const std::string& name) {
    const auto recorded =
        contract::Transcript::load(std::string(PUSHROD_SOURCE_DIR) + "/tests/real_vllm/answers",
                                   told("PUSHROD_VLLM_RELEASE") + "-two-workers");
    ASSERT_TRUE(recorded.ok()) << recorded.status().message();
    const auto scene = recorded->scene(name);
    ASSERT_TRUE(scene.ok()) << scene.status().message();
    contract::expectAnswers(port(), *scene);
  }
};

TEST_F(TwoWorkers, TellWhoTheyAre) {
  connect();
  ASSERT_NE(identity_, nullptr);
  EXPECT_EQ(identity_->release, told("PUSHROD_VLLM_RELEASE"));
  EXPECT_EQ(identity_->features.profile, "0.32");
  EXPECT_EQ(identity_->worldSize, 2);
  EXPECT_EQ(identity_->dataParallel, 1);
  EXPECT_EQ(identity_->pipelineStages, 1);
  EXPECT_EQ(identity_->model, "tiny");
  EXPECT_EQ(identity_->backend, "ipc");
  EXPECT_EQ(identity_->dtype, "bfloat16");
  EXPECT_EQ(identity_->executor, "mp");
  EXPECT_FALSE(identity_->asleep);
  expectVersion("default");
  expectPaused(false);
  expectSession(false);
}

TEST_F(TwoWorkers, AnswerAsRecorded) {
  for (const char* name : {"fresh", "sleep", "sessions"}) {
    SCOPED_TRACE(name);
    expectRecorded(name);
  }
}

TEST_F(TwoWorkers, TakeAnEmptyPush) {
  connect();
  emptyPush("1");
  const Reply lag = run(CallKind::kMeasureLag);
  good(lag);
  EXPECT_EQ(lag.lag, 0);
  expectGenerates();
}

TEST_F(TwoWorkers, FallBehindByOneAndAreMadeUpFor) {
  connect();
  good(run(CallKind::kPause));
  good(run(CallKind::kStart));
  refused(run(CallKind::kStart), "already active");
  const Reply lag = run(CallKind::kMeasureLag);
  good(lag);
  EXPECT_EQ(lag.lag, 1);
  expectSession(true);
  good(finish("2"));
  expectSession(false);
  expectVersion("2");
  good(run(CallKind::kResume));
  emptyPush("3");
  expectGenerates();
}

TEST_F(TwoWorkers, AreMeasuredByANewClient) {
  connect();
  const Reply lag = run(CallKind::kMeasureLag);
  good(lag);
  EXPECT_EQ(lag.lag, 1);
  emptyPush("4");
}

// Two more errors, each found by the measurement before the next call.
TEST_F(TwoWorkers, FallBehindFurther) {
  connect();
  good(run(CallKind::kPause));
  refused(finish("never"), "without a matching start_weight_update");
  expectVersion("4");
  good(run(CallKind::kStart));
  refused(run(CallKind::kShutdown), "Cannot release a trainer connection");
  const Reply lag = run(CallKind::kMeasureLag);
  good(lag);
  EXPECT_EQ(lag.lag, 3);
  expectSession(true);
  good(finish("5"));
  emptyPush("6");
  expectGenerates();
}

// Somebody else's error, which the client cannot know of, comes out in its pause: the pause holds
// all the same.
TEST_F(TwoWorkers, SayAnotherCallersErrorInAPause) {
  connect();
  const contract::RawAnswer others =
      contract::exchange(port(), "POST", "/finish_weight_update", R"({"weight_version":"x"})");
  EXPECT_EQ(others.status, 500);
  (void)contract::exchange(port(), "POST", "/reset_mm_cache");
  (void)contract::exchange(port(), "POST", "/reset_mm_cache");
  const Reply pause = run(CallKind::kPause);
  EXPECT_EQ(pause.httpStatus, 500);
  EXPECT_EQ(pause.status.outcome(), Outcome::kUnknown);
  EXPECT_TRUE(contract::has(pause.status.message(), "Failed to pause generation"))
      << pause.status.message();
  expectPaused(true);
  const Reply lag = run(CallKind::kMeasureLag);
  good(lag);
  EXPECT_EQ(lag.lag, 4);
  good(run(CallKind::kResume));
  emptyPush("7");
  expectGenerates();
}

}  // namespace
}  // namespace pushrod::real_vllm
