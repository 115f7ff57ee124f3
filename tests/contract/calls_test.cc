// SPDX-License-Identifier: Apache-2.0
// What each call's answers mean, through both arms.
#include <gtest/gtest.h>

#include "tests/contract/arms.h"
#include "tests/contract/pushing.h"

namespace pushrod::contract {
namespace {

class CallsTest : public ContractTest {};

/// A rule of the reference engine: every request of `route` gets this answer.
std::string answering(const std::string& route, int status, const std::string& body) {
  return R"([{"route":")" + route + R"(","nth":"every","do":"status","status":)" +
         std::to_string(status) + R"(,"body":)" + body + "}]";
}

TEST_P(CallsTest, AnEngineTellsWhatItIs) {
  if (begin("identify")) {
    connect();
    EXPECT_EQ(identity_->worldSize, 1);
    EXPECT_EQ(identity_->dataParallel, 1);
    EXPECT_EQ(identity_->pipelineStages, 1);
    EXPECT_EQ(identity_->executor, "mp");
    EXPECT_EQ(identity_->dtype, "bfloat16");
    EXPECT_EQ(identity_->backend, "pushrod_tcp");
    EXPECT_FALSE(identity_->asleep);
  }
}

TEST_P(CallsTest, TheWorldSizeCountsTheWorkers) {
  if (begin("identify-two", 2)) {
    connect();
    EXPECT_EQ(identity_->worldSize, 2);
    EXPECT_EQ(identity_->dataParallel, 1);
  }
}

TEST_P(CallsTest, RoutesThatAreSwitchedOffAreNamed) {
  if (begin("routes-off")) {
    engine_->faults(
        R"([{"route":"weight_info","nth":"every","do":"status","status":404,
             "body":{"detail":"Not Found"}},
            {"route":"is_sleeping","nth":"every","do":"status","status":404,
             "body":{"detail":"Not Found"}}])");
    const Reply reply = run(CallKind::kIdentify);
    EXPECT_EQ(reply.status.outcome(), Outcome::kRejected);
    EXPECT_EQ(reply.status.code(), Code::kFailedPrecondition);
    EXPECT_TRUE(has(reply.status.message(), "VLLM_SERVER_DEV_MODE=1")) << reply.status.message();
    EXPECT_EQ(reply.identity, nullptr);
  }
}

TEST_P(CallsTest, PausedUntilResumed) {
  if (begin("pause-resume")) {
    connect();
    EXPECT_EQ(run(CallKind::kReadPaused).flag, false);
    for (int i = 0; i < 2; ++i) {
      const Reply pause = run(CallKind::kPause);
      EXPECT_TRUE(pause.status.ok()) << "repeating is harmless: " << pause.status.message();
      EXPECT_EQ(run(CallKind::kReadPaused).flag, true);
    }
    for (int i = 0; i < 2; ++i) {
      const Reply resume = run(CallKind::kResume);
      EXPECT_TRUE(resume.status.ok()) << resume.status.message();
      EXPECT_EQ(run(CallKind::kReadPaused).flag, false);
    }
  }
}

TEST_P(CallsTest, APauseThatFailsSaysWhy) {
  if (begin("pause-fails")) {
    connect();
    engine_->faults(answering("pause", 500, R"({"error":"Failed to …: text"})"));
    const Reply reply = run(CallKind::kPause);
    EXPECT_EQ(reply.httpStatus, 500);
    EXPECT_EQ(reply.status.outcome(), Outcome::kUnknown);
    EXPECT_TRUE(has(reply.status.message(), "answered 500: Failed to")) << reply.status.message();
  }
}

TEST_P(CallsTest, AVersionIsReadAsItWasStored) {
  if (begin("version")) {
    connect();
    const bool there = identity_->features.hasVersion;
    Reply read = run(CallKind::kReadVersion);
    expectRoute(read, there);
    EXPECT_EQ(read.text, there ? "default" : "");
    Call marker;
    marker.kind = CallKind::kSetVersion;
    marker.version = "marker";
    expectRoute(client_->run(marker), there);
    read = run(CallKind::kReadVersion);
    expectRoute(read, there);
    EXPECT_EQ(read.text, there ? "marker" : "");
  }
}

TEST_P(CallsTest, OnlyATextIsAVersion) {
  if (begin("odd-versions")) {
    connect();
    engine_->faults(
        R"([{"route":"weight_info","nth":1,"do":"status","status":200,
             "body":{"weight_version":null}},
            {"route":"weight_info","nth":2,"do":"status","status":200,"body":{}},
            {"route":"weight_info","nth":3,"do":"status","status":200,
             "body":{"weight_version":8}},
            {"route":"weight_info","nth":4,"do":"status","status":200,"body":[]},
            {"route":"weight_info","nth":5,"do":"status","status":200,
             "body":{"weight_version":" 8"}},
            {"route":"weight_info","nth":6,"do":"status","status":404,
             "body":{"detail":"Not Found"}}])");
    if (!identity_->features.hasVersion) {
      expectRoute(run(CallKind::kReadVersion), false);
      return;
    }
    for (int i = 0; i < 4; ++i) {
      const Reply odd = run(CallKind::kReadVersion);
      EXPECT_FALSE(odd.status.ok()) << "read as '" << odd.text << "'";
      EXPECT_EQ(odd.text, "");
      EXPECT_EQ(odd.httpStatus, 200);
    }
    EXPECT_EQ(run(CallKind::kReadVersion).text, " 8") << "to the letter";
    expectRoute(run(CallKind::kReadVersion), false);
  }
}

TEST_P(CallsTest, BlocksThatAreStillHeldAreNoFlush) {
  if (begin("prefix-held")) {
    connect();
    engine_->faults(answering("reset_prefix_cache", 200, R"({"success":false})"));
    const Reply reply = run(CallKind::kFlush);
    if (identity_->features.prefixResetAnswers) {
      expectRefused(reply, 200, "success false");
    } else {
      EXPECT_TRUE(reply.status.ok()) << "an older server does not tell: " << reply.status.message();
    }
  }
}

TEST_P(CallsTest, AnInitWithoutItsInfoIsRefused) {
  if (begin("missing-init-info")) {
    connect();
    const Reply reply = client_->run(bodyCall(CallKind::kInit, "null"));
    expectRefused(reply, 400, "init_info");
    EXPECT_EQ(reply.status.code(), Code::kInvalidArgument);
  }
}

TEST_P(CallsTest, ARouteThatIsMissingIsRefused) {
  if (begin("no-such-route")) {
    connect();
    engine_->faults(answering("start_weight_update", 404, R"({"detail":"Not Found"})"));
    expectRefused(run(CallKind::kStart), 404, "Not Found");
  }
}

TEST_P(CallsTest, AMethodThatIsNotAllowedIsRefused) {
  if (begin("wrong-method")) {
    connect();
    engine_->faults(answering("start_weight_update", 405, R"({"detail":"Method Not Allowed"})"));
    expectRefused(run(CallKind::kStart), 405, "Method Not Allowed");
  }
}

TEST_P(CallsTest, AConflictIsRefused) {
  if (begin("conflict")) {
    connect();
    engine_->faults(answering("start_weight_update", 409, R"({"detail":"Conflict"})"));
    expectRefused(run(CallKind::kStart), 409, "Conflict");
  }
}

TEST_P(CallsTest, AnEngineWithoutWeightTransferRefuses) {
  if (begin("not-configured")) {
    connect();
    engine_->faults(answering(
        "start_weight_update",
        500,
        R"({"error":{"message":"Call to collective_rpc method failed: Weight transfer not configured. Please set weight_transfer_config to enable weight transfer.","type":"InternalServerError","param":null,"code":500}})"));
    expectRefused(run(CallKind::kStart), 500, "Weight transfer not configured");
  }
}

TEST_P(CallsTest, ADeadEngineMayHaveActed) {
  if (begin("engine-dead")) {
    connect();
    engine_->faults(answering(
        "start_weight_update",
        500,
        R"({"error":{"message":"The server had an error while processing your request.","type":"InternalServerError","param":null,"code":500}})"));
    const Reply reply = run(CallKind::kStart);
    EXPECT_EQ(reply.httpStatus, 500);
    EXPECT_EQ(reply.status.code(), Code::kUnavailable);
    EXPECT_EQ(reply.status.outcome(), Outcome::kUnknown);
  }
}

INSTANTIATE_TEST_SUITE_P(Contract, CallsTest, ::testing::ValuesIn(settings()), settingName);

}  // namespace
}  // namespace pushrod::contract
