// SPDX-License-Identifier: Apache-2.0
// Pushes of one coordinator through the public interface alone, against an engine in this process.
#include <cstdlib>
#include <mutex>
#include <stdexcept>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <pushrod/pushrod.h>

#include "tests/contract/engine_pair.h"

namespace pushrod::contract {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kTokenVariable = "PUSHROD_COORDINATOR_TEST_TOKEN";
constexpr const char* kToken = "very-secret-token";

/// What a source does at its `at`-th gather of the first pass.
enum class Trouble { kNone, kFails, kThrows };

/// Tensors of four elements in this process's memory.
class Source final : public WeightSource {
 public:
  explicit Source(std::vector<std::string> names) : names_(std::move(names)) {}

  Result<Manifest> manifest() override {
    Manifest manifest;
    for (const std::string& name : names_) {
      manifest.tensors.push_back({name, declared, {4}, 0});
    }
    return manifest;
  }

  Status begin() override {
    next_ = 0;
    return {};
  }

  Result<std::optional<TensorView>> next() override {
    if (next_ == 1 && trouble != Trouble::kNone) {
      const Trouble now = std::exchange(trouble, Trouble::kNone);
      if (now == Trouble::kThrows) {
        throw std::runtime_error("the gather threw");
      }
      return Status(Code::kUnavailable, "the gather failed");
    }
    if (next_ == names_.size()) {
      return std::optional<TensorView>();
    }
    TensorView view;
    view.name = names_[next_++];
    view.dtype = streamed;
    view.shape = {4};
    view.data = values_.data();
    return std::optional(view);
  }

  bool recover() override { return recovers; }

  DType declared = DType::kBfloat16;
  DType streamed = DType::kBfloat16;
  Trouble trouble = Trouble::kNone;
  bool recovers = true;

 private:
  std::vector<std::string> names_;
  std::vector<float> values_ = std::vector<float>(4, 1.0F);
  std::size_t next_ = 0;
};

class Texts final : public LogSink {
 public:
  void log(LogLevel /*level*/, std::string_view text) override {
    const std::lock_guard lock(mutex_);
    all_.append(text).append("\n");
  }

  [[nodiscard]] std::string all() const {
    const std::lock_guard lock(mutex_);
    return all_;
  }

 private:
  mutable std::mutex mutex_;
  std::string all_;
};

class CoordinatorTest : public ::testing::Test {
 protected:
  void SetUp() override { ::setenv(kTokenVariable, kToken, 1); }

  void start(const std::string& push = "{}") {
    const std::string text =
        "engines:\n  token_env: " + std::string(kTokenVariable) +
        "\n  list: [{url: \"http://127.0.0.1:" + std::to_string(engine_.port()) +
        "\", name: fe}]\ntransport: {kind: tcp}\nmetrics: {listen: \"\"}\n"
        "timeouts: {push: 30s, request: 10s, gather: 10s}\npush: " +
        push + "\n";
    const auto config = Config::parse(text, "test.yaml");
    ASSERT_TRUE(config.ok()) << config.status().message();
    auto made = PushCoordinator::create(*config, Rank::of(0, 1), {.logSink = &log_});
    ASSERT_TRUE(made.ok()) << made.status().message();
    coordinator_ = std::move(*made);
  }

  PushReport push(const std::string& version, Source& source) {
    auto report = coordinator_->push({.version = version, .weights = &source});
    EXPECT_TRUE(report.ok()) << report.status().message();
    return report.ok() ? *report : PushReport();
  }

  TestEngine engine_;
  Texts log_;
  std::unique_ptr<PushCoordinator> coordinator_;
};

TEST_F(CoordinatorTest, TheSameVersionTwiceIsProvedTwice) {
  start();
  Source source({"a", "b"});
  EXPECT_EQ(push("7", source).outcome, PushOutcome::kDone);
  EXPECT_EQ(push("7", source).outcome, PushOutcome::kDone);
  EXPECT_TRUE(has(engine_.state(), R"("version":"7")")) << engine_.state();
}

TEST_F(CoordinatorTest, AManifestThatLacksAnEarlierNameIsRefused) {
  start();
  Source whole({"a", "b", "c"});
  Source part({"a", "c"});
  ASSERT_EQ(push("1", whole).outcome, PushOutcome::kDone);
  const PushReport report = push("2", part);
  EXPECT_EQ(report.outcome, PushOutcome::kRefused);
  EXPECT_THAT(report.firstCause.message(), HasSubstr("first b"));
  EXPECT_THAT(report.firstCause.message(), HasSubstr("push.partial"));
  EXPECT_TRUE(has(engine_.state(), R"("version":"1")")) << engine_.state();
  EXPECT_TRUE(has(engine_.state(), R"("paused":false)")) << engine_.state();
}

TEST_F(CoordinatorTest, APartialPushIsAllowedByItsKey) {
  start("{partial: true}");
  Source whole({"a", "b", "c"});
  Source part({"a", "c"});
  ASSERT_EQ(push("1", whole).outcome, PushOutcome::kDone);
  EXPECT_EQ(push("2", part).outcome, PushOutcome::kDone);
}

TEST_F(CoordinatorTest, AnEmptyManifestIsRefused) {
  start();
  Source source({});
  const PushReport report = push("1", source);
  EXPECT_EQ(report.outcome, PushOutcome::kRefused);
  EXPECT_THAT(report.firstCause.message(), HasSubstr("at least one tensor"));
}

TEST_F(CoordinatorTest, AFloatInAnotherDtypeIsCastAndCounted) {
  start();
  Source source({"a", "b"});
  source.streamed = DType::kFloat32;
  const PushReport report = push("1", source);
  EXPECT_EQ(report.outcome, PushOutcome::kDone);
  EXPECT_EQ(report.casts, 2U);
  EXPECT_THAT(log_.all(), HasSubstr("cast"));
}

TEST_F(CoordinatorTest, AnotherDtypeIsRefusedWhereCastsAreNotAllowed) {
  start("{dtype_mismatch: refuse}");
  Source source({"a", "b"});
  source.streamed = DType::kFloat32;
  const PushReport report = push("1", source);
  EXPECT_EQ(report.outcome, PushOutcome::kFailed);
  EXPECT_EQ(report.firstCause.code(), Code::kDataMismatch);
  EXPECT_THAT(report.firstCause.message(), HasSubstr("a bfloat16 [4]"));
  EXPECT_THAT(report.firstCause.message(), HasSubstr("float32"));
  EXPECT_EQ(report.attempts, 1);
  EXPECT_TRUE(has(engine_.state(), R"("paused":true)")) << engine_.state();
}

TEST_F(CoordinatorTest, AFailedGatherIsSentAgainWhenTheSourceRecovers) {
  start();
  for (const Trouble trouble : {Trouble::kFails, Trouble::kThrows}) {
    Source source({"a", "b"});
    source.trouble = trouble;
    const PushReport report = push("1", source);
    EXPECT_EQ(report.outcome, PushOutcome::kRecovered);
    EXPECT_THAT(report.firstCause.message(), HasSubstr("the gather "));
  }
}

TEST_F(CoordinatorTest, ASourceThatCannotRecoverEndsThePush) {
  start();
  Source source({"a", "b"});
  source.trouble = Trouble::kFails;
  source.recovers = false;
  const PushReport report = push("1", source);
  EXPECT_EQ(report.outcome, PushOutcome::kFailed);
  EXPECT_THAT(report.firstCause.message(), HasSubstr("the gather failed"));
  EXPECT_FALSE(has(engine_.state(), R"("version":"1")")) << engine_.state();
}

// P8: an opaque version may be any other; that a number goes down is said.
TEST_F(CoordinatorTest, GoingBackIsAllowedAndSaid) {
  start();
  Source source({"a"});
  for (const char* const version : {"9", "10", "x", "x-1"}) {
    EXPECT_EQ(push(version, source).outcome, PushOutcome::kDone) << version;
    EXPECT_THAT(log_.all(), Not(HasSubstr("is older than"))) << version;
  }
  EXPECT_EQ(push("010", source).outcome, PushOutcome::kDone);
  EXPECT_EQ(push("9", source).outcome, PushOutcome::kDone);
  EXPECT_THAT(log_.all(), HasSubstr("version 9 is older than 010"));
  EXPECT_TRUE(has(engine_.state(), R"("version":"9")")) << engine_.state();
}

// P27: the reference engine says that it keeps bfloat16.
TEST_F(CoordinatorTest, ADeclarationThatTheEngineConvertsIsSaidOnce) {
  start();
  Source source({"a", "b"});
  source.streamed = DType::kFloat32;
  source.declared = DType::kFloat32;
  for (const char* const version : {"1", "2"}) {
    EXPECT_EQ(push(version, source).outcome, PushOutcome::kDone);
  }
  const std::string all = log_.all();
  const std::string said = "keeps its parameters in bfloat16, but 32 of 32 bytes";
  EXPECT_THAT(all, HasSubstr(said));
  EXPECT_THAT(all, HasSubstr("push.dtypes.default: bfloat16"));
  EXPECT_EQ(all.find(said), all.rfind(said)) << all;
}

TEST_F(CoordinatorTest, ADeclarationInTheEnginesOwnDtypeNeedsNoWord) {
  start();
  Source source({"a", "b"});
  EXPECT_EQ(push("1", source).outcome, PushOutcome::kDone);
  EXPECT_THAT(log_.all(), Not(HasSubstr("keeps its parameters")));
}

/// The one engine of a list, as a configuration has it.
std::vector<EngineConfig> engineAt(std::uint16_t port, const std::string& name) {
  EngineConfig engine;
  engine.url = "http://127.0.0.1:" + std::to_string(port);
  engine.name = name;
  return {engine};
}

TEST_F(CoordinatorTest, TheListOfEnginesMayChangeBetweenPushes) {
  TestEngine other;
  start();
  Source source({"a", "b"});
  ASSERT_EQ(push("1", source).outcome, PushOutcome::kDone);
  ASSERT_TRUE(coordinator_->setEngines(engineAt(other.port(), "new")).ok());
  const PushReport report = push("2", source);
  EXPECT_EQ(report.outcome, PushOutcome::kDone);
  ASSERT_EQ(report.engines.size(), 1U);
  EXPECT_EQ(report.engines.front().name, "new");
  EXPECT_TRUE(has(engine_.state(), R"("version":"1")")) << engine_.state();
  EXPECT_TRUE(has(other.state(), R"("version":"2")")) << other.state();
  EXPECT_THAT(log_.all(), HasSubstr("engine fe is not in the list of engines any more"));
}

TEST_F(CoordinatorTest, AListThatCannotBeUsedLeavesTheEnginesAsTheyWere) {
  start();
  EXPECT_EQ(coordinator_->setEngines({}).code(), Code::kInvalidArgument);
  std::vector<EngineConfig> shared = engineAt(engine_.port(), "fe");
  shared.front().transport = TransportKind::kShm;
  const Status refused = coordinator_->setEngines(shared);
  EXPECT_EQ(refused.code(), Code::kInvalidArgument);
  EXPECT_THAT(refused.message(), HasSubstr("engine fe uses transport shm"));
  Source source({"a"});
  EXPECT_EQ(push("1", source).outcome, PushOutcome::kDone);
}

TEST_F(CoordinatorTest, AMeetingBeforeThePushContactsNoEngine) {
  start();
  EXPECT_TRUE(coordinator_->connect().ok());
  EXPECT_TRUE(has(engine_.state(), R"("paused":false)")) << engine_.state();
  Source source({"a"});
  EXPECT_EQ(push("1", source).outcome, PushOutcome::kDone);
  EXPECT_TRUE(coordinator_->connect().ok());
  EXPECT_EQ(push("2", source).outcome, PushOutcome::kDone);
}

TEST_F(CoordinatorTest, TheTokenIsNeverTold) {
  engine_.faults(R"([{"route": "finish_weight_update", "nth": "every", "do": "status",
                      "status": 500, "body": "who says very-secret-token?"}])");
  start();
  Source source({"a"});
  const PushReport report = push("1", source);
  EXPECT_EQ(report.outcome, PushOutcome::kFailed);
  EXPECT_THAT(log_.all(), Not(HasSubstr(kToken)));
  EXPECT_THAT(report.toJson(), Not(HasSubstr(kToken)));
}

}  // namespace
}  // namespace pushrod::contract
