// SPDX-License-Identifier: Apache-2.0
// Every planned misbehaviour, and which request it hits.
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <unistd.h>

#include <gtest/gtest.h>

#include "tests/unit/engines/reference/engine_fixture.h"

namespace pushrod::engines::reference::testing {
namespace {

using std::chrono::milliseconds;

class Faults : public ::testing::Test {
 protected:
  TestEngine engine_{profileOptions("0.32")};
  TcpSender sender_;
  const std::vector<Sent> model_ = {tensor("a", {4}, 'a'), tensor("b", {4}, 'b')};

  /// Init with a buffer that makes two chunks of the model, then start.
  void open() {
    EXPECT_EQ(engine_.init(sender_, 1, 4).status, 200);
    EXPECT_EQ(engine_.post("start_weight_update").status, 200);
  }

  void sendBoth() {
    sender_.frame(1, 0, 8, 0, model_[0].bytes);
    sender_.frame(1, 1, 8, 0, model_[1].bytes);
    sender_.frame(2, 2, 0, 0, "");
  }

  std::future<Answer> update() {
    return engine_.postLater("update_weights", TcpSender::updateBody(model_));
  }

  /// What a plain request yields on a connection of its own, read for a short while.
  Answer look(const std::string& path, milliseconds limit, bool* closed = nullptr) {
    HttpProbe probe(engine_.port());
    probe.send(HttpProbe::render("GET", "/" + path, std::nullopt, ""));
    Answer answer = probe.read(limit);
    if (closed != nullptr) {
      *closed = probe.closed(milliseconds(500));
    }
    return answer;
  }
};

TEST_F(Faults, NthEveryAndLists) {
  const auto pattern = [&](const std::string& nth) {
    engine_.faults(R"([{"route": "is_paused", "nth": )" + nth +
                   R"(, "do": "status", "status": 418}])");
    std::string text;
    for (int i = 0; i < 4; ++i) {
      text += engine_.get("is_paused").status == 418 ? 'x' : '.';
    }
    return text;
  };
  EXPECT_EQ(pattern("1"), "x...");
  EXPECT_EQ(pattern("3"), "..x.");
  EXPECT_EQ(pattern("[2, 3]"), ".xx.");
  EXPECT_EQ(pattern("\"every\""), "xxxx");
  engine_.faults("[]");
  EXPECT_EQ(engine_.get("is_paused").status, 200);
}

TEST_F(Faults, StatusAnswersWithoutActing) {
  engine_.faults(R"([{"route": "pause", "nth": 1, "do": "status", "status": 502,)"
                 R"( "body": "<html>", "ctype": "text/html"}])");
  const Answer answer = engine_.post("pause");
  EXPECT_EQ(answer.status, 502);
  EXPECT_EQ(answer.body, "<html>");
  EXPECT_TRUE(contains(answer.headers, "content-type: text/html"));
  EXPECT_EQ(engine_.state("paused"), false);
}

TEST_F(Faults, AServerErrorOnUpdateEndsTheSessionAsTheReleaseDoes) {
  open();
  engine_.faults(R"([{"route": "update_weights", "nth": 1, "do": "status", "status": 500}])");
  EXPECT_EQ(update().get().status, 500);
  EXPECT_TRUE(sender_.dropped());
  // A read that takes its turn behind the ending in the worker.
  EXPECT_EQ(engine_.read("_weight_update_active"), (std::vector<std::string>{"False"}));
  EXPECT_EQ(engine_.state("session"), "closed");

  TestEngine old(profileOptions("0.22"));
  old.post("start_weight_update", "{}");
  old.faults(R"([{"route": "update_weights", "nth": "every", "do": "status", "status": 503}])");
  EXPECT_EQ(old.post("update_weights", TcpSender::updateBody(model_)).status, 503);
  EXPECT_EQ(old.read("_weight_update_active"), std::vector<std::string>{"True"});
}

TEST_F(Faults, AClientErrorOnUpdateKeepsTheSession) {
  open();
  engine_.faults(R"([{"route": "update_weights", "nth": 1, "do": "status", "status": 400}])");
  EXPECT_EQ(update().get().status, 400);
  EXPECT_EQ(engine_.state("session"), "open");
}

TEST_F(Faults, HangNeverAnswersAndBlocksNothing) {
  engine_.faults(R"([{"route": "is_paused", "nth": 1, "do": "hang"}])");
  EXPECT_EQ(look("is_paused", milliseconds(300)).raw, "");
  EXPECT_EQ(engine_.get("is_paused").status, 200);
}

TEST_F(Faults, DelayActsLater) {
  engine_.faults(R"([{"route": "is_paused", "nth": 1, "do": "delay", "seconds": 0.3}])");
  const auto begun = std::chrono::steady_clock::now();
  EXPECT_EQ(engine_.get("is_paused").status, 200);
  EXPECT_GE(std::chrono::steady_clock::now() - begun, milliseconds(300));
}

TEST_F(Faults, ResetAndCloseCutWithoutActing) {
  engine_.faults(R"([{"route": "pause", "nth": 1, "do": "reset"},)"
                 R"( {"route": "pause", "nth": 2, "do": "close"}])");
  const Answer reset = engine_.post("pause");
  EXPECT_EQ(reset.raw, "");
  EXPECT_TRUE(reset.reset);
  const Answer closed = engine_.post("pause");
  EXPECT_EQ(closed.raw, "");
  EXPECT_FALSE(closed.reset);
  EXPECT_EQ(engine_.state("paused"), false);
}

TEST_F(Faults, ApplyResetActsFirst) {
  engine_.faults(R"([{"route": "pause", "nth": 1, "do": "apply_reset"}])");
  const Answer answer = engine_.post("pause");
  EXPECT_EQ(answer.raw, "");
  EXPECT_TRUE(answer.reset);
  EXPECT_EQ(engine_.state("paused"), true);
}

TEST_F(Faults, RawBytes) {
  engine_.faults(
      R"([{"route": "health", "nth": 1, "do": "raw", "bytes": "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nab"}])");
  bool closed = false;
  const Answer answer = look("health", milliseconds(500), &closed);
  EXPECT_EQ(answer.raw, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nab");
}

TEST_F(Faults, TrickleSendsTheAnswerSlowly) {
  engine_.faults(R"([{"route": "is_paused", "nth": 1, "do": "trickle", "per_second": 400}])");
  const auto begun = std::chrono::steady_clock::now();
  const Answer answer = engine_.get("is_paused");
  EXPECT_EQ(answer.body, R"({"is_paused":false})");
  EXPECT_GE(std::chrono::steady_clock::now() - begun, milliseconds(100));
}

TEST_F(Faults, FailAfterChunks) {
  open();
  engine_.faults(
      R"([{"route": "update_weights", "nth": 1, "do": "fail_after_chunks", "after_chunks": 1}])");
  auto pending = update();
  sendBoth();
  const Answer answer = pending.get();
  EXPECT_EQ(answer.status, 500);
  EXPECT_TRUE(contains(answer.error(), "injected failure after 1 chunks"));
  EXPECT_EQ(engine_.weight("a"), sha256(model_[0].bytes));
  EXPECT_EQ(engine_.weight("b"), "initial");
  EXPECT_EQ(engine_.state("torn"), true);
  EXPECT_EQ(engine_.state("connections"), 0);
}

TEST_F(Faults, StopReadingHoldsTheEngineUntilTheSourceGoes) {
  open();
  engine_.faults(
      R"([{"route": "update_weights", "nth": 1, "do": "stop_reading", "after_chunks": 1}])");
  auto pending = update();
  sender_.frame(1, 0, 8, 0, model_[0].bytes);
  while (engine_.weight("a") != sha256(model_[0].bytes)) {
    ASSERT_EQ(pending.wait_for(milliseconds(10)), std::future_status::timeout);
  }
  EXPECT_EQ(look("is_paused", milliseconds(300)).raw, "") << "the core is busy";
  EXPECT_EQ(engine_.get("health").status, 200);
  sender_.drop();
  EXPECT_EQ(pending.get().status, 500);
  EXPECT_EQ(engine_.get("is_paused").status, 200);
}

TEST_F(Faults, OkWithoutReading) {
  open();
  engine_.faults(R"([{"route": "update_weights", "nth": 1, "do": "ok_without_reading"}])");
  EXPECT_EQ(update().get().status, 200);
  EXPECT_EQ(engine_.finish("4").status, 200);
  EXPECT_EQ(engine_.state("version"), "4");
  EXPECT_EQ(engine_.weight("a"), "initial");
}

TEST_F(Faults, VersionStoredOrReportedWrongly) {
  engine_.post("start_weight_update");
  engine_.faults(
      R"([{"route": "finish_weight_update", "nth": 1, "do": "version", "value": "other"},)"
      R"( {"route": "finish_weight_update", "nth": 2, "do": "version", "value": null},)"
      R"( {"route": "weight_info", "nth": 2, "do": "version", "value": "lie"}])");
  EXPECT_EQ(engine_.finish("5").status, 200);
  EXPECT_EQ(engine_.get("weight_info").body, R"({"weight_version":"other"})");
  EXPECT_EQ(engine_.get("weight_info").body, R"({"weight_version":"lie"})");
  engine_.post("start_weight_update");
  EXPECT_EQ(engine_.finish("6").status, 200);
  EXPECT_EQ(engine_.get("weight_info").body, R"({"weight_version":"other"})");
}

TEST_F(Faults, FreezeCoreAnswersNothingThenClosesThePort) {
  engine_.faults(R"([{"route": "start_weight_update", "nth": 1, "do": "freeze_core"}])");
  HttpProbe pending(engine_.port());
  pending.send(HttpProbe::render("POST", "/start_weight_update", "{}", "application/json"));
  EXPECT_EQ(pending.read(milliseconds(100)).raw, "");
  const Answer health = engine_.get("health");
  EXPECT_EQ(health.status, 503);
  EXPECT_EQ(look("is_paused", milliseconds(100)).raw, "");
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  bool refused = false;
  while (!refused && std::chrono::steady_clock::now() < until) {
    HttpProbe probe(engine_.port());
    refused = !probe.connected();
    if (!refused) {
      pending.read(milliseconds(100));
    }
  }
  EXPECT_TRUE(refused);
  EXPECT_FALSE(pending.closed(milliseconds(200))) << "a pending call never answers";
}

TEST(FaultDeaths, DieAndDieAfterChunks) {
  std::atomic<int> deaths{0};
  EngineOptions options = profileOptions("0.32");
  options.die = [&] { ++deaths; };
  TestEngine engine(options);
  engine.faults(R"([{"route": "is_sleeping", "nth": 1, "do": "die"},)"
                R"( {"route": "update_weights", "nth": 1, "do": "die_after_chunks",)"
                R"( "after_chunks": 1}])");
  HttpProbe probe(engine.port());
  probe.send(HttpProbe::render("GET", "/is_sleeping", std::nullopt, ""));
  EXPECT_EQ(probe.read(milliseconds(200)).raw, "");
  EXPECT_EQ(deaths, 1);
  TcpSender sender;
  engine.init(sender, 1, 4);
  engine.post("start_weight_update");
  auto pending = engine.postLater("update_weights", TcpSender::updateBody({tensor("a", {4}, 'a')}));
  sender.frame(1, 0, 8, 0, std::string(8, 'a'));
  EXPECT_EQ(pending.get().status, 500);
  EXPECT_EQ(deaths, 2);
}

TEST_F(Faults, WrongRulesAreRefusedWithTheReason) {
  const auto refusal = [&](const std::string& rules) {
    const Answer answer = engine_.post("__ctl", "{\"faults\": " + rules + "}");
    EXPECT_EQ(answer.status, 400) << rules;
    return answer.error();
  };
  EXPECT_TRUE(contains(refusal("{}"), "list"));
  EXPECT_TRUE(contains(refusal("[1]"), "fault 1: must be an object"));
  EXPECT_TRUE(contains(refusal(R"([{"route": "pause"}])"), "needs route and do"));
  EXPECT_TRUE(contains(refusal(R"([{"route": "pauze", "do": "hang"}])"), "does not exist"));
  EXPECT_TRUE(contains(refusal(R"([{"route": "pause", "do": "explode"}])"), "no action"));
  EXPECT_TRUE(contains(refusal(R"([{"route": "pause", "do": "hang", "nth": 0}])"), "nth"));
  EXPECT_TRUE(contains(refusal(R"([{"route": "pause", "do": "hang", "color": 1}])"), "color"));
  EXPECT_TRUE(
      contains(refusal(R"([{"route": "pause", "do": "delay", "seconds": -1}])"), "seconds"));
  EXPECT_TRUE(contains(refusal(R"([{"route": "pause", "do": "stop_reading"}])"), "update_weights"));
  EXPECT_TRUE(
      contains(refusal(R"([{"route": "pause", "do": "version"}])"), "finish_weight_update"));
  EXPECT_TRUE(contains(refusal(R"([{"route": "pause", "do": "worker_fails"}])"), "workers"));
  EXPECT_EQ(engine_.post("__ctl", R"({"set": {"bogus": 1}})").status, 400);
  EXPECT_EQ(engine_.post("__ctl", "{}").status, 400);
}

TEST(FaultFiles, FaultsAndJournal) {
  std::string folder = "/tmp/pushrod-reference-XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  const std::string faults = folder + "/faults.json";
  const std::string journal = folder + "/journal.jsonl";
  std::ofstream(faults) << R"([{"route": "health", "nth": 2, "do": "status", "status": 503}])";
  EngineOptions options = profileOptions("0.32");
  options.faults = faults;
  options.journal = journal;
  {
    TestEngine engine(options);
    EXPECT_EQ(engine.get("health").status, 200);
    EXPECT_EQ(engine.get("health").status, 503);
    TcpSender sender;
    engine.init(sender);
    engine.push(sender, {tensor("a", {4}, 'a')}, "1");
  }
  std::ifstream input(journal);
  const std::string text((std::istreambuf_iterator<char>(input)), {});
  for (const char* event : {"request", "reply", "tensor", "chunk", "joined", "fault"}) {
    EXPECT_TRUE(contains(text, std::string("\"event\":\"") + event + "\""));
  }
  EXPECT_TRUE(contains(
      text, R"("name":"a","dtype":"bfloat16","shape":[4],"sha256":")" + sha256("aaaaaaaa") + "\""));
  EXPECT_EQ(text.find(TcpSender::kChannel), std::string::npos) << "channel ids are secrets";
  std::ofstream(faults) << "[{]";
  net::IoExecutor executor;
  EXPECT_TRUE(contains(Engine::create(executor, options).status().message(), faults));
  ::unlink(faults.c_str());
  ::unlink(journal.c_str());
  ::rmdir(folder.c_str());
}

}  // namespace
}  // namespace pushrod::engines::reference::testing
