// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "engines/reference/engine.h"
#include "engines/vllm/factory.h"
#include "http/client.h"
#include "metrics/push_metrics.h"
#include "net/io_executor.h"

namespace pushrod::contract {

/// Longest wait for anything in these tests; a test that reaches it has failed.
inline constexpr std::chrono::seconds kPatience(20);

/// Runs `work` on the control thread and waits for it.
inline void onThread(net::IoExecutor& executor, const std::function<void()>& work) {
  const auto done = std::make_shared<std::promise<void>>();
  std::future<void> future = done->get_future();
  executor.post([work, done] {
    work();
    done->set_value();
  });
  ASSERT_EQ(future.wait_for(kPatience), std::future_status::ready);
}

/// The product's client of an engine, driven from the test's thread.
class BlockingClient {
 public:
  explicit BlockingClient(std::uint16_t port,
                          const std::function<void(engines::vllm::VllmClientOptions&)>& change = {})
      : metrics_(TransportKind::kTcp, {"fe"}) {
    engines::vllm::VllmClientOptions options;
    options.engine.url = "http://127.0.0.1:" + std::to_string(port);
    options.engine.name = "fe";
    options.transport = TransportKind::kTcp;
    if (change) {
      change(options);
    }
    onThread(executor_, [&] {
      auto made = engines::vllm::makeVllmClient(executor_, options, &metrics_, nullptr);
      EXPECT_TRUE(made.ok()) << made.status().message();
      client_ = std::move(*made);
    });
  }

  ~BlockingClient() {
    onThread(executor_, [this] { client_.reset(); });
  }

  BlockingClient(const BlockingClient&) = delete;
  BlockingClient& operator=(const BlockingClient&) = delete;

  /// Starts a call; the future gets its reply.
  std::future<Reply> begin(Call call, Duration limit = std::chrono::seconds(15)) {
    const auto done = std::make_shared<std::promise<Reply>>();
    std::future<Reply> future = done->get_future();
    executor_.post([this, call = std::move(call), limit, done] {
      client_->call(call, Deadline::after(executor_, limit), [done](Reply reply) {
        done->set_value(std::move(reply));
      });
    });
    return future;
  }

  Reply run(Call call, Duration limit = std::chrono::seconds(15)) {
    std::future<Reply> future = begin(std::move(call), limit);
    if (future.wait_for(kPatience) != std::future_status::ready) {
      ADD_FAILURE() << "no reply";
      return {};
    }
    return future.get();
  }

  Reply run(CallKind kind, Duration limit = std::chrono::seconds(15)) {
    Call call;
    call.kind = kind;
    return run(std::move(call), limit);
  }

  Reply finish(const std::string& version) {
    Call call;
    call.kind = CallKind::kFinish;
    call.version = version;
    call.hasVersion = true;
    return run(std::move(call));
  }

  /// Identifies, measures and reports what was learnt; fails the test otherwise.
  std::shared_ptr<const EngineIdentity> connect() {
    const Reply reply = run(CallKind::kIdentify);
    EXPECT_TRUE(reply.status.ok()) << reply.status.message();
    const Reply lag = run(CallKind::kMeasureLag);
    EXPECT_TRUE(lag.status.ok()) << lag.status.message();
    return reply.identity;
  }

  [[nodiscard]] metrics::PushMetrics& metrics() { return metrics_; }

 private:
  metrics::PushMetrics metrics_;
  net::IoExecutor executor_;
  std::unique_ptr<EngineClient> client_;
};

/// A reference engine in this process.
class TestEngine {
 public:
  explicit TestEngine(const std::string& profile = "0.33",
                      int workers = 1,
                      std::uint16_t port = 0) {
    engines::reference::EngineOptions options;
    options.profile = profile;
    options.worldSize = workers;
    options.port = port;
    options.die = [] {};
    auto made = engines::reference::Engine::create(executor_, options);
    EXPECT_TRUE(made.ok()) << made.status().message();
    engine_ = std::move(*made);
  }

  [[nodiscard]] std::uint16_t port() const { return engine_->port(); }

  /// Replaces the engine's faults.
  void faults(const std::string& rules) {
    request("POST", "/__ctl", R"({"faults":)" + rules + "}");
  }

  /// The engine's account of itself.
  [[nodiscard]] std::string state() { return request("GET", "/__state", ""); }

 private:
  std::string request(const std::string& method, const std::string& target, std::string body) {
    const auto done = std::make_shared<std::promise<std::string>>();
    std::future<std::string> future = done->get_future();
    std::unique_ptr<http::Client> client;
    onThread(executor_, [&] {
      auto url = http::Url::parse("http://127.0.0.1:" + std::to_string(port()));
      client = std::move(*http::Client::create(executor_, *url, {}));
      http::Request asked{method, target, nullptr, http::Repeat::kNever};
      if (!body.empty()) {
        asked.body = std::make_shared<const std::string>(std::move(body));
      }
      client->send(asked,
                   Deadline::after(executor_, std::chrono::seconds(10)),
                   [done](Result<http::Response> result) {
                     EXPECT_TRUE(result.ok() && result->status == 200);
                     done->set_value(result ? result->body : "");
                   });
    });
    const bool answered = future.wait_for(kPatience) == std::future_status::ready;
    onThread(executor_, [&client] { client.reset(); });
    EXPECT_TRUE(answered);
    return answered ? future.get() : "";
  }

  net::IoExecutor executor_;
  std::unique_ptr<engines::reference::Engine> engine_;
};

inline bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace pushrod::contract
