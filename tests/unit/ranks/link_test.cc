// SPDX-License-Identifier: Apache-2.0
#include "ranks/link.h"

#include <algorithm>
#include <array>
#include <future>
#include <sys/socket.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "link_rig.h"
#include "local_job.h"
#include "ranks/control_call.h"
#include "ranks/interrupt.h"
#include "ranks/local_address.h"
#include "ranks/store_frame.h"

namespace pushrod::ranks {
namespace {

TEST_F(LinkTest, StopReachesAllOthersThroughRankZero) {
  connect(4);
  node(2).stop(kKey, "gather failed");
  const std::string expected = "stop 2 " + kKey.toString() + ": gather failed";
  for (const int rank : {0, 1, 3}) {
    EXPECT_TRUE(node(rank).heard.await(expected)) << rank;
  }
  node(0).stop(kKey, "cancelled");
  for (const int rank : {1, 2, 3}) {
    EXPECT_TRUE(node(rank).heard.await("stop 0 " + kKey.toString() + ": cancelled")) << rank;
  }
  EXPECT_EQ(node(2).heard.texts().size(), 1U) << "a rank does not hear itself";
}

TEST_F(LinkTest, HaltReachesAllOthersThroughRankZero) {
  connect(3);
  node(2).onThread([&] {
    node(2).link().halt(kKey, Status(Code::kUnavailable, "no engine reads"));
    return true;
  });
  for (const int rank : {0, 1}) {
    EXPECT_TRUE(node(rank).heard.await("halt 2 " + kKey.toString() + ": no engine reads")) << rank;
  }
  EXPECT_TRUE(node(2).heard.texts().empty());
}

TEST_F(LinkTest, VerdictReachesAllOthers) {
  connect(3);
  Verdict verdict;
  verdict.first = Status(Code::kAborted, "rank 1 died");
  node(0).onThread([&] {
    node(0).link().publishVerdict(4, verdict);
    return true;
  });
  EXPECT_TRUE(node(1).heard.await("verdict 4 rank 1 died"));
  EXPECT_TRUE(node(2).heard.await("verdict 4 rank 1 died"));
}

TEST_F(LinkTest, RankThatConnectsLateHearsWhatItMissedOfItsPush) {
  connect(2);
  node(1).stop(kKey, "early");
  ASSERT_TRUE(node(0).heard.await("stop 1 " + kKey.toString() + ": early"));
  node(0).onThread([&] {
    Verdict verdict;
    verdict.first = Status(Code::kAborted, "failed");
    node(0).link().publishVerdict(4, verdict);
    return true;
  });
  Node again(1, 2, kLong);
  ASSERT_TRUE(again.join(port_, "token", 4));
  EXPECT_TRUE(again.heard.await("stop 1 " + kKey.toString() + ": early"));
  EXPECT_TRUE(again.heard.await("verdict 4 failed"));
  Node later(1, 2, kLong);
  ASSERT_TRUE(later.join(port_, "token", 5));
  node(0).stop({5, 1, Phase::kCheck, 0}, "now");
  EXPECT_TRUE(later.heard.await("stop 0 " + VoteKey{5, 1, Phase::kCheck, 0}.toString() + ": now"));
  EXPECT_EQ(later.heard.texts().size(), 1U) << "nothing of an earlier push";
}

TEST_F(LinkTest, ClosedConnectionIsALostRankForAll) {
  connect(3);
  nodes_.back().reset();
  EXPECT_TRUE(node(0).heard.await("lost 2"));
  EXPECT_TRUE(node(1).heard.await("lost 2"));
  EXPECT_EQ(node(0).onThread([this] { return node(0).link().missing(); }), std::vector<int>{2});
}

TEST_F(LinkTest, LostRankZeroIsTold) {
  connect(3);
  nodes_.front().reset();
  EXPECT_TRUE(node(1).heard.await("lost 0"));
  EXPECT_TRUE(node(2).heard.await("lost 0"));
}

TEST_F(LinkTest, SilentRankIsLostAndARankThatSleptKnowsIt) {
  constexpr Duration kShort{400};
  connect(3, kShort);
  // The control thread of rank 2 stands still, as in a stopped process.
  std::promise<void> wake;
  auto woken = wake.get_future();
  node(2).executor().post([&woken] { woken.wait(); });
  EXPECT_TRUE(node(0).heard.await("lost 2"));
  EXPECT_TRUE(node(1).heard.await("lost 2"));
  // It is counted from when the tick was due: make sure that this is long ago.
  Interrupt nobody;
  EXPECT_TRUE(nobody.waitFor(kShort));
  wake.set_value();
  EXPECT_TRUE(node(2).heard.await("oversleep"));
  EXPECT_EQ(node(2).heard.texts().front(), "oversleep") << "before anything else";
  EXPECT_EQ(node(1).heard.texts(), std::vector<std::string>{"lost 2"});
}

TEST_F(LinkTest, HeartbeatsTellPositionsAndKeepQuietRanksAlive) {
  constexpr Duration kShort{400};
  connect(2, kShort);
  node(1).position(kKey);
  Interrupt nobody;
  EXPECT_TRUE(nobody.waitFor(kShort * 3));
  const auto positions = node(0).onThread([this] { return node(0).link().positions(); });
  ASSERT_EQ(positions.size(), 1U);
  EXPECT_EQ(positions[0].rank, 1);
  EXPECT_EQ(positions[0].key, kKey);
  EXPECT_TRUE(node(0).heard.texts().empty());
  EXPECT_TRUE(node(1).heard.texts().empty());
}

std::string leftBehind(int by, std::uint64_t push, std::uint64_t theirs) {
  return "stop " + std::to_string(by) + " " + VoteKey{push, 1, Phase::kCheck, 0}.toString() +
         ": rank " + std::to_string(by) + " gave push " + std::to_string(push) +
         " up and is at push " + std::to_string(theirs) + "; this rank meets it there";
}

TEST_F(LinkTest, ARankThatWakesInAPushThatOthersGaveUpLeavesItAtOnce) {
  constexpr Duration kShort{400};
  connect(3, kShort);
  node(0).position({4, 1, Phase::kCheck, 0});
  node(1).position({4, 1, Phase::kCheck, 0});
  node(2).position({9, 1, Phase::kCheck, 0});
  EXPECT_TRUE(node(0).heard.await(leftBehind(2, 4, 9)));
  // Each push that it has to leave behind, once.
  node(0).position({5, 1, Phase::kCheck, 0});
  EXPECT_TRUE(node(0).heard.await(leftBehind(2, 5, 9)));
  EXPECT_TRUE(node(1).heard.await(leftBehind(0, 4, 5))) << "by rank 0's own position";
  node(0).position({9, 1, Phase::kCheck, 0});
  node(1).position({9, 1, Phase::kCheck, 0});
  Interrupt nobody;
  EXPECT_TRUE(nobody.waitFor(kShort * 2));
  EXPECT_EQ(node(0).heard.texts().size(), 2U) << "at the same push there is nothing to leave";
  EXPECT_TRUE(node(2).heard.texts().empty());
}

TEST_F(LinkTest, ARankAtALaterPushDoesNotEndOneThatHasMet) {
  constexpr Duration kShort{400};
  connect(2, kShort);
  // Rank 1 has the verdict and has begun the next push; rank 0 is about to learn it.
  node(0).position({4, 1, Phase::kVerdict, 0});
  node(1).position({5, 1, Phase::kCheck, 0});
  Interrupt nobody;
  EXPECT_TRUE(nobody.waitFor(kShort * 2));
  EXPECT_TRUE(node(0).heard.texts().empty());
}

TEST_F(LinkTest, ARankThatComesToALaterPushHearsItWithoutABeat) {
  connect(2);
  nodes_.back().reset();
  ASSERT_TRUE(node(0).heard.await("lost 1"));
  node(0).position({9, 1, Phase::kCheck, 0});
  Node late(1, 2, kLong);
  late.position({4, 1, Phase::kCheck, 0});
  ASSERT_TRUE(late.join(port_, "token", 4));
  EXPECT_TRUE(late.heard.await(leftBehind(0, 4, 9)));
}

TEST_F(LinkTest, WrongTokenIsRefused) {
  connect(2);
  Node other(1, 2, kLong);
  EXPECT_FALSE(other.join(port_, "another job's token"));
  EXPECT_TRUE(node(0).heard.texts().empty());
  EXPECT_TRUE(node(0).onThread([this] { return node(0).link().missing(); }).empty());
}

TEST_F(LinkTest, SilentServerEndsAJoinByItsDeadline) {
  net::IoExecutor executor;
  std::vector<std::unique_ptr<net::Stream>> kept;
  auto listener = onControlThread(executor, in(kPatience), [&] {
    return net::Listener::open(
        executor, "127.0.0.1", 0, [&kept](auto stream) { kept.push_back(std::move(stream)); });
  });
  Node rank(1, 2, kLong);
  EXPECT_EQ(rank.join((**listener)->port(), "token", 1, Duration{100}).code(),
            Code::kDeadlineExceeded);
  onControlThread(executor, in(kPatience), [&] {
    kept.clear();
    (*listener)->reset();
    return true;
  });
}

/// Sends bytes to rank 0 and returns when it has closed the connection.
void sendRaw(std::uint16_t port, const std::string& bytes) {
  const auto target = socketAddress("127.0.0.1", port);
  const int raw = ::socket(AF_INET, SOCK_STREAM, 0);
  ASSERT_EQ(::connect(raw, target->get(), target->size()), 0);
  ASSERT_EQ(::send(raw, bytes.data(), bytes.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(bytes.size()));
  std::array<char, 256> buffer{};
  while (::recv(raw, buffer.data(), buffer.size(), 0) > 0) {
  }
  ::close(raw);
}

TEST_F(LinkTest, MalformedFramesCloseOnlyTheirConnection) {
  connect(2);
  sendRaw(port_, "GET /metrics HTTP/1.1\r\n\r\n");
  sendRaw(port_, framed("garbage"));
  LinkFrame stop;
  stop.kind = LinkKind::kStop;
  stop.rank = 1;
  sendRaw(port_, encode(stop));
  LinkFrame hello;
  hello.kind = LinkKind::kHello;
  hello.token = "token";
  hello.rank = 7;
  sendRaw(port_, encode(hello));
  EXPECT_TRUE(node(0).heard.texts().empty());
  node(1).stop(kKey, "still here");
  EXPECT_TRUE(node(0).heard.await("stop 1 " + kKey.toString() + ": still here"));
}

TEST_F(LinkTest, RankThatSpeaksForAnotherIsLost) {
  connect(3);
  LinkFrame hello;
  hello.kind = LinkKind::kHello;
  hello.token = "token";
  hello.rank = 1;
  LinkFrame stop;
  stop.kind = LinkKind::kStop;
  stop.rank = 2;
  sendRaw(port_, encode(hello) + encode(stop));
  EXPECT_TRUE(node(0).heard.await("lost 1"));
  EXPECT_EQ(node(0).heard.texts(), std::vector<std::string>{"lost 1"});
}

TEST(MeetingTest, FailedOpenIsToldToTheOthersByTheLink) {
  LocalJob job(3);
  job.open(1);
  std::vector<Heard> heard(3);
  job.everyone([&heard](int rank, Member& member) {
    onControlThread(member.executor, in(kPatience), [&] {
      member.ranks->link().setListener(&heard[static_cast<std::size_t>(rank)]);
      return true;
    });
  });
  // Rank 1 comes to the next push alone and gives up.
  EXPECT_FALSE(job[1].agreement().open(2, in(Duration{100})));
  EXPECT_TRUE([&] {
    Interrupt nobody;
    for (int i = 0; i < 400; ++i) {
      const auto texts = heard[2].texts();
      if (!texts.empty() && texts.front().rfind("stop 1 ", 0) == 0) {
        return true;
      }
      (void)nobody.waitFor(Duration{20});
    }
    return false;
  }());
  job.everyone([](int, Member& member) {
    onControlThread(member.executor, in(kPatience), [&] {
      member.ranks->link().setListener(nullptr);
      return true;
    });
  });
  // And the push after that finds all of them again.
  job.open(3);
}

}  // namespace
}  // namespace pushrod::ranks
