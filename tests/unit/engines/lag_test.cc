// SPDX-License-Identifier: Apache-2.0
#include <deque>

#include <gtest/gtest.h>

#include "engines/vllm/lag_meter.h"
#include "tests/unit/engines/client_rig.h"

namespace pushrod::engines::vllm {
namespace {

using std::chrono::seconds;

/// The executor of the contract's 1.6: a call is sent to all workers, replies are read in worker
/// order, and the first failure leaves the later ones unread.
class Workers {
 public:
  struct Answer {
    bool failed = false;
    std::string text;  ///< as it stands in "results", or the error
  };

  explicit Workers(std::size_t count) : queues_(count) {}

  ScriptedReply call(const std::vector<Answer>& answers) {
    for (std::size_t i = 0; i < queues_.size(); ++i) {
      queues_[i].push_back(answers[i]);
    }
    std::string results;
    for (auto& queue : queues_) {
      const Answer front = queue.front();
      queue.pop_front();
      if (front.failed) {
        return workerError(front.text);
      }
      results += (results.empty() ? "" : ",") + front.text;
    }
    return ScriptedReply::json(200, R"({"results":[)" + results + "]}");
  }

  [[nodiscard]] std::vector<Answer> all(const std::string& text) const {
    return std::vector<Answer>(queues_.size(), Answer{false, text});
  }

  [[nodiscard]] std::vector<Answer> ranks() const {
    std::vector<Answer> answers;
    for (std::size_t i = 0; i < queues_.size(); ++i) {
      answers.push_back({false, '"' + std::to_string(i) + '"'});
    }
    return answers;
  }

  ScriptedReply refuseAll(const std::string& text) {
    return call(std::vector<Answer>(queues_.size(), Answer{true, text}));
  }

  [[nodiscard]] int lag() const {
    std::size_t most = 0;
    for (const auto& queue : queues_) {
      most = std::max(most, queue.size());
    }
    return static_cast<int>(most);
  }

 private:
  std::vector<std::deque<Answer>> queues_;
};

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

/// Reads by a meter until it is done; each read is one call to the workers.
LagMeter measure(Workers& model) {
  constexpr std::size_t kHead = std::string_view(R"({"results":[)").size();
  LagMeter meter;
  while (!meter.lag() && !meter.exhausted()) {
    const bool rank = meter.next() == LagMeter::Attribute::kRank;
    const ScriptedReply reply = model.call(rank ? model.ranks() : model.all("\"True\""));
    if (reply.result->status != 200) {
      meter.onFailure();
      continue;
    }
    std::vector<std::string> texts(1);
    for (const char c : reply.result->body.substr(kHead)) {
      if (c == ',') {
        texts.emplace_back();
      } else if (c != '"' && c != ']' && c != '}') {
        texts.back() += c;
      }
    }
    meter.onAnswer(texts);
  }
  return meter;
}

TEST(LagMeterTest, MeasuresRightAfterAnyFailures) {
  for (std::size_t workers = 2; workers <= 4; ++workers) {
    for (int failures = 0; failures <= 6; ++failures) {
      for (int tail = 0; tail < 8; ++tail) {
        Workers model(workers);
        for (int i = 0; i < failures; ++i) {
          model.refuseAll("old");
        }
        // Other calls since: plain ones and reads of the rank, in every order.
        for (int i = 0; i < 3; ++i) {
          model.call((tail >> i) % 2 == 0 ? model.all("null") : model.ranks());
        }
        const LagMeter meter = measure(model);
        EXPECT_LE(meter.reads(), LagMeter::kMaxReads);
        if (meter.lag()) {
          EXPECT_EQ(*meter.lag(), model.lag())
              << workers << " workers, " << failures << " failures, tail " << tail;
        }
      }
    }
  }
}

TEST(LagMeterTest, ASecondMeasurementAgreesWithTheFirst) {
  for (int failures = 0; failures <= 3; ++failures) {
    Workers model(3);
    for (int i = 0; i < failures; ++i) {
      model.refuseAll("old");
    }
    const LagMeter first = measure(model);
    const int reads = first.reads();
    ASSERT_TRUE(first.lag().has_value()) << failures << " failures, " << reads << " reads";
    EXPECT_EQ(*first.lag(), model.lag());
    for (int again = 0; again < 3; ++again) {
      EXPECT_EQ(measure(model).lag(), model.lag()) << failures << " failures";
    }
  }
}

TEST(LagMeterTest, MeasuresUpToTheLargestUsableLag) {
  for (int lag = 0; lag <= 8; ++lag) {
    Workers model(2);
    for (int i = 0; i < lag; ++i) {
      model.refuseAll("old");
    }
    for (int i = 0; i < lag; ++i) {
      model.call(model.all("null"));  // the late errors come out
    }
    ASSERT_EQ(model.lag(), lag);
    EXPECT_EQ(measure(model).lag(), lag);
  }
}

TEST(LagTest, NoLagTakesThreeReads) {
  LaggingRig lagging;
  lagging.rig.identify();
  const Reply reply = lagging.rig.run(CallKind::kMeasureLag);
  EXPECT_TRUE(reply.status.ok());
  EXPECT_EQ(reply.lag, 0);
  EXPECT_FALSE(reply.lost);
  EXPECT_EQ(lagging.harmless(), 3);
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
  EXPECT_EQ(lagging.harmless(), 3);
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
  LaggingRig lagging;
  for (int i = 0; i < 12; ++i) {
    lagging.model.refuseAll(kActive);
  }
  lagging.rig.identify();
  expectLost(lagging.rig.run(CallKind::kMeasureLag));
  EXPECT_LE(lagging.harmless(), LagMeter::kMaxReads);
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
