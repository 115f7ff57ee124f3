// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "engines/vllm/vllm_client.h"
#include "tests/support/fake_http_client.h"
#include "tests/support/virtual_executor.h"

namespace pushrod::engines::vllm {

using pushrod::testing::FakeHttpClient;
using pushrod::testing::ScriptedReply;
using pushrod::testing::ScriptedServer;
using pushrod::testing::SeenRequest;
using pushrod::testing::VirtualExecutor;

class CapturingSink final : public LogSink {
 public:
  void log(LogLevel, std::string_view text) override { texts.emplace_back(text); }

  std::vector<std::string> texts;
};

/// A scripted vLLM server, a client of it and virtual time. `on` queues answers for one route (its
/// path without the query), used once each, the last for ever; without any the contract's own
/// success is answered.
class ClientRig {
 public:
  explicit ClientRig(std::string version = "0.32.0", int worldSize = 1)
      : version_(std::move(version)),
        worldSize_(worldSize),
        server_(std::make_shared<ScriptedServer>()) {
    options.engine.url = "http://fe-b:8000";
    options.engine.name = "fe-b";
    options.transport = TransportKind::kTcp;
    server_->script = [this](const SeenRequest& request) { return answer(request); };
  }

  void on(const std::string& path, std::vector<ScriptedReply> replies) {
    overrides_[path] = std::deque<ScriptedReply>(replies.begin(), replies.end());
  }

  void on(const std::string& path, ScriptedReply always) {
    on(path, std::vector<ScriptedReply>{std::move(always)});
  }

  VllmClient& client() {
    if (client_ == nullptr) {
      client_ = std::make_unique<VllmClient>(
          executor,
          std::make_unique<FakeHttpClient>(executor, server_),
          std::make_unique<FakeHttpClient>(executor, server_),
          options,
          [this](std::string_view label, metrics::RequestResult result, double) {
            counted[std::string(label)].push_back(result);
          },
          &log);
    }
    return *client_;
  }

  void dropClient() { client_.reset(); }

  /// Makes a call; the reply, when it comes, is in `reply`.
  void begin(Call call, Duration limit = std::chrono::seconds(60)) {
    reply.reset();
    client().call(std::move(call), Deadline::after(executor, limit), [this](Reply answer) {
      ++fired;
      reply = std::move(answer);
    });
  }

  /// A whole call; the reply must come exactly once and leave nothing behind.
  Reply run(Call call, Duration limit = std::chrono::seconds(60)) {
    const int before = fired;
    const TimePoint started = executor.now();
    begin(std::move(call), limit);
    EXPECT_FALSE(reply.has_value()) << "done fired inline";
    EXPECT_TRUE(executor.run());
    EXPECT_EQ(fired, before + 1);
    EXPECT_EQ(executor.pending(), 0U);
    EXPECT_LE(executor.now(), started + limit + std::chrono::seconds(1));
    return reply.value_or(Reply{});
  }

  Reply run(CallKind kind, Duration limit = std::chrono::seconds(60)) {
    Call call;
    call.kind = kind;
    return run(std::move(call), limit);
  }

  /// Identifies and forgets the journal, so that a test sees only its own requests.
  void identify() {
    const Reply identified = run(CallKind::kIdentify);
    EXPECT_TRUE(identified.status.ok()) << identified.status.message();
    server_->seen.clear();
  }

  /// Identifies and measures a lag of 0.
  void connect() {
    identify();
    EXPECT_TRUE(run(CallKind::kMeasureLag).status.ok());
    server_->seen.clear();
  }

  [[nodiscard]] ScriptedServer& server() { return *server_; }

  VllmClientOptions options;
  VirtualExecutor executor;
  CapturingSink log;
  std::map<std::string, std::vector<metrics::RequestResult>> counted;
  std::optional<Reply> reply;
  int fired = 0;
  int coreSize = 0;             ///< answer to include_dp=false; 0: the world size
  std::string serverInfo = "";  ///< body of /server_info; "" makes one up
  int pipelineStages = 1;
  std::string executorName = "mp";
  std::string backend = "pushrod_tcp";
  bool sleeping = false;

 private:
  [[nodiscard]] bool since(int minor) const {
    return std::stoi(version_.substr(version_.find('.') + 1)) >= minor;
  }

  ScriptedReply answer(const SeenRequest& request) {
    const std::size_t space = request.line.find(' ');
    const std::string target = request.line.substr(space + 1);
    const std::string path = target.substr(0, target.find('?'));
    const auto at = overrides_.find(path);
    if (at != overrides_.end() && !at->second.empty()) {
      ScriptedReply next = at->second.front();
      if (at->second.size() > 1) {
        at->second.pop_front();
      }
      return next;
    }
    if (path == "/collective_rpc") {
      return collective(request.body);
    }
    return ScriptedReply::json(200, success(target, path), Duration(1));
  }

  std::string success(const std::string& target, const std::string& path) {
    if (path == "/version") {
      return R"({"version":")" + version_ + R"("})";
    }
    if (path == "/get_world_size") {
      const bool core = target.find("include_dp=false") != std::string::npos && coreSize > 0;
      return R"({"world_size":)" + std::to_string(core ? coreSize : worldSize_) + "}";
    }
    if (path == "/server_info") {
      return serverInfo.empty() ? madeUpInfo() : serverInfo;
    }
    if (path == "/is_sleeping") {
      return sleeping ? R"({"is_sleeping":true})" : R"({"is_sleeping":false})";
    }
    if (path == "/reset_prefix_cache" && !since(26)) {
      return "";
    }
    static const std::map<std::string, std::string> kBodies = {
        {"/v1/models", R"({"object":"list","data":[{"id":"m","object":"model"},{"id":"alias"}]})"},
        {"/weight_info", R"({"weight_version":"default"})"},
        {"/is_paused", R"({"is_paused":true})"},
        {"/pause", R"({"status":"paused"})"},
        {"/resume", R"({"status":"resumed"})"},
        {"/update_weight_version", R"({"success":true})"},
        {"/init_weight_transfer_engine", R"({"message":"Weight transfer initialized"})"},
        {"/shutdown_weight_transfer_engine", R"({"message":"Weight transfer shut down"})"},
        {"/start_weight_update", R"({"message":"Weight update started"})"},
        {"/start_draft_weight_update", R"({"message":"Draft weight update started"})"},
        {"/update_weights", R"({"message":"Weights updated"})"},
        {"/finish_weight_update", R"({"message":"Weight update finished"})"},
        {"/reset_prefix_cache", R"({"success":true})"},
    };
    const auto at = kBodies.find(path);
    return at == kBodies.end() ? "" : at->second;
  }

  [[nodiscard]] std::string madeUpInfo() const {
    return R"({"vllm_config":{"parallel_config":{"tensor_parallel_size":)" +
           std::to_string(worldSize_) + R"(,"pipeline_parallel_size":)" +
           std::to_string(pipelineStages) + R"(,"data_parallel_size":)" +
           std::to_string(coreSize > 0 ? worldSize_ / coreSize : 1) +
           R"(,"distributed_executor_backend":")" + executorName +
           R"("},"model_config":{"dtype":"torch.bfloat16"},"weight_transfer_config":{"backend":")" +
           backend + R"("}},"vllm_env":{},"system_env":{}})";
  }

  /// Each worker answers at once.
  [[nodiscard]] ScriptedReply collective(const std::string& body) const {
    std::string results;
    const int workers = coreSize > 0 ? coreSize : worldSize_;
    for (int i = 0; i < workers; ++i) {
      const std::string entry =
          body.find("\"rank\"") != std::string::npos ? "\"" + std::to_string(i) + "\""
          : body.find("_weight_update_active") != std::string::npos ? "\"False\""
                                                                    : "null";
      results += (i == 0 ? "" : ",") + entry;
    }
    return ScriptedReply::json(200, R"({"results":[)" + results + "]}");
  }

  std::string version_;
  int worldSize_;
  std::shared_ptr<ScriptedServer> server_;
  std::map<std::string, std::deque<ScriptedReply>> overrides_;
  std::unique_ptr<VllmClient> client_;
};

/// A 500 as it comes from a worker behind the multi-process executor.
inline ScriptedReply workerError(const std::string& text) {
  return ScriptedReply::json(
      500,
      R"({"error":{"message":"Call to collective_rpc method failed: Worker failed with error ')" +
          text +
          R"(', please check the stack trace above for the root cause","type":"InternalServerError","param":null,"code":500}})");
}

inline Call callOf(CallKind kind) {
  Call call;
  call.kind = kind;
  return call;
}

inline Call finishWithVersion(const std::string& version) {
  Call call = callOf(CallKind::kFinish);
  call.version = version;
  call.hasVersion = true;
  return call;
}

}  // namespace pushrod::engines::vllm
