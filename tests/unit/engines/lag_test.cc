// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "engines/vllm/lag_meter.h"
#include "tests/unit/engines/client_rig.h"
#include "tests/unit/engines/late_workers.h"

namespace pushrod::engines::vllm {
namespace {

using std::chrono::seconds;

/// A rig whose session and collective routes go through Workers.
struct LaggingRig {
  explicit LaggingRig(int workers = 2)
      : rig("0.32.0", workers), model(static_cast<std::size_t>(workers)) {
    const auto plain = rig.server().script;
    rig.server().script = [this, plain](const SeenRequest& request) {
      if (request.line == "POST /collective_rpc") {
        if (request.body.find("\"rank\"") != std::string::npos) {
          return model.call(model.ranks());
        }
        if (request.body.find("_weight_update_active") != std::string::npos) {
          return model.call(model.all(sessionOpen ? R"("True")" : R"("False")"));
        }
        return model.call(model.all("null"));
      }
      if (request.line == "POST /start_weight_update" && !nextStart.empty()) {
        return session(nextStart, plain(request));
      }
      if (request.line.starts_with("POST /") && request.line != "POST /resume" &&
          request.line != "POST /update_weight_version" &&
          request.line != "POST /reset_prefix_cache") {
        return session(model.all("null"), plain(request));
      }
      return plain(request);
    };
  }

  ScriptedReply session(const std::vector<Workers::Answer>& answers, const ScriptedReply& good) {
    ScriptedReply reply = model.call(answers);
    return reply.result->status == 200 ? good : reply;
  }

  [[nodiscard]] int harmless() { return rig.server().count("POST /collective_rpc"); }

  ClientRig rig;
  Workers model;
  std::vector<Workers::Answer> nextStart;
  bool sessionOpen = false;
};

const std::string kActive = "start_weight_update called while a weight update is already active.";

TEST(LagTest, NoLagTakesAllReads) {
  LaggingRig lagging;
  lagging.rig.identify();
  const Reply reply = lagging.rig.run(CallKind::kMeasureLag);
  EXPECT_TRUE(reply.status.ok());
  EXPECT_EQ(reply.lag, 0);
  EXPECT_FALSE(reply.lost);
  EXPECT_EQ(lagging.harmless(), LagMeter::kMaxReads);
}

TEST(LagTest, OneWorkerIsNeverAsked) {
  ClientRig rig;
  rig.identify();
  const Reply reply = rig.run(CallKind::kMeasureLag);
  EXPECT_TRUE(reply.status.ok());
  EXPECT_EQ(reply.lag, 0);
  EXPECT_TRUE(rig.server().seen.empty());
}

TEST(LagTest, OtherExecutorsAreNotAffected) {
  ClientRig rig("0.32.0", 4);
  rig.executorName = "ray";
  rig.identify();
  EXPECT_TRUE(rig.run(CallKind::kMeasureLag).status.ok());
  rig.on("/start_weight_update", workerError(kActive));
  EXPECT_FALSE(rig.run(CallKind::kStart).status.ok());
  EXPECT_TRUE(rig.run(CallKind::kFinish).status.ok());
  EXPECT_EQ(rig.server().count("POST /collective_rpc"), 0);
}

TEST(LagTest, ALagFoundAtConnectIsMadeUpForAfterEachCall) {
  LaggingRig lagging;
  lagging.model.refuseAll(kActive);
  lagging.model.refuseAll(kActive);
  lagging.rig.identify();
  const Reply measured = lagging.rig.run(CallKind::kMeasureLag);
  ASSERT_TRUE(measured.status.ok()) << measured.status.message();
  EXPECT_EQ(measured.lag, lagging.model.lag());
  EXPECT_GE(measured.lag, 2);
  lagging.rig.server().seen.clear();
  const Reply start = lagging.rig.run(CallKind::kStart);
  EXPECT_TRUE(start.status.ok());
  EXPECT_EQ(start.lag, measured.lag);
  EXPECT_EQ(lagging.harmless(), measured.lag);
  lagging.rig.server().seen.clear();
  EXPECT_TRUE(lagging.rig.run(CallKind::kResume).status.ok());
  EXPECT_TRUE(lagging.rig.run(CallKind::kReadVersion).status.ok());
  EXPECT_EQ(lagging.harmless(), 0) << "these do not reach the workers";
}

TEST(LagTest, ALateWorkersErrorCountsAsTheRealCalls) {
  LaggingRig lagging;
  lagging.model.refuseAll(kActive);
  lagging.rig.identify();
  ASSERT_EQ(lagging.rig.run(CallKind::kMeasureLag).lag, lagging.model.lag());
  lagging.nextStart = {{false, "null"}, {true, "CUDA out of memory"}};
  const Reply start = lagging.rig.run(CallKind::kStart);
  EXPECT_EQ(start.status.code(), Code::kUnavailable);
  EXPECT_EQ(start.status.outcome(), Outcome::kUnknown);
  EXPECT_EQ(start.httpStatus, 500);
  EXPECT_NE(start.status.message().find("CUDA out of memory"), std::string::npos);
  EXPECT_NE(start.status.message().find("late reply"), std::string::npos);
  EXPECT_FALSE(start.lost);
}

TEST(LagTest, A500IsMeasuredBeforeTheNextCallOnly) {
  LaggingRig lagging;
  lagging.rig.connect();
  lagging.nextStart = {{true, kActive}, {true, kActive}};
  const Reply refused = lagging.rig.run(CallKind::kStart);
  EXPECT_EQ(refused.status.outcome(), Outcome::kRejected);
  EXPECT_EQ(lagging.harmless(), 0) << "a worker may still be blocked in the call";
  const Reply finish = lagging.rig.run(finishWithVersion("7"));
  EXPECT_TRUE(finish.status.ok()) << finish.status.message();
  EXPECT_EQ(finish.lag, 1);
  EXPECT_EQ(finish.lag, lagging.model.lag());
  const auto lines = lagging.rig.server().lines();
  EXPECT_EQ(lines.front(), "POST /start_weight_update");
  EXPECT_EQ(lines[lines.size() - 2], "POST /finish_weight_update");
  EXPECT_EQ(lines.back(), "POST /collective_rpc");
}

TEST(LagTest, TheSessionFlagIsReadThroughTheLag) {
  LaggingRig lagging;
  lagging.model.refuseAll(kActive);
  lagging.rig.identify();
  lagging.sessionOpen = true;
  EXPECT_EQ(lagging.rig.run(CallKind::kReadSession).flag, true);
  lagging.sessionOpen = false;
  EXPECT_EQ(lagging.rig.run(CallKind::kReadSession).flag, false);
}

TEST(LagTest, AnAnswerLostOnTheWayIsMeasuredToo) {
  LaggingRig lagging;
  lagging.rig.connect();
  lagging.rig.on("/pause", ScriptedReply::json(200, R"({"status":"paused"})"));
  lagging.rig.begin(callOf(CallKind::kStart));
  lagging.rig.client().cancel(Status(Code::kCancelled, "stopped"));
  EXPECT_TRUE(lagging.rig.executor.run());
  lagging.rig.server().seen.clear();
  EXPECT_TRUE(lagging.rig.run(CallKind::kPause).status.ok());
  EXPECT_EQ(lagging.harmless(), LagMeter::kMaxReads);
}

void expectLost(const Reply& reply) {
  EXPECT_TRUE(reply.lost);
  EXPECT_FALSE(reply.status.ok());
  EXPECT_NE(reply.status.message().find("restart the engine"), std::string::npos)
      << reply.status.message();
}

TEST(LagTest, LagWithPipelineStagesLosesTheEngine) {
  LaggingRig lagging;
  lagging.rig.pipelineStages = 2;
  lagging.model.refuseAll(kActive);
  lagging.rig.identify();
  expectLost(lagging.rig.run(CallKind::kMeasureLag));
  lagging.rig.server().seen.clear();
  expectLost(lagging.rig.run(CallKind::kStart));
  EXPECT_TRUE(lagging.rig.server().seen.empty()) << "a lost engine is left alone";
}

TEST(LagTest, PipelineStagesWithoutLagAreFine) {
  LaggingRig lagging;
  lagging.rig.pipelineStages = 2;
  lagging.rig.identify();
  EXPECT_TRUE(lagging.rig.run(CallKind::kMeasureLag).status.ok());
}

TEST(LagTest, LagWithAnUnknownLayoutLosesTheEngineUnlessConfigured) {
  for (const bool configured : {false, true}) {
    LaggingRig lagging;
    lagging.rig.on("/server_info", ScriptedReply::json(404, R"({"detail":"Not Found"})"));
    if (configured) {
      lagging.rig.options.engine.expect.pipelineStages = 1;
    }
    lagging.model.refuseAll(kActive);
    lagging.rig.identify();
    const Reply reply = lagging.rig.run(CallKind::kMeasureLag);
    EXPECT_EQ(reply.lost, !configured);
    EXPECT_EQ(reply.status.ok(), configured);
  }
}

TEST(LagTest, LagWithInternalDataParallelismLosesTheEngine) {
  for (const bool external : {false, true}) {
    LaggingRig lagging(2);
    lagging.rig.serverInfo =
        R"({"vllm_config":{"parallel_config":{"pipeline_parallel_size":1,"data_parallel_size":2,)"
        R"("distributed_executor_backend":"mp"}}})";
    lagging.rig.options.engine.dpGroup = external ? "group" : "";
    lagging.rig.on("/get_world_size",
                   std::vector<ScriptedReply>{ScriptedReply::json(200, R"({"world_size":4})"),
                                              ScriptedReply::json(200, R"({"world_size":2})")});
    lagging.model.refuseAll(kActive);
    lagging.rig.identify();
    EXPECT_EQ(lagging.rig.run(CallKind::kMeasureLag).lost, !external);
  }
}

TEST(LagTest, ALagAboveTheLimitLosesTheEngine) {
  for (const int lag : {8, 9, 12}) {
    LaggingRig lagging;
    for (int i = 0; i < lag; ++i) {
      lagging.model.refuseAll(kActive);
    }
    lagging.rig.identify();
    const Reply reply = lagging.rig.run(CallKind::kMeasureLag);
    if (lag > 8) {
      expectLost(reply);
    } else {
      EXPECT_TRUE(reply.status.ok()) << reply.status.message();
      EXPECT_EQ(reply.lag, lag);
    }
    EXPECT_LE(lagging.harmless(), LagMeter::kMaxReads);
  }
}

TEST(LagTest, WorkersThatCannotBeAskedLoseTheEngine) {
  for (const ScriptedReply& reply : {ScriptedReply::json(404, R"({"detail":"Not Found"})"),
                                     ScriptedReply::json(200, "{}"),
                                     ScriptedReply::json(200, R"({"results":[null,null]})"),
                                     workerError("no attribute")}) {
    ClientRig rig("0.32.0", 2);
    rig.identify();
    rig.on("/collective_rpc", reply);
    expectLost(rig.run(CallKind::kMeasureLag));
    EXPECT_LE(rig.server().count("POST /collective_rpc"), LagMeter::kMaxReads);
  }
}

TEST(LagTest, NoAnswerToAReadIsAFailureNotALoss) {
  ClientRig rig("0.32.0", 2);
  rig.identify();
  rig.on("/collective_rpc", ScriptedReply::silence());
  const Reply reply = rig.run(CallKind::kMeasureLag, seconds(5));
  EXPECT_EQ(reply.status.code(), Code::kDeadlineExceeded);
  EXPECT_FALSE(reply.lost);
}

TEST(LagTest, IdentifyingARestartedEngineForgetsTheLoss) {
  LaggingRig lagging;
  lagging.rig.pipelineStages = 2;
  lagging.model.refuseAll(kActive);
  lagging.rig.identify();
  expectLost(lagging.rig.run(CallKind::kMeasureLag));
  lagging.model = Workers(2);
  lagging.rig.identify();
  EXPECT_TRUE(lagging.rig.run(CallKind::kStart).status.ok());
}

}  // namespace
}  // namespace pushrod::engines::vllm
