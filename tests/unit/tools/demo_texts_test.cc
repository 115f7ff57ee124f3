// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/tools/scratch_folder.h"
#include "tools/demo/content_digest.h"
#include "tools/demo/demo_engine.h"
#include "tools/demo/demo_ranks.h"
#include "tools/demo/metric_page.h"
#include "tools/demo/story.h"

namespace pushrod::tools {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(MetricPage, SeriesAreReadAndCommentsSkipped) {
  const MetricPage page = parseMetricPage(
      "# HELP a text with 5\n# TYPE a counter\na 1\nb{l=\"x y\"} 2.5\n\nc{le=\"+Inf\"} 1e3\nbad\n");
  EXPECT_EQ(page, (MetricPage{{"a", 1}, {"b{l=\"x y\"}", 2.5}, {"c{le=\"+Inf\"}", 1000}}));
}

TEST(MetricPage, OnlyWholeFamiliesThatMovedAreTold) {
  const MetricPage before = parseMetricPage("a{x=\"1\"} 1\na{x=\"2\"} 1\nab 1\nb 0\n");
  const MetricPage after = parseMetricPage("a{x=\"1\"} 1\na{x=\"2\"} 3\nab 2\nb 0\nc 1\n");
  const auto moves = movedMetrics(before, after, {"c", "a", "b"});
  ASSERT_EQ(moves.size(), 2U);
  EXPECT_EQ(moves[0].series, "c");
  EXPECT_EQ(moves[0].before, 0);
  EXPECT_EQ(moves[1].series, "a{x=\"2\"}");
  EXPECT_EQ(moves[1].after, 3);
}

TEST(ContentDigest, IsTheShaOfEachTensor) {
  const testing::ScratchFolder folder;
  folder.write(
      "model.safetensors",
      testing::safetensors(R"({"w":{"dtype":"U8","shape":[3],"data_offsets":[0,3]}})", "abc"));
  const auto checkpoint = Checkpoint::open(folder.path());
  ASSERT_TRUE(checkpoint.ok());
  const auto digests = digestCheckpoint(**checkpoint);
  ASSERT_TRUE(digests.ok());
  EXPECT_EQ(digests->at("w"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(shortDigest(*digests)->size(), 12U);
  EXPECT_NE(*shortDigest(*digests), *shortDigest({{"v", digests->at("w")}}));
}

TEST(EngineState, IsReadOrRefused) {
  const auto state = parseEngineState(
      R"({"version":"7","paused":true,"session":"closed","torn":false,"weights":{"w":"00"}})");
  ASSERT_TRUE(state.ok()) << state.status().message();
  EXPECT_EQ(state->version, "7");
  EXPECT_TRUE(state->paused);
  EXPECT_EQ(state->weights, (TensorDigests{{"w", "00"}}));
  EXPECT_EQ(
      parseEngineState(R"({"version":null,"paused":false,"torn":true,"weights":{}})")->version,
      "none");
  EXPECT_FALSE(parseEngineState("[]").ok());
  EXPECT_FALSE(parseEngineState("").ok());
}

constexpr const char* kVerdict =
    R"({"event":"result","rank":0,"exit":3,"outcome":"failed","summary":"s","report":)"
    R"({"duration_s":1.5,"paused_s":1,"phases":{"check":0.002,"failing":0.5},)"
    R"("first_cause":{"engine":"e1","message":"gone"},)"
    R"("engines":[{"name":"e1","outcome":"lost","error":"x","remedy":"restart it"},)"
    R"({"name":"e2","outcome":"old","error":"","remedy":""}]}})";

TEST(Story, TellsPhasesRanksAndRemedies) {
  const auto verdict = parseRankVerdict(kVerdict);
  ASSERT_TRUE(verdict.ok()) << verdict.status().message();
  EXPECT_EQ(verdict->exit, 3);
  EXPECT_EQ(verdict->causeEngine, "e1");
  const std::string phases = phaseLines(*verdict);
  EXPECT_THAT(phases, HasSubstr("check        2 ms"));
  EXPECT_THAT(phases, HasSubstr("failing    500 ms"));
  EXPECT_EQ(std::count(phases.begin(), phases.end(), '\n'), 2);
  EXPECT_THAT(rankLines({*verdict, *verdict}), HasSubstr("0 failed, 1 failed"));
  EXPECT_THAT(remedyLines(*verdict), HasSubstr("e1 is lost: restart it"));
  EXPECT_THAT(remedyLines(*verdict), Not(HasSubstr("e2")));
  EXPECT_FALSE(parseRankVerdict("{}").ok());
  EXPECT_TRUE(parseRankVerdict(R"({"exit":2,"outcome":"refused","report":null})").ok());
}

TEST(Story, EnginesAreComparedWithTheCheckpoint) {
  EngineState state;
  state.version = "2";
  state.weights = {{"w", "00"}};
  const std::string digest = *shortDigest(state.weights);
  EXPECT_THAT(engineLine("e", state, digest), HasSubstr("= checkpoint"));
  EXPECT_THAT(engineLine("e", state, "other"), HasSubstr("differs"));
  EXPECT_THAT(engineLine("e", Status(Code::kUnavailable, "x"), digest), HasSubstr("not answer"));
}

TEST(Story, LongTextsAreBroken) {
  EXPECT_EQ(wrapped("one two", 2), "  one two\n");
  const std::string text = wrapped(std::string(60, 'a') + " " + std::string(60, 'b'), 1);
  EXPECT_EQ(text, " " + std::string(60, 'a') + "\n " + std::string(60, 'b') + "\n");
}

}  // namespace
}  // namespace pushrod::tools
