// SPDX-License-Identifier: Apache-2.0
// push.stop (P33): how far a failed pass goes, on every rank. Ranks are threads of this process.
#include <array>
#include <filesystem>
#include <future>
#include <vector>

#include <gtest/gtest.h>

#include <pushrod/pushrod.h>

#include "tests/contract/engine_pair.h"

namespace pushrod::contract {
namespace {

constexpr std::size_t kTensors = 12;
constexpr std::size_t kBytes = 1024;

/// Counts what its passes are asked for.
class CountingSource final : public WeightSource {
 public:
  struct Pass {
    std::size_t tensors = 0;
    bool ended = false;
  };

  Result<Manifest> manifest() override {
    Manifest manifest;
    for (std::size_t i = 0; i < kTensors; ++i) {
      manifest.tensors.push_back({nameOf(i), DType::kUint8, {kBytes}, 0});
    }
    return manifest;
  }

  Status begin() override {
    passes.push_back({});
    return {};
  }

  Result<std::optional<TensorView>> next() override {
    Pass& pass = passes.back();
    if (passes.size() == 1 && pass.tensors == failsAt) {
      return Status(Code::kUnavailable, "the gather failed");
    }
    if (pass.tensors == kTensors) {
      pass.ended = true;
      return std::optional<TensorView>();
    }
    name_ = nameOf(pass.tensors);
    TensorView view;
    view.name = name_;
    view.dtype = DType::kUint8;
    view.shape = {kBytes};
    if (pass.tensors == wrongAt) {
      view.shape = {kBytes / 2, 2};
    }
    view.data = bytes_.data();
    ++pass.tensors;
    return std::optional(view);
  }

  bool recover() override { return true; }

  std::vector<Pass> passes;
  std::size_t failsAt = kTensors + 1;  ///< of the first pass
  std::size_t wrongAt = kTensors + 1;

 private:
  static std::string nameOf(std::size_t i) { return "model.layers." + std::to_string(i) + ".w"; }

  std::string name_;
  std::array<std::uint8_t, kBytes> bytes_{};
};

class StopPassTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() /
              ("pushrod-stop-" + std::to_string(::getpid()) + "-" +
               ::testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(folder_);
  }

  void TearDown() override { std::filesystem::remove_all(folder_); }

  /// One push by as many ranks as there are sources; their reports.
  std::vector<PushReport> push(const std::string& stop) {
    const std::string text =
        "job: stop\nranks: {store: \"file://" + (folder_ / stop).string() +
        "\"}\nengines:\n  list: [{url: \"http://127.0.0.1:" + std::to_string(engine_.port()) +
        "\", name: fe}]\ntransport: {kind: tcp, buffer: 2KiB}\nmetrics: {listen: \"\"}\n"
        "log: {level: error}\ntimeouts: {push: 60s, request: 10s, gather: 10s}\npush: {stop: " +
        stop + "}\n";
    const auto config = Config::parse(text, "test.yaml");
    EXPECT_TRUE(config.ok()) << config.status().message();
    std::vector<std::future<PushReport>> running;
    for (std::size_t i = 0; i < sources_.size(); ++i) {
      running.push_back(std::async(std::launch::async, [&, i] {
        auto made = PushCoordinator::create(
            *config, Rank::of(static_cast<int>(i), static_cast<int>(sources_.size())));
        EXPECT_TRUE(made.ok()) << made.status().message();
        auto report = (*made)->push({.version = "1", .weights = &sources_[i]});
        EXPECT_TRUE(report.ok()) << report.status().message();
        return report.ok() ? *report : PushReport();
      }));
    }
    std::vector<PushReport> reports;
    reports.reserve(running.size());
    for (auto& each : running) {
      reports.push_back(each.get());
    }
    return reports;
  }

  TestEngine engine_;
  std::filesystem::path folder_;
  std::array<CountingSource, 3> sources_;
};

TEST_F(StopPassTest, AfterAFailedUpdateEveryRankGoesToTheEnd) {
  engine_.faults(R"([{"route": "update_weights", "nth": 1, "do": "fail_after_chunks",
                      "after_chunks": 1}])");
  for (const PushReport& report : push("pass")) {
    EXPECT_EQ(report.outcome, PushOutcome::kRecovered) << report.summary();
  }
  for (const CountingSource& source : sources_) {
    ASSERT_EQ(source.passes.size(), 2U);
    EXPECT_EQ(source.passes[0].tensors, kTensors);
    EXPECT_TRUE(source.passes[0].ended);
    EXPECT_TRUE(source.passes[1].ended);
  }
  EXPECT_TRUE(has(engine_.state(), R"("version":"1")")) << engine_.state();
}

TEST_F(StopPassTest, AfterAnotherTensorThanDeclaredToo) {
  sources_[2].wrongAt = 1;
  for (const PushReport& report : push("pass")) {
    EXPECT_EQ(report.outcome, PushOutcome::kFailed);
    EXPECT_EQ(report.firstCause.code(), Code::kDataMismatch);
    EXPECT_EQ(report.firstCause.origin().rank, 2);
  }
  for (const CountingSource& source : sources_) {
    ASSERT_EQ(source.passes.size(), 1U);
    EXPECT_TRUE(source.passes[0].ended);
  }
}

TEST_F(StopPassTest, WithChunkAllStopAtTheSameTensor) {
  sources_[2].wrongAt = 1;
  for (const PushReport& report : push("chunk")) {
    EXPECT_EQ(report.outcome, PushOutcome::kFailed);
  }
  for (const CountingSource& source : sources_) {
    ASSERT_EQ(source.passes.size(), 1U);
    EXPECT_FALSE(source.passes[0].ended);
    EXPECT_EQ(source.passes[0].tensors, sources_[0].passes[0].tensors);
    EXPECT_LT(source.passes[0].tensors, kTensors);
  }
}

TEST_F(StopPassTest, ASourceThatFailedItselfEndsThePassOfAll) {
  sources_[1].failsAt = 4;
  for (const PushReport& report : push("pass")) {
    EXPECT_EQ(report.outcome, PushOutcome::kRecovered) << report.summary();
    EXPECT_EQ(report.firstCause.origin().rank, 1);
  }
  for (const CountingSource& source : sources_) {
    ASSERT_EQ(source.passes.size(), 2U);
    EXPECT_TRUE(source.passes[1].ended);
  }
  EXPECT_EQ(sources_[1].passes[0].tensors, 4U);
}

}  // namespace
}  // namespace pushrod::contract
