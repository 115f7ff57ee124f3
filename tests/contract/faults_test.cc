// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/contract/engine_pair.h"

namespace pushrod::contract {
namespace {

using std::chrono::seconds;
using std::chrono::steady_clock;

TEST(FaultsTest, ADeadCoreEndsACallWithinTenSeconds) {
  TestEngine engine;
  BlockingClient client(engine.port());
  ASSERT_NE(client.connect(), nullptr);
  engine.faults(R"([{"route":"start_weight_update","nth":1,"do":"freeze_core"}])");
  const auto started = steady_clock::now();
  const Reply reply = client.run(CallKind::kStart, seconds(1800));
  EXPECT_EQ(reply.status.code(), Code::kUnavailable) << reply.status.message();
  EXPECT_EQ(reply.status.outcome(), Outcome::kUnknown);
  EXPECT_LT(steady_clock::now() - started, seconds(10));
}

TEST(FaultsTest, ALivingEngineThatNeverAnswersEndsByTheDeadline) {
  TestEngine engine;
  BlockingClient client(engine.port());
  ASSERT_NE(client.connect(), nullptr);
  engine.faults(R"([{"route":"start_weight_update","nth":1,"do":"hang"}])");
  const auto started = steady_clock::now();
  const Reply reply = client.run(CallKind::kStart, seconds(1));
  EXPECT_EQ(reply.status.code(), Code::kDeadlineExceeded) << reply.status.message();
  EXPECT_LT(steady_clock::now() - started, seconds(3));
}

TEST(FaultsTest, ATrickledAnswerEndsByTheDeadlineToo) {
  TestEngine engine;
  BlockingClient client(engine.port());
  ASSERT_NE(client.connect(), nullptr);
  engine.faults(R"([{"route":"finish_weight_update","nth":1,"do":"trickle"}])");
  const auto started = steady_clock::now();
  const Reply reply = client.run(CallKind::kFinish, seconds(1));
  EXPECT_EQ(reply.status.code(), Code::kDeadlineExceeded) << reply.status.message();
  EXPECT_EQ(reply.status.outcome(), Outcome::kUnknown);
  EXPECT_LT(steady_clock::now() - started, seconds(3));
}

TEST(FaultsTest, OnlyTheExactVersionIsRead) {
  TestEngine engine;
  BlockingClient client(engine.port());
  ASSERT_NE(client.connect(), nullptr);
  for (const char* body : {R"({\"weight_version\":null})",
                           R"({\"weight_version\":8})",
                           "{}",
                           R"([\"8\"])",
                           "<html>no</html>",
                           ""}) {
    engine.faults(R"([{"route":"weight_info","nth":1,"do":"status","status":200,"body":")" +
                  std::string(body) + R"("}])");
    const Reply reply = client.run(CallKind::kReadVersion);
    EXPECT_EQ(reply.status.code(), Code::kUnavailable) << body;
  }
  engine.faults(R"([{"route":"weight_info","nth":1,"do":"status","status":404}])");
  EXPECT_EQ(client.run(CallKind::kReadVersion).status.outcome(), Outcome::kRejected);
  EXPECT_EQ(client.run(CallKind::kReadVersion).text, "default");
}

TEST(FaultsTest, CutConnectionsAreRepeatedWhereThatIsSafe) {
  TestEngine engine;
  BlockingClient client(engine.port());
  ASSERT_NE(client.connect(), nullptr);
  for (const char* cut : {"reset", "close"}) {
    const std::string rule = R"(,"nth":[1,2],"do":")" + std::string(cut) + R"("}])";
    engine.faults(R"([{"route":"pause")" + rule);
    EXPECT_TRUE(client.run(CallKind::kPause).status.ok()) << cut;
    engine.faults(R"([{"route":"weight_info")" + rule);
    EXPECT_TRUE(client.run(CallKind::kReadVersion).status.ok()) << cut;
    engine.faults(R"([{"route":"resume")" + rule);
    const Reply resume = client.run(CallKind::kResume);
    EXPECT_EQ(resume.status.code(), Code::kUnavailable) << cut;
    EXPECT_EQ(resume.status.outcome(), Outcome::kUnknown) << cut;
    EXPECT_EQ(client.run(CallKind::kReadPaused).flag, true);
    engine.faults("[]");
    EXPECT_TRUE(client.run(CallKind::kResume).status.ok());
  }
}

TEST(FaultsTest, AResumeThatActedButWasNotHeardIsUnknown) {
  TestEngine engine;
  BlockingClient client(engine.port());
  ASSERT_NE(client.connect(), nullptr);
  EXPECT_TRUE(client.run(CallKind::kPause).status.ok());
  engine.faults(R"([{"route":"resume","nth":1,"do":"apply_reset"}])");
  EXPECT_EQ(client.run(CallKind::kResume).status.outcome(), Outcome::kUnknown);
  EXPECT_EQ(client.run(CallKind::kReadPaused).flag, false);
}

TEST(FaultsTest, ASlowStartIsWaitedForAndItsEndSaysWhatWasAnswered) {
  TestEngine engine;
  engine.faults(
      R"([{"route":"version","nth":[1,2,3],"do":"status","status":503,"body":"starting"}])");
  {
    BlockingClient client(engine.port());
    EXPECT_TRUE(client.run(CallKind::kIdentify).status.ok());
  }
  engine.faults(
      R"([{"route":"version","nth":"every","do":"status","status":503,"body":"starting"}])");
  BlockingClient client(engine.port());
  const auto started = steady_clock::now();
  const Reply reply = client.run(CallKind::kIdentify, seconds(1));
  EXPECT_EQ(reply.status.code(), Code::kDeadlineExceeded);
  EXPECT_TRUE(has(reply.status.message(), "starting")) << reply.status.message();
  EXPECT_LT(steady_clock::now() - started, seconds(3));
}

TEST(FaultsTest, AnEngineThatListensLaterIsFound) {
  std::uint16_t port = 0;
  {
    const TestEngine first;
    port = first.port();
  }
  BlockingClient client(port);
  Call identify;
  std::future<Reply> pending = client.begin(identify);
  // The client is refused at least once before the engine listens.
  ASSERT_EQ(pending.wait_for(std::chrono::milliseconds(300)), std::future_status::timeout);
  const TestEngine engine("0.33", 1, port);
  ASSERT_EQ(pending.wait_for(kPatience), std::future_status::ready);
  EXPECT_TRUE(pending.get().status.ok());
}

TEST(FaultsTest, RequestsAreCounted) {
  TestEngine engine;
  BlockingClient client(engine.port());
  ASSERT_NE(client.connect(), nullptr);
  EXPECT_FALSE(client.run(CallKind::kFinish).status.ok());
  const std::string page = client.metrics().render();
  for (const char* series : {R"(route="version")", R"(route="finish_weight_update")"}) {
    EXPECT_TRUE(has(page, series)) << series;
  }
}

}  // namespace
}  // namespace pushrod::contract
