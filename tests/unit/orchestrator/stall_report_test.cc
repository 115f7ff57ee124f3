// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/status/stall_report.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace pushrod::orchestrator {
namespace {

using std::chrono::seconds;

RankStand at(int rank, Phase phase, std::uint32_t step, Stage stage) {
  RankStand stand;
  stand.rank = rank;
  stand.key = {1, 1, phase, step};
  stand.stage = stage;
  return stand;
}

/// Rank 0 of three, with limits of 60 s.
StallInput calm() {
  StallInput input;
  input.push = "1, version 7,";
  input.pushLimit = seconds(7200);
  input.agreement = input.progress = seconds(60);
  input.own = at(0, Phase::kFinish, 0, Stage::kWork);
  input.others = {at(1, Phase::kFinish, 1, Stage::kVote), at(2, Phase::kFinish, 1, Stage::kVote)};
  return input;
}

/// The first wait that is about `text`.
StallWait waitFor(const StallInput& input, const std::string& text) {
  for (const StallWait& wait : makeStallReport(input).waits) {
    if (wait.text.find(text) != std::string::npos) {
      return wait;
    }
  }
  ADD_FAILURE() << "no wait for " << text;
  return {};
}

EngineWork asked(const std::string& call, Duration age) {
  EngineWork engine;
  engine.name = "e1";
  engine.call = call;
  engine.out = true;
  engine.age = engine.still = age;
  engine.limit = seconds(100);
  return engine;
}

TEST(StallReport, AWaitStallsAfterHalfOfItsLimit) {
  StallInput input = calm();
  input.engines = {asked("finish_weight_update", seconds(50))};
  EXPECT_FALSE(makeStallReport(input).stalled());
  input.engines[0].age = input.engines[0].still = seconds(51);
  EXPECT_TRUE(makeStallReport(input).stalled());
  const StallWait wait = waitFor(input, "engine e1");
  EXPECT_EQ(wait.awaited, "engine e1");
  EXPECT_NE(wait.text.find("rank 0 waits for engine e1 (finish_weight_update) for 51.0 s of"),
            std::string::npos)
      << wait.text;
  EXPECT_TRUE(wait.stuck());
}

TEST(StallReport, AnEngineThatStillTakesBytesIsSlow) {
  StallInput input = calm();
  input.own = at(0, Phase::kStream, 3, Stage::kSettle);
  EngineWork engine = asked("update_weights", seconds(60));
  engine.declared = 1000;
  engine.actual = 400;
  engine.still = seconds(1);
  input.engines = {engine};
  StallWait wait = waitFor(input, "engine e1");
  EXPECT_TRUE(wait.stalled());
  EXPECT_FALSE(wait.stuck());
  EXPECT_NE(wait.text.find("400 of 1000 bytes written"), std::string::npos) << wait.text;
  EXPECT_NE(wait.text.find("slow"), std::string::npos) << wait.text;
  input.engines[0].still = seconds(40);
  wait = waitFor(input, "engine e1");
  EXPECT_TRUE(wait.stuck());
  EXPECT_NE(wait.text.find("stuck, nothing moved for 40.0 s"), std::string::npos) << wait.text;
}

TEST(StallReport, AVoteWaitsForTheRanksThatAreBehind) {
  StallInput input = calm();
  input.own = at(0, Phase::kStream, 5, Stage::kVote);
  input.others = {at(1, Phase::kStream, 5, Stage::kVote), at(2, Phase::kStream, 4, Stage::kNext)};
  input.others[1].still = seconds(31);
  input.operation = OwnWait{"Vote", seconds(31), seconds(1860)};
  StallWait wait = waitFor(input, "(Vote)");
  EXPECT_EQ(wait.awaited, "rank 2");
  EXPECT_EQ(wait.limit, Duration(seconds(60))) << "rank 0 has the phase's work behind it";
  EXPECT_TRUE(wait.stalled() && wait.stuck());
  input.others[1].still = seconds(1);
  wait = waitFor(input, "(Vote)");
  EXPECT_FALSE(wait.stuck()) << "rank 2 still gathers";
}

TEST(StallReport, AFollowersVoteHasTheTimeOfRankZerosWork) {
  StallInput input = calm();
  input.own = at(2, Phase::kFinish, 1, Stage::kVote);
  input.others = {at(0, Phase::kFinish, 0, Stage::kWork)};
  input.operation = OwnWait{"Vote", seconds(100), seconds(1860)};
  EXPECT_FALSE(makeStallReport(input).stalled());
  EXPECT_EQ(waitFor(input, "(Vote)").awaited, "rank 0");
}

TEST(StallReport, AGatherWaitsForTheRankThatHasNotBegunIt) {
  StallInput input = calm();
  input.own = at(0, Phase::kStream, 1, Stage::kNext);
  input.own.begun = 4;
  input.own.returned = 3;
  input.own.tensor = "3 model.w [2, 3]";
  input.others = {at(1, Phase::kStream, 1, Stage::kNext), at(2, Phase::kStream, 1, Stage::kNext)};
  input.others[0].begun = input.others[1].begun = 4;
  input.operation = OwnWait{"SourceNext", seconds(300), seconds(480)};
  StallWait wait = waitFor(input, "SourceNext");
  EXPECT_EQ(wait.awaited, "rank 0's weight source");
  EXPECT_NE(wait.text.find("tensor 3 model.w [2, 3]"), std::string::npos);
  EXPECT_TRUE(wait.stuck());
  input.others[0].begun = 3;
  EXPECT_EQ(waitFor(input, "SourceNext").awaited, "rank 1");
}

TEST(StallReport, SendingWaitsForBytesAndNotForTheOperation) {
  StallInput input = calm();
  input.own = at(0, Phase::kStream, 1, Stage::kPut);
  EngineWork good = asked("update_weights", seconds(5));
  EngineWork bad = good;
  bad.name = "e2";
  good.declared = good.actual = bad.declared = 100;
  bad.still = good.still = seconds(40);
  input.engines = {good, bad};
  input.operation = OwnWait{"PlanePut", seconds(35), seconds(1800)};
  const StallWait wait = waitFor(input, "PlanePut");
  EXPECT_EQ(wait.awaited, "engine e2");
  EXPECT_TRUE(wait.stalled());
  input.engines[1].still = Duration(10);
  EXPECT_FALSE(waitFor(input, "PlanePut").stalled());
}

TEST(StallReport, LinesTellRanksFurthestBehindFirstAndAreBounded) {
  StallInput input = calm();
  for (int rank = 3; rank < 100; ++rank) {
    input.others.push_back(at(rank, Phase::kFinish, 1, Stage::kVote));
  }
  input.others.back().key.phase = Phase::kStream;
  input.engines = {asked("finish_weight_update", seconds(3))};
  const std::vector<std::string> lines = stallLines(input, 4);
  ASSERT_EQ(lines.size(), 7U);
  EXPECT_TRUE(lines[0].starts_with("rank 0: finish, attempt 1, step 0, work; gathers 0 begun"));
  EXPECT_TRUE(lines[1].starts_with("rank 99: stream"));
  EXPECT_EQ(lines[5], "95 more ranks are as far or further");
  EXPECT_EQ(lines[6], "engine e1: finish_weight_update out for 3.0 s of 1 min 40 s");
}

TEST(StallReport, TheStatusPageTellsAllOfIt) {
  StallInput input = calm();
  input.engines = {asked("finish_weight_update", seconds(51))};
  const std::string text = stallJson(input, makeStallReport(input));
  for (const char* part : {R"("stalled":true)",
                           R"("for":"engine e1")",
                           R"("state":"stuck")",
                           R"("gathers_begun":0)",
                           R"("call":"finish_weight_update")"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " in " << text;
  }
}

}  // namespace
}  // namespace pushrod::orchestrator
