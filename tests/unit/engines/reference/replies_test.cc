// SPDX-License-Identifier: Apache-2.0
// Engines with several workers: replies that arrive one call late, and data parallel replicas.
#include <string>

#include <boost/json/serialize.hpp>
#include <gtest/gtest.h>

#include "tests/unit/engines/reference/engine_fixture.h"

namespace pushrod::engines::reference::testing {
namespace {

using Texts = std::vector<std::string>;

std::string stateText(TestEngine& engine, const std::string& field) {
  return boost::json::serialize(engine.state(field));
}

TEST(Replies, ADoubleStartShiftsAllLaterReplies) {
  TestEngine engine(profileOptions("0.32", 2));
  EXPECT_EQ(engine.read("_weight_update_active"), (Texts{"False", "False"}));
  EXPECT_EQ(engine.post("start_weight_update").status, 200);
  EXPECT_EQ(engine.read("_weight_update_active"), (Texts{"True", "True"}));
  EXPECT_EQ(engine.post("start_weight_update").status, 500);
  EXPECT_EQ(stateText(engine, "lag"), "[0,1]");
  const Texts late = engine.read("rank");
  ASSERT_EQ(late.size(), 1U);
  EXPECT_TRUE(contains(late.front(), "start_weight_update called while a weight update"));
  EXPECT_EQ(engine.read("_weight_update_active"), (Texts{"True", "1"}));
  EXPECT_EQ(engine.read("_weight_update_active"), (Texts{"True", "True"}));
  EXPECT_EQ(stateText(engine, "lag"), "[0,1]") << "for ever";
}

TEST(Replies, AGoodStartAnswersTheOldErrorAndAGoodFinishLosesItsVersion) {
  TestEngine engine(profileOptions("0.32", 2));
  engine.post("start_weight_update");
  engine.post("start_weight_update");
  // The first finish gets the double start's second reply; its own work is done all the same.
  const Answer finished = engine.finish("5");
  EXPECT_EQ(finished.status, 500);
  EXPECT_TRUE(contains(finished.error(), "already active"));
  const Answer checker = engine.post("weight_checker", R"({"action": "checksum"})");
  EXPECT_EQ(checker.status, 500) << "another call's null";
  // That null was the second worker's answer to the finish, so both workers have done theirs.
  EXPECT_EQ(engine.state("session"), "closed");
  EXPECT_EQ(engine.state("version"), "default");
}

TEST(Replies, AsManyHarmlessCallsAsTheLagBringThemBack) {
  TestEngine engine(profileOptions("0.32", 2));
  engine.post("finish_weight_update");
  const std::string health = R"({"method": "check_health"})";
  EXPECT_EQ(engine.post("collective_rpc", health).status, 500) << "worker 1's delayed error";
  EXPECT_EQ(engine.post("collective_rpc", health).body, R"({"results":[null,null]})");
  EXPECT_EQ(engine.post("start_weight_update").status, 200);
  engine.post("collective_rpc", health);
  // Worker 1's answer to the start went to the health call, and the health call's comes here.
  const Answer flag = engine.post(
      "collective_rpc", R"({"method": "__getattr__", "args": ["_weight_update_active"]})");
  EXPECT_EQ(flag.body, R"({"results":["True",null]})");
  EXPECT_EQ(engine.read("_weight_update_active"), (Texts{"True", "True"}));
}

TEST(Replies, AFailureOfTheLastWorkerShiftsNothing) {
  TestEngine engine(profileOptions("0.32", 2));
  engine.faults(
      R"([{"route": "start_weight_update", "nth": 1, "do": "worker_fails", "worker": 1}])");
  const Answer start = engine.post("start_weight_update");
  EXPECT_EQ(start.status, 500);
  EXPECT_TRUE(contains(start.error(), "injected failure of worker 1"));
  EXPECT_EQ(stateText(engine, "lag"), "[0,0]");
  EXPECT_EQ(engine.read("_weight_update_active"), (Texts{"True", "False"}));
}

TEST(Replies, OneWorkerIsNotAffected) {
  TestEngine engine(profileOptions("0.32", 1));
  engine.post("finish_weight_update");
  EXPECT_EQ(engine.read("rank"), Texts{"0"});
  EXPECT_EQ(stateText(engine, "lag"), "[0]");
}

TEST(Replies, EveryFailureOfWorkerZeroAddsOne) {
  TestEngine engine(profileOptions("0.28", 3));
  engine.post("finish_weight_update");
  engine.post("collective_rpc", R"({"method": "no_such"})");
  const std::string lag = stateText(engine, "lag");
  EXPECT_EQ(lag, "[0,2,2]");
}

TEST(Replicas, RanksAndWorldSize) {
  EngineOptions options = profileOptions("0.32", 4);
  options.dataParallel = 2;
  TestEngine engine(options);
  EXPECT_EQ(engine.get("get_world_size").body, R"({"world_size":4})");
  EXPECT_EQ(engine.get("get_world_size?include_dp=false").body, R"({"world_size":2})");
  TcpSender sender;
  auto answer = engine.postLater("init_weight_transfer_engine", sender.initBody(5));
  const auto hellos = sender.accept(4);
  EXPECT_EQ(answer.get().status, 200);
  std::vector<std::uint32_t> ranks;
  for (const auto& [rank, hello] : hellos) {
    ranks.push_back(rank);
    EXPECT_EQ(hello.substr(0, 8), "PUSHROD1");
    EXPECT_EQ(hello.substr(8, 4), std::string("\x00\x11\x22\x33", 4));
    EXPECT_EQ(hello.substr(28), std::string(4, '\0'));
  }
  EXPECT_EQ(ranks, (std::vector<std::uint32_t>{1, 2, 3, 4}));
}

TEST(Replicas, OneThatFailsLeavesTheOthersDone) {
  EngineOptions options = profileOptions("0.32", 2);
  options.dataParallel = 2;
  TestEngine engine(options);
  engine.post("start_weight_update");
  engine.faults(
      R"([{"route": "finish_weight_update", "nth": 1, "do": "worker_fails", "worker": 1}])");
  EXPECT_EQ(engine.finish("3").status, 500);
  EXPECT_EQ(engine.state("session"), "open");
  EXPECT_EQ(engine.state("version"), "default");
  const Answer again = engine.finish("3");
  EXPECT_EQ(again.status, 500) << "replica 0 has no session any more";
}

TEST(Replicas, ListEntriesByIndexFrom31ByRankBefore) {
  for (const char* profile : {"0.30", "0.31"}) {
    EngineOptions options = profileOptions(profile, 2);
    options.dataParallel = 2;
    TestEngine engine(options);
    TcpSender sender;
    EXPECT_EQ(engine.init(sender, 2).status, 200);
    engine.post("start_weight_update");
    // One entry only: enough for both replicas where both read the first.
    auto pending = engine.postLater(
        "update_weights", R"({"update_info": [{"names": [], "dtype_names": [], "shapes": []}]})");
    sender.send({});
    const Answer answer = pending.get();
    if (std::string(profile) == "0.30") {
      EXPECT_EQ(answer.status, 200) << answer.body;
    } else {
      EXPECT_EQ(answer.status, 500);
      EXPECT_TRUE(contains(answer.error(), "list index out of range"));
    }
  }
}

}  // namespace
}  // namespace pushrod::engines::reference::testing
