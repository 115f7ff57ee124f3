// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/contract/engine_pair.h"

namespace pushrod::contract {
namespace {

using std::chrono::seconds;
using std::chrono::steady_clock;

/// A client that has met its engine.
class FaultsTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_NE(client_.connect(), nullptr); }

  /// Makes the call while the engine's first answer on the call's route suffers `fault`; fails when
  /// it takes longer than `most`.
  Reply run(CallKind kind,
            const std::string& route,
            const std::string& fault,
            Duration limit,
            Duration most) {
    engine_.faults(R"([{"route":")" + route + R"(","nth":1,"do":")" + fault + R"("}])");
    const auto started = steady_clock::now();
    Reply reply = client_.run(kind, limit);
    EXPECT_LT(steady_clock::now() - started, most);
    return reply;
  }

  TestEngine engine_;
  BlockingClient client_{engine_.port()};
};

TEST_F(FaultsTest, ADeadCoreEndsACallWithinTenSeconds) {
  const Reply reply =
      run(CallKind::kStart, "start_weight_update", "freeze_core", seconds(1800), seconds(10));
  EXPECT_EQ(reply.status.code(), Code::kUnavailable) << reply.status.message();
  EXPECT_EQ(reply.status.outcome(), Outcome::kUnknown);
}

TEST_F(FaultsTest, ALivingEngineThatNeverAnswersEndsByTheDeadline) {
  const Reply reply = run(CallKind::kStart, "start_weight_update", "hang", seconds(1), seconds(3));
  EXPECT_EQ(reply.status.code(), Code::kDeadlineExceeded) << reply.status.message();
}

TEST_F(FaultsTest, ATrickledAnswerEndsByTheDeadlineToo) {
  const Reply reply =
      run(CallKind::kFinish, "finish_weight_update", "trickle", seconds(1), seconds(3));
  EXPECT_EQ(reply.status.code(), Code::kDeadlineExceeded) << reply.status.message();
  EXPECT_EQ(reply.status.outcome(), Outcome::kUnknown);
}

TEST_F(FaultsTest, OnlyTheExactVersionIsRead) {
  for (const char* body : {R"({\"weight_version\":null})",
                           R"({\"weight_version\":8})",
                           "{}",
                           R"([\"8\"])",
                           "<html>no</html>",
                           ""}) {
    engine_.faults(R"([{"route":"weight_info","nth":1,"do":"status","status":200,"body":")" +
                   std::string(body) + R"("}])");
    const Reply reply = client_.run(CallKind::kReadVersion);
    EXPECT_EQ(reply.status.code(), Code::kUnavailable) << body;
  }
  engine_.faults(R"([{"route":"weight_info","nth":1,"do":"status","status":404}])");
  EXPECT_EQ(client_.run(CallKind::kReadVersion).status.outcome(), Outcome::kRejected);
  EXPECT_EQ(client_.run(CallKind::kReadVersion).text, "default");
}

TEST_F(FaultsTest, CutConnectionsAreRepeatedWhereThatIsSafe) {
  for (const char* cut : {"reset", "close"}) {
    const std::string rule = R"(,"nth":[1,2],"do":")" + std::string(cut) + R"("}])";
    engine_.faults(R"([{"route":"pause")" + rule);
    EXPECT_TRUE(client_.run(CallKind::kPause).status.ok()) << cut;
    engine_.faults(R"([{"route":"weight_info")" + rule);
    EXPECT_TRUE(client_.run(CallKind::kReadVersion).status.ok()) << cut;
    engine_.faults(R"([{"route":"resume")" + rule);
    const Reply resume = client_.run(CallKind::kResume);
    EXPECT_EQ(resume.status.code(), Code::kUnavailable) << cut;
    EXPECT_EQ(resume.status.outcome(), Outcome::kUnknown) << cut;
    EXPECT_EQ(client_.run(CallKind::kReadPaused).flag, true);
    engine_.faults("[]");
    EXPECT_TRUE(client_.run(CallKind::kResume).status.ok());
  }
}

TEST_F(FaultsTest, AResumeThatActedButWasNotHeardIsUnknown) {
  EXPECT_TRUE(client_.run(CallKind::kPause).status.ok());
  engine_.faults(R"([{"route":"resume","nth":1,"do":"apply_reset"}])");
  EXPECT_EQ(client_.run(CallKind::kResume).status.outcome(), Outcome::kUnknown);
  EXPECT_EQ(client_.run(CallKind::kReadPaused).flag, false);
}

TEST(StartupTest, ASlowStartIsWaitedForAndItsEndSaysWhatWasAnswered) {
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

TEST(StartupTest, AnEngineThatListensLaterIsFound) {
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

TEST_F(FaultsTest, RequestsAreCounted) {
  EXPECT_FALSE(client_.run(CallKind::kFinish).status.ok());
  const std::string page = client_.metrics().render();
  for (const char* series : {R"(route="version")", R"(route="finish_weight_update")"}) {
    EXPECT_TRUE(has(page, series)) << series;
  }
}

}  // namespace
}  // namespace pushrod::contract
