// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "flight_fixture.h"
#include "tools/explain/culprit.h"
#include "tools/explain/replay.h"
#include "tools/explain/story.h"

namespace pushrod::tools {
namespace {

using orchestrator::ActionKind;
using orchestrator::EventKind;
using testing::manifestOf;
using testing::RecordedRun;
using testing::recordOf;

Status from(int rank, Phase phase, Code code, const std::string& text, std::string engine = {}) {
  return Status(code, text, Outcome::kUnknown).at(Origin{rank, std::move(engine), phase, 3, 1});
}

FlightFile parsed(const std::string& text) {
  Result<FlightFile> file = parseFlight(text, "record");
  EXPECT_TRUE(file) << file.status().message();
  return file ? *file : FlightFile();
}

class Explain : public ::testing::Test {
 protected:
  RecordedRun& run(int rank) {
    auto& made = runs_[rank];
    if (made == nullptr) {
      made = std::make_unique<RecordedRun>(rank, clock_);
    }
    return *made;
  }

  [[nodiscard]] std::map<int, std::string> lines() const {
    std::map<int, std::string> all;
    for (const auto& [rank, each] : runs_) {
      all[rank] = each->encode();
    }
    return all;
  }

  pushrod::testing::VirtualExecutor clock_;
  std::map<int, std::unique_ptr<RecordedRun>> runs_;
};

TEST_F(Explain, WhatWasRecordedFollowsFromThePushTable) {
  for (const int rank : {0, 1}) {
    run(rank).toStream(manifestOf(6), 2);
    for (int i = 0; i < 6; ++i) {
      run(rank).gather();
    }
    run(rank).feed(EventKind::kSourceEnd);
  }
  const FlightFile file = parsed(recordOf(lines(), Status(), 2));
  for (const auto& [rank, replay] : replayAll(file)) {
    EXPECT_EQ(replay.fault, "") << rank;
    EXPECT_GT(replay.steps, 20U) << rank;
  }
  EXPECT_EQ(file.ranks.at(0).events.back().event.stage, run(0).state().stage);
  EXPECT_EQ(findCulprit(file).who, "nobody");
}

TEST_F(Explain, AStreamLongerThanTheRingIsReplayedFromWhatIsLeft) {
  run(1).toStream(manifestOf(6000), 500);
  for (int i = 0; i < 6000; ++i) {
    run(1).gather();
  }
  for (const std::size_t budget : {std::size_t{1} << 24, std::size_t{64} << 10}) {
    const FlightFile file = parsed(recordOf({{1, run(1).encode(budget)}}, Status(), 2));
    EXPECT_GT(file.ranks.at(1).dropped, 3000U);
    EXPECT_EQ(replayAll(file).at(1).fault, "");
  }
}

TEST_F(Explain, AResentPushIsReplayedAndItsSourceNamed) {
  RecordedRun& rank = run(1);
  rank.toStream(manifestOf(2), 1);
  rank.beginGather();
  const Status thrown = from(1, Phase::kStream, Code::kInternal, "the weight source threw");
  rank.failGather(thrown, thrown);
  rank.vote(Decision::kResend, thrown);
  rank.go();
  EXPECT_EQ(rank.state().phase, Phase::kRecover);
  const FlightFile file = parsed(recordOf(lines(), thrown, 2));
  EXPECT_EQ(replayAll(file).at(1).fault, "");
  const Culprit culprit = findCulprit(file);
  EXPECT_EQ(culprit.who, "the weight source of rank 1");
  EXPECT_EQ(culprit.why, "the weight source threw");
}

TEST_F(Explain, ADraftModelsPassIsReplayedAndItsTensorNamed) {
  RecordedRun& rank = run(1);
  rank.toStream(manifestOf(2), 1, manifestOf(3));
  rank.gather();
  rank.gather();
  rank.toDraft();
  ASSERT_EQ(rank.state().phase, Phase::kStream);
  ASSERT_TRUE(rank.state().draft);
  rank.gather();
  rank.beginGather();
  const Status thrown = from(1, Phase::kStream, Code::kInternal, "the draft's source threw");
  rank.failGather(thrown, thrown);
  rank.vote(Decision::kResend, thrown);
  rank.go();
  const FlightFile file = parsed(recordOf(lines(), thrown, 2));
  EXPECT_EQ(replayAll(file).at(1).fault, "");
  EXPECT_EQ(findCulprit(file).who, "the weight source of rank 1");
  const std::string story = explainFlight(file);
  EXPECT_NE(story.find("enters start of the draft model"), std::string::npos) << story;
  EXPECT_NE(story.find("tensor 1 model.layers.1.w [2, 4] of the draft model"), std::string::npos)
      << story;
  // What the ring had to drop is advanced through the draft as well.
  const FlightFile part = parsed(recordOf({{1, rank.encode(1500)}}, thrown, 2));
  EXPECT_TRUE(part.ranks.at(1).base.draft);
  EXPECT_EQ(replayAll(part).at(1).fault, "");
}

TEST_F(Explain, AnEngineIsNamedWithItsLastCall) {
  RecordedRun& rank = run(0);
  rank.toStream(manifestOf(2), 1);
  Call call;
  call.kind = CallKind::kUpdate;
  rank.recorder().onCall(
      1, orchestrator::Goal::kUpdated, call, Deadline::after(clock_, std::chrono::seconds(10)));
  clock_.runFor(std::chrono::seconds(4));
  Reply reply;
  reply.kind = CallKind::kUpdate;
  reply.httpStatus = 500;
  reply.status = Status(Code::kUnavailable, "HTTP 500: worker died", Outcome::kUnknown);
  rank.recorder().onReply(1, orchestrator::Goal::kUpdated, call, reply, orchestrator::Ledger());
  const Status cause = from(0, Phase::kStream, Code::kUnavailable, "HTTP 500: worker died", "e1");
  const Culprit culprit = findCulprit(parsed(recordOf(lines(), cause, 1)));
  EXPECT_EQ(culprit.who, "engine e1");
  ASSERT_EQ(culprit.evidence.size(), 1U);
  EXPECT_EQ(
      culprit.evidence[0],
      "update_weights ended after 4.0 s of 10.0 s with HTTP 500: HTTP 500: worker died; 64 of "
      "64 bytes had been written to it");
}

TEST_F(Explain, ARankThatIsGoneIsNamedWithWhoHeardOfIt) {
  RecordedRun& rank = run(0);
  rank.toStream(manifestOf(2), 1);
  const Status lost = from(2, Phase::kStream, Code::kUnavailable, "rank 2 is gone");
  rank.recorder().onLink({orchestrator::LinkNews::Kind::kLost, false, 2, lost});
  const Culprit culprit = findCulprit(parsed(recordOf(lines(), lost, 3, {{2, "it is gone"}})));
  EXPECT_EQ(culprit.who, "rank 2");
  EXPECT_EQ(culprit.evidence,
            (std::vector<std::string>{"it left no events: it is gone",
                                      "rank 0 heard in stream: rank 2 is gone"}));
}

class HungGather : public Explain {
 protected:
  /// All ranks gather tensor 1 of 4; each text is what the rank's source said when it was ended.
  Culprit culprit(const std::vector<std::string>& texts) {
    runs_.clear();
    const Status limit = from(0,
                              Phase::kStream,
                              Code::kDeadlineExceeded,
                              "one call of the weight source took longer than timeouts.gather");
    for (std::size_t i = 0; i < texts.size(); ++i) {
      RecordedRun& rank = run(static_cast<int>(i));
      rank.toStream(manifestOf(4), 4);
      rank.gather();
      rank.beginGather();
      if (texts[i].empty()) {
        rank.feed(EventKind::kPeerStop, limit);  // it does not come back
      } else {
        rank.failGather(Status(Code::kAborted, texts[i]), limit);
      }
    }
    const FlightFile file = parsed(recordOf(lines(), limit, static_cast<int>(texts.size())));
    for (const auto& [rank, replay] : replayAll(file)) {
      EXPECT_EQ(replay.fault, "") << rank;
    }
    return findCulprit(file);
  }
};

TEST_F(HungGather, TheOneThatWasNotInTheCollective) {
  const Culprit found = culprit({"tensor w: the ranks' gather: the pass was ended",
                                 "waiting for the optimizer",
                                 "tensor w: the ranks' gather: rank 1 said nothing"});
  EXPECT_EQ(found.who, "the weight source of rank 1");
  EXPECT_EQ(found.why,
            "it hung at tensor 1 model.layers.1.w [2, 4] while the other ranks waited for it in "
            "their gather");
}

TEST_F(HungGather, TheOneThatNeverCameBack) {
  EXPECT_EQ(culprit({"aborted", "aborted", ""}).who, "the weight source of rank 2");
}

TEST_F(HungGather, TheOddOneOut) {
  EXPECT_EQ(culprit({"call 17 aborted", "call 18 aborted", "busy", "call 16 aborted"}).who,
            "the weight source of rank 2");
}

TEST_F(HungGather, WhereNothingTellsItSaysSo) {
  const Culprit found = culprit({"aborted", "aborted"});
  EXPECT_EQ(found.who, "a weight source");
  EXPECT_NE(found.why.find("nothing tells which one"), std::string::npos) << found.why;
  EXPECT_EQ(culprit({"aborted"}).who, "the weight source of rank 0");
}

TEST_F(Explain, ARankThatComesToAVoteAfterItFailedIsNamed) {
  const Status limit =
      from(2, Phase::kPause, Code::kDeadlineExceeded, "the vote took longer than allowed");
  for (const int rank : {0, 1, 2}) {
    RecordedRun& each = run(rank);
    each.feed(EventKind::kBegin);
    each.feed(EventKind::kLocalDone);
    each.go();
    each.feed(EventKind::kLocalDone);
    each.go();
    each.feed(EventKind::kGoalReached);
    each.go();
    each.feed(EventKind::kLocalDone);
    each.go();
  }
  run(0).feed(EventKind::kGoalReached);
  run(2).feed(EventKind::kGoalReached);
  clock_.runFor(std::chrono::seconds(2));
  run(2).recorder().onOperationEnd(ActionKind::kVote, limit);
  clock_.runFor(std::chrono::seconds(1));
  run(1).feed(EventKind::kGoalReached);
  EXPECT_EQ(findCulprit(parsed(recordOf(lines(), limit, 3))).who, "rank 1");
}

TEST_F(Explain, AStopOrderIsNobodysFailure) {
  run(1).feed(EventKind::kBegin);
  const Status order = from(1, Phase::kCheck, Code::kCancelled, "stopped by SIGTERM");
  const Culprit culprit = findCulprit(parsed(recordOf(lines(), order, 2)));
  EXPECT_EQ(culprit.who, "a stop order, heard by rank 1");
}

TEST_F(Explain, StatesThatDoNotFollowAreToldWithTheirStep) {
  run(1).toStream(manifestOf(2), 1);
  std::string text = recordOf(lines(), Status(), 2);
  const std::string good = explainFlight(parsed(text));
  EXPECT_NE(good.find("the recorded states follow."), std::string::npos) << good;
  const std::string row = R"("rows":["connected"])";
  text.replace(text.find(row), row.size(), R"("rows":["clean"])");
  const FlightFile file = parsed(text);
  EXPECT_NE(replayAll(file).at(1).fault.find("by clean; the table leads to prepare / work"),
            std::string::npos)
      << replayAll(file).at(1).fault;
  EXPECT_NE(explainFlight(file).find("do NOT follow"), std::string::npos);
}

TEST_F(Explain, TheStoryHasAllParts) {
  run(0).toStream(manifestOf(2), 1);
  const std::string story =
      explainFlight(parsed(recordOf(lines(), Status(), 2, {{1, "it is gone"}})));
  for (const char* part : {"Push 3 of job test, version 7: failed, 2 ranks, 2 engines",
                           "Culprit: nobody",
                           "rank 0  enters stream",
                           "rank 0: last at work in stream / next",
                           "rank 1: no events, it is gone",
                           "Replay: "}) {
    EXPECT_NE(story.find(part), std::string::npos) << part << " in\n" << story;
  }
}

class Refusals : public Explain {
 protected:
  void SetUp() override {
    run(1).toStream(manifestOf(2), 1);
    good_ = recordOf(lines(), Status(), 2);
  }

  void refuse(const std::string& text, const std::string& why) {
    const auto file = parseFlight(text, "record");
    ASSERT_FALSE(file) << why;
    EXPECT_TRUE(file.status().message().starts_with("record: ")) << file.status().message();
    EXPECT_NE(file.status().message().find(why), std::string::npos) << file.status().message();
    EXPECT_EQ(file.status().message().find('\n'), std::string::npos);
  }

  [[nodiscard]] std::string with(const std::string& from, const std::string& to) const {
    std::string text = good_;
    text.replace(text.find(from), from.size(), to);
    return text;
  }

  std::string good_;
};

TEST_F(Refusals, NameTheLineAndTheFault) {
  ASSERT_TRUE(parseFlight(good_, "record"));
  refuse("", "is empty");
  refuse("no json", "line 1 is no line of a flight record");
  refuse("[]\n", "is no object");
  refuse(with(R"("flight":1)", R"("flight":2)"), "format that this version does not read");
  refuse(with(R"("job":"test",)", ""), "\"job\" is missing");
  refuse(with(R"("event":"step")", R"("event":"jump")"), "which is none of its values");
  refuse(with(R"("phase":"check")", R"("phase":7)"), "another type");
  refuse(with(R"("on":"Begin")", R"("on":"Begin","more":1)"), "\"more\" is no member");
  refuse(with(R"("attempt":1)", R"("attempt":9)"), "out of range");
  refuse(with(R"("event":"step")", R"("event":"step","rank":1)"), "twice");
  refuse(with(R"("ranks":2)", R"("ranks":-2)"), "out of range");
}

TEST_F(Refusals, OfFilesThatAreCutOrTooLarge) {
  for (std::size_t size = 1; size < good_.size(); size += 97) {
    EXPECT_FALSE(parseFlight(std::string_view(good_).substr(0, size), "record")) << size;
  }
  refuse(good_.substr(0, good_.size() - 10), "is cut off");
  refuse(good_.substr(0, good_.rfind('{')), "is the file complete?");
  refuse(good_ + "{}\n", "\"rank\" is missing");
  const std::size_t state = good_.find('\n') + 1;
  const std::size_t first = good_.find('\n', state) + 1;
  refuse(good_.substr(0, state) + good_.substr(first), "has no state line");
  refuse(good_.substr(0, first) + good_.substr(state), "begins a second time");
  refuse(std::string(kMaxFlightLine + 1, '['), "longer");
  refuse(std::string(kMaxFlightFile + 1, ' '), "is larger than");
}

}  // namespace
}  // namespace pushrod::tools
