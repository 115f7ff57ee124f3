// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/contract/engine_pair.h"
#include "tests/contract/raw_exchange.h"

namespace pushrod::real_vllm {

/// What run.py says of the server that it started.
inline std::string told(const char* variable) {
  const char* const value = std::getenv(variable);
  EXPECT_NE(value, nullptr) << variable << " is missing: start this program by run.py";
  return value == nullptr ? "0" : value;
}

inline std::uint16_t port() {
  return static_cast<std::uint16_t>(std::stoi(told("PUSHROD_VLLM_PORT")));
}

/// The product's client of the server that run.py started, with the backend that needs no GPU. The
/// tests of one suite share that server, in the order of their declarations.
class RealServerTest : public ::testing::Test {
 protected:
  RealServerTest()
      : client_(port(), [](engines::vllm::VllmClientOptions& options) {
          options.transport = TransportKind::kIpc;
        }) {}

  /// Reads who the server is and how late its workers answer.
  void connect() {
    const Reply reply = identify();
    ASSERT_TRUE(reply.status.ok()) << reply.status.message();
    identity_ = reply.identity;
    good(run(CallKind::kMeasureLag));
  }

  /// The first look at a server takes long: it asks the machine about itself.
  Reply identify() {
    Call call;
    std::future<Reply> answer = client_.begin(call, std::chrono::seconds(60));
    if (answer.wait_for(std::chrono::seconds(70)) != std::future_status::ready) {
      ADD_FAILURE() << "no reply";
      return {};
    }
    return answer.get();
  }

  Reply run(CallKind kind) { return client_.run(kind); }

  Reply run(CallKind kind, const std::string& body) {
    Call call;
    call.kind = kind;
    call.body = std::make_shared<const std::string>(body);
    return client_.run(std::move(call));
  }

  Reply setVersion(const std::string& version) {
    Call call;
    call.kind = CallKind::kSetVersion;
    call.version = version;
    return client_.run(std::move(call));
  }

  Reply finish(const std::string& version) { return client_.finish(version); }

  static void good(const Reply& reply) {
    EXPECT_TRUE(reply.status.ok()) << callName(reply.kind) << ": " << reply.status.message();
    EXPECT_FALSE(reply.lost);
  }

  /// Refused by an answer that says `text`, surely without effect.
  static void refused(const Reply& reply, const std::string& text) {
    EXPECT_EQ(reply.httpStatus, 500);
    EXPECT_EQ(reply.status.outcome(), Outcome::kRejected) << reply.status.message();
    EXPECT_EQ(reply.status.code(), Code::kFailedPrecondition) << reply.status.message();
    EXPECT_TRUE(contract::has(reply.status.message(), text)) << reply.status.message();
    EXPECT_FALSE(reply.lost);
  }

  void expectPaused(bool paused) {
    const Reply reply = run(CallKind::kReadPaused);
    good(reply);
    EXPECT_EQ(reply.flag, paused);
  }

  void expectSession(bool open) {
    const Reply reply = run(CallKind::kReadSession);
    good(reply);
    EXPECT_EQ(reply.flag, open);
  }

  void expectVersion(const std::string& version) {
    const Reply reply = run(CallKind::kReadVersion);
    good(reply);
    EXPECT_EQ(reply.text, version);
  }

  /// All that a push asks of an engine, without a tensor.
  void emptyPush(const std::string& version) {
    good(run(CallKind::kPause));
    expectPaused(true);
    expectSession(false);
    good(setVersion("marker"));
    good(run(CallKind::kInit, "{}"));
    good(run(CallKind::kStart));
    expectSession(true);
    good(finish(version));
    expectSession(false);
    good(run(CallKind::kFlush));
    expectVersion(version);
    good(run(CallKind::kResume));
    expectPaused(false);
  }

  /// A request of a user: the server still generates.
  static void expectGenerates() {
    const contract::RawAnswer answer = contract::exchange(
        port(),
        "POST",
        "/inference/v1/generate",
        R"({"model":"tiny","token_ids":[1,2,3,4],"sampling_params":{"max_tokens":4}})");
    EXPECT_EQ(answer.status, 200) << answer.body;
    EXPECT_TRUE(contract::has(answer.body, "token_ids")) << answer.body;
  }

  std::shared_ptr<const EngineIdentity> identity_;
  contract::BlockingClient client_;
};

}  // namespace pushrod::real_vllm
