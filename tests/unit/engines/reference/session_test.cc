// SPDX-License-Identifier: Apache-2.0
// The worker session table of the contract, row by row, for every release.
#include <string>

#include <gtest/gtest.h>

#include "tests/unit/engines/reference/engine_fixture.h"

namespace pushrod::engines::reference::testing {
namespace {

class Session : public ::testing::TestWithParam<int> {
 protected:
  [[nodiscard]] static int minor() { return GetParam(); }

  TestEngine engine_{profileOptions("0." + std::to_string(GetParam()))};
  TcpSender sender_;
  const std::vector<Sent> model_ = {tensor("model.norm.weight", {8}, 'a')};

  Answer start() { return engine_.post("start_weight_update", "{}"); }

  Answer finish() { return engine_.post("finish_weight_update"); }

  [[nodiscard]] static std::string noSession() {
    return minor() == 22 ? "start_weight_update must be called before finish_weight_update."
                         : "finish_weight_update called without a matching start_weight_update.";
  }
};

TEST_P(Session, StartNeedsNoInitAndEmptySessionEndsWell) {
  EXPECT_EQ(start().status, 200);
  EXPECT_EQ(engine_.state("session"), "open");
  EXPECT_EQ(finish().status, 200);
  EXPECT_EQ(engine_.state("session"), "closed");
}

TEST_P(Session, SecondStartIsRefusedAndSessionStays) {
  start();
  const Answer second = start();
  EXPECT_EQ(second.status, 500);
  EXPECT_TRUE(contains(second.error(),
                       "Call to collective_rpc method failed: Worker failed with error "
                       "'start_weight_update called while a weight update is already active."));
  EXPECT_EQ(engine_.state("session"), "open");
  EXPECT_EQ(finish().status, 200);
}

TEST_P(Session, UpdateWhileIdleIsRefused) {
  engine_.init(sender_);
  const Answer update = engine_.post("update_weights", TcpSender::updateBody(model_));
  EXPECT_EQ(update.status, 500);
  EXPECT_TRUE(
      contains(update.error(), "start_weight_update must be called before update_weights."));
  EXPECT_EQ(engine_.state("connections"), 1) << "the worker refuses before its transport looks";
}

TEST_P(Session, FinishWhileIdleIsRefused) {
  const Answer answer = finish();
  EXPECT_EQ(answer.status, 500);
  EXPECT_TRUE(contains(answer.error(), noSession()));
}

TEST_P(Session, GoodUpdatesKeepItOpenAndFinishCloses) {
  EXPECT_EQ(engine_.init(sender_).status, 200);
  start();
  EXPECT_EQ(engine_.update(sender_, model_).body, R"({"message":"Weights updated"})");
  EXPECT_EQ(engine_.update(sender_, model_).status, 200);
  EXPECT_EQ(engine_.state("session"), "open");
  EXPECT_EQ(finish().body, R"({"message":"Weight update finished"})");
  EXPECT_EQ(engine_.state("session"), "closed");
}

TEST_P(Session, BadRequestKeepsItOpen) {
  start();
  const Answer bad = engine_.post("update_weights", "{}");
  EXPECT_EQ(bad.status, 400);
  EXPECT_EQ(engine_.state("session"), "open");
}

TEST_P(Session, FailedUpdateEndsItFromRelease23) {
  start();
  const Answer update = engine_.post("update_weights", TcpSender::updateBody(model_));
  EXPECT_EQ(update.status, 500);
  EXPECT_TRUE(contains(update.error(), "not initialized"));
  if (minor() == 22) {
    EXPECT_EQ(start().status, 500);
    EXPECT_EQ(finish().status, 200);
  } else {
    EXPECT_EQ(finish().status, 500);
    EXPECT_EQ(start().status, 200);
  }
}

TEST_P(Session, FailedFinishKeepsItOpenAndVersionStays) {
  start();
  engine_.faults(R"([{"route": "finish_weight_update", "nth": 1, "do": "worker_fails"}])");
  EXPECT_EQ(engine_.finish("9").status, 500);
  EXPECT_EQ(engine_.state("version"), "default");
  EXPECT_EQ(start().status, 500) << "the session is open still";
  EXPECT_EQ(engine_.finish("9").status, 200);
  EXPECT_EQ(engine_.state("version"), minor() >= 27 ? "9" : "default");
}

TEST_P(Session, FailedStartStaysIdle) {
  engine_.faults(R"([{"route": "start_weight_update", "nth": 1, "do": "worker_fails"}])");
  EXPECT_EQ(start().status, 500);
  EXPECT_EQ(engine_.state("session"), "closed");
  EXPECT_EQ(start().status, 200);
}

TEST_P(Session, InitIsAllowedWhileActive) {
  start();
  EXPECT_EQ(engine_.init(sender_).body, R"({"message":"Weight transfer initialized"})");
  EXPECT_EQ(engine_.update(sender_, model_).status, 200);
}

TEST_P(Session, DraftNeedsADraftModel) {
  const Answer draft = engine_.post("start_draft_weight_update");
  if (minor() < 26) {
    EXPECT_EQ(draft.status, 404);
    EXPECT_EQ(draft.body, R"({"detail":"Not Found"})");
    return;
  }
  EXPECT_EQ(draft.status, 500);
  EXPECT_TRUE(contains(draft.error(),
                       "Draft model weight update requested, but no draft model is configured."));
  EXPECT_EQ(engine_.state("session"), "closed");
  engine_.post("__ctl", R"({"set": {"draft_model": true}})");
  EXPECT_EQ(engine_.post("start_draft_weight_update").status, 200);
  EXPECT_EQ(engine_.post("start_draft_weight_update").status, 500);
  EXPECT_EQ(finish().status, 200);
}

TEST_P(Session, ShutdownIsRefusedWhileActive) {
  engine_.init(sender_);
  const Answer idle = engine_.post("shutdown_weight_transfer_engine");
  if (minor() < 32) {
    EXPECT_EQ(idle.status, 404);
    return;
  }
  EXPECT_EQ(idle.body, R"({"message":"Weight transfer shut down"})");
  EXPECT_EQ(engine_.state("connections"), 0);
  start();
  const Answer active = engine_.post("shutdown_weight_transfer_engine");
  EXPECT_EQ(active.status, 500);
  EXPECT_TRUE(
      contains(active.error(), "Cannot release a trainer connection during a weight update"));
  const Answer update = engine_.post("update_weights", TcpSender::updateBody(model_));
  EXPECT_TRUE(contains(update.error(), "not initialized"));
}

INSTANTIATE_TEST_SUITE_P(Releases, Session, ::testing::Range(22, 34));

}  // namespace
}  // namespace pushrod::engines::reference::testing
