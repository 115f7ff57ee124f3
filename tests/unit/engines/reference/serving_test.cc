// SPDX-License-Identifier: Apache-2.0
// Pause, sleep and generation, and what a busy core still answers.
#include <chrono>
#include <string>

#include <gtest/gtest.h>

#include "tests/unit/engines/reference/engine_fixture.h"

namespace pushrod::engines::reference::testing {
namespace {

using std::chrono::milliseconds;

const std::string kPrompt = R"({"prompt": "x"})";

std::string finishReason(const Answer& answer) {
  return answer.json().at("choices").at(0).at("finish_reason").as_string().c_str();
}

TEST(Pause, AnswersAndShows) {
  TestEngine engine(profileOptions("0.32"));
  EXPECT_EQ(engine.post("pause").body, R"({"status":"paused"})");
  EXPECT_EQ(engine.get("is_paused").body, R"({"is_paused":true})");
  EXPECT_EQ(engine.get("is_sleeping").body, R"({"is_sleeping":true})") << "though only paused";
  EXPECT_TRUE(contains(engine.get("metrics").body,
                       "vllm:engine_sleep_state{engine=\"0\",model_name=\"reference\","
                       "sleep_state=\"awake\"} 1"));
  EXPECT_EQ(engine.post("resume").body, R"({"status":"resumed"})");
  EXPECT_EQ(engine.post("resume").status, 200);
  EXPECT_EQ(engine.get("is_paused").body, R"({"is_paused":false})");
  EXPECT_EQ(engine.state("resumes").as_array().size(), 2U);
}

TEST(Pause, GenerationQueuesUntilTheResume) {
  TestEngine engine(profileOptions("0.32"));
  engine.post("pause?mode=wait");
  auto parked = engine.postLater("v1/completions", kPrompt);
  EXPECT_EQ(parked.wait_for(milliseconds(200)), std::future_status::timeout);
  engine.post("resume");
  EXPECT_EQ(finishReason(parked.get()), "length");
}

TEST(Pause, ReleaseThirtyThreeRefusesGenerationExceptInModeKeep) {
  TestEngine engine(profileOptions("0.33"));
  for (const char* mode : {"abort", "wait"}) {
    engine.post(std::string("pause?mode=") + mode);
    const Answer refused = engine.post("v1/completions", kPrompt);
    EXPECT_EQ(refused.status, 503);
    EXPECT_EQ(refused.error(), "Generation is paused. Please retry after it resumes.");
    EXPECT_EQ(refused.json().at("error").at("type"), "ServiceUnavailableError");
    engine.post("resume");
  }
  engine.post("pause?mode=keep&clear_cache=false");
  auto parked = engine.postLater("v1/completions", kPrompt);
  EXPECT_EQ(parked.wait_for(milliseconds(200)), std::future_status::timeout);
  engine.post("resume");
  EXPECT_EQ(parked.get().status, 200);
}

TEST(Pause, AbortRequestsEndsTheParkedOnes) {
  TestEngine engine(profileOptions("0.32"));
  engine.post("pause?mode=keep");
  auto parked = engine.postLater("v1/completions", kPrompt);
  EXPECT_EQ(parked.wait_for(milliseconds(200)), std::future_status::timeout);
  EXPECT_EQ(engine.post("abort_requests", "{}").body, R"({"status":"aborted","aborted":1})");
  EXPECT_EQ(finishReason(parked.get()), "abort");
  EXPECT_EQ(engine.post("abort_requests", R"({"request_ids": ["no"]})").body,
            R"({"status":"aborted","aborted":1})");
  EXPECT_EQ(engine.post("abort_requests", "[]").status, 400);
}

TEST(Generation, FollowsTheWeights) {
  TestEngine engine(profileOptions("0.32"));
  TcpSender sender;
  engine.init(sender);
  const auto text = [&] {
    const auto answer = engine.post("v1/completions", kPrompt).json();
    return std::string(answer.at("choices").at(0).at("text").as_string().c_str());
  };
  engine.push(sender, {tensor("a", {4}, '1')}, "1");
  const std::string first = text();
  engine.push(sender, {tensor("a", {4}, '2')}, "2");
  EXPECT_NE(text(), first);
  engine.push(sender, {tensor("a", {4}, '1')}, "3");
  EXPECT_EQ(text(), first);
}

class Death : public ::testing::TestWithParam<bool> {};

TEST_P(Death, GenerationInsideASessionOrAfterAFailedUpdateKillsTheCore) {
  TestEngine engine(profileOptions("0.32"));
  engine.post("start_weight_update");
  if (GetParam()) {
    EXPECT_EQ(engine.post("update_weights", TcpSender::updateBody({})).status, 500);
    EXPECT_EQ(engine.state("session"), "closed");
  }
  const Answer answer = engine.post("v1/completions", kPrompt);
  EXPECT_EQ(answer.status, 500);
  EXPECT_TRUE(contains(answer.error(), "EngineCore encountered an issue"));
  EXPECT_EQ(engine.get("health").status, 503);
  HttpProbe probe(engine.port());
  probe.send(HttpProbe::render("POST", "/finish_weight_update", "{}", "application/json"));
  EXPECT_EQ(probe.read(milliseconds(300)).raw, "");
}

INSTANTIATE_TEST_SUITE_P(Broken, Death, ::testing::Bool());

TEST(Generation, AnEmptySessionAfterAFailedUpdateMakesItSafe) {
  TestEngine engine(profileOptions("0.32"));
  engine.post("start_weight_update");
  EXPECT_EQ(engine.post("update_weights", TcpSender::updateBody({})).status, 500);
  engine.post("start_weight_update");
  engine.post("finish_weight_update");
  EXPECT_EQ(engine.post("v1/completions", kPrompt).status, 200);
}

TEST(Sleep, LevelsTagsAndTheMetric) {
  TestEngine engine(profileOptions("0.32"));
  EXPECT_EQ(engine.post("sleep?level=1").body, R"({"status":"sleeping","level":1})");
  EXPECT_TRUE(contains(engine.get("metrics").body, "sleep_state=\"weights_offloaded\"} 1"));
  EXPECT_EQ(engine.post("wake_up?tags=weights").body,
            R"({"status":"sleeping","tags":["weights"]})");
  EXPECT_EQ(engine.post("wake_up?tags=scheduling").body,
            R"({"status":"sleeping","tags":["scheduling"]})");
  EXPECT_EQ(engine.get("is_paused").body, R"({"is_paused":true})") << "a part is asleep still";
  EXPECT_EQ(engine.post("wake_up?tags=kv_cache").body, R"({"status":"awake","tags":["kv_cache"]})");
  EXPECT_EQ(engine.get("is_paused").body, R"({"is_paused":false})") << "the last part resumes";
  engine.post("pause");
  EXPECT_EQ(engine.post("wake_up").body, R"({"status":"awake","tags":null})");
  EXPECT_EQ(engine.get("is_paused").body, R"({"is_paused":false})") << "though nothing slept";
  EXPECT_EQ(engine.post("sleep?level=x").status, 400);
}

TEST(Sleep, AnUpdateWhileAsleepKillsTheEngine) {
  TestEngine engine(profileOptions("0.32"));
  engine.post("start_weight_update");
  engine.post("sleep?level=2");
  HttpProbe probe(engine.port());
  probe.send(
      HttpProbe::render("POST", "/update_weights", TcpSender::updateBody({}), "application/json"));
  EXPECT_EQ(probe.read(milliseconds(300)).raw, "");
  EXPECT_EQ(engine.get("health").status, 503);
}

TEST(Busy, ABlockedUpdateHoldsEngineCallsAndNothingElse) {
  TestEngine engine(profileOptions("0.32"));
  TcpSender sender;
  engine.init(sender);
  engine.post("start_weight_update");
  const std::vector<Sent> model = {tensor("a", {4}, 'a')};
  auto update = engine.postLater("update_weights", TcpSender::updateBody(model));
  sender.raw(std::string(1, '\x01'));
  // The core has the update once the state shows its tensor; then the others queue behind it.
  while (engine.state("weights").as_object().empty()) {
    ASSERT_EQ(update.wait_for(milliseconds(10)), std::future_status::timeout);
  }
  std::vector<std::future<Answer>> waiting;
  for (const char* path : {"pause", "resume", "start_weight_update", "reset_prefix_cache"}) {
    waiting.push_back(engine.postLater(path));
  }
  HttpProbe info(engine.port());
  info.send(HttpProbe::render("GET", "/weight_info", std::nullopt, ""));
  HttpProbe paused(engine.port());
  paused.send(HttpProbe::render("GET", "/is_paused", std::nullopt, ""));
  for (const char* path : {"health", "version", "get_world_size", "metrics", "v1/models"}) {
    EXPECT_EQ(engine.get(path).status, 200) << path;
  }
  EXPECT_EQ(info.read(milliseconds(150)).raw, "");
  EXPECT_EQ(paused.read(milliseconds(50)).raw, "");
  for (auto& one : waiting) {
    EXPECT_EQ(one.wait_for(milliseconds(10)), std::future_status::timeout);
  }
  // The rest of the stream behind the first byte of its header.
  std::string rest(23, '\0');
  rest[7] = 8;
  sender.raw(rest + "aaaaaaaa");
  sender.frame(2, 1, 0, 0, "");
  EXPECT_EQ(update.get().status, 200);
  EXPECT_EQ(info.read().status, 200);
  EXPECT_EQ(paused.read().status, 200);
  for (auto& one : waiting) {
    EXPECT_NE(one.get().status, 0);
  }
}

TEST(Busy, AClientThatLeavesDoesNotCancel) {
  TestEngine engine(profileOptions("0.32"));
  TcpSender sender;
  engine.init(sender);
  engine.post("start_weight_update");
  const std::vector<Sent> model = {tensor("a", {4}, 'a')};
  {
    HttpProbe probe(engine.port());
    probe.send(HttpProbe::render(
        "POST", "/update_weights", TcpSender::updateBody(model), "application/json"));
    while (engine.state("weights").as_object().empty()) {
      ASSERT_EQ(probe.read(milliseconds(10)).raw, "");
    }
  }
  auto finish = engine.postLater("finish_weight_update", R"({"weight_version": "3"})");
  sender.send(model);
  EXPECT_EQ(finish.get().status, 200);
  EXPECT_EQ(engine.weight("a"), sha256(model[0].bytes));
}

TEST(Info, ServerInfoModelsAndPrefix) {
  EngineOptions options = profileOptions("0.31", 4);
  options.pipelineStages = 2;
  options.model = "m";
  options.prefix = "/base";
  TestEngine engine(options);
  EXPECT_EQ(engine.get("health").status, 404);
  const auto info = engine.get("base/server_info?config_format=json").json().at("vllm_config");
  const auto parallel = info.at("parallel_config");
  EXPECT_EQ(parallel.at("tensor_parallel_size"), 2);
  EXPECT_EQ(parallel.at("pipeline_parallel_size"), 2);
  EXPECT_EQ(parallel.at("data_parallel_size"), 1);
  EXPECT_EQ(parallel.at("distributed_executor_backend"), "mp");
  EXPECT_EQ(info.at("weight_transfer_config").at("backend"), "pushrod_tcp");
  EXPECT_EQ(info.at("model_config").at("dtype"), "torch.bfloat16");
  EXPECT_TRUE(engine.get("base/server_info").json().at("vllm_config").is_string());
  EXPECT_EQ(engine.get("base/v1/models").json().at("data").at(0).at("id"), "m");
  EXPECT_EQ(engine.get("base/metrics").body.find("rl_weight_update"), std::string::npos);
}

TEST(Info, OperationsAreCountedFrom32) {
  TestEngine engine(profileOptions("0.32"));
  engine.post("start_weight_update");
  const std::string text = engine.get("metrics").body;
  EXPECT_TRUE(contains(
      text, "vllm:rl_weight_update_operation_duration_seconds_count{operation=\"start\"} 1"));
  EXPECT_TRUE(contains(text, "vllm:rl_weight_update_operations_in_flight{operation=\"start\"} 0"));
}

TEST(Options, WrongOnesAreRefused) {
  net::IoExecutor executor;
  const auto refusal = [&](const EngineOptions& options) {
    return Engine::create(executor, options).status().message();
  };
  EXPECT_TRUE(contains(refusal(profileOptions("0.21")), "no profile \"0.21\""));
  EXPECT_TRUE(contains(refusal(profileOptions("0.32", 0)), "must be positive"));
  EngineOptions odd = profileOptions("0.32", 3);
  odd.pipelineStages = 2;
  EXPECT_TRUE(contains(refusal(odd), "not a multiple"));
  EngineOptions prefix = profileOptions("0.32");
  prefix.prefix = "base/";
  EXPECT_TRUE(contains(refusal(prefix), "prefix"));
  TestEngine running(profileOptions("0.32"));
  EngineOptions taken = profileOptions("0.32");
  taken.port = running.port();
  EXPECT_TRUE(contains(refusal(taken), std::to_string(running.port())));
}

}  // namespace
}  // namespace pushrod::engines::reference::testing
