// SPDX-License-Identifier: Apache-2.0
#include <future>
#include <sys/socket.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "link_tree.h"
#include "ranks/local_address.h"

namespace pushrod::ranks {
namespace {

TEST_F(LinkTreeTest, DeathOfALeafIsToldToAll) {
  connect(130);
  die(kLeaf);
  expectFirstHeard("lost 40");
  EXPECT_EQ(onThread([this] { return link(0).missing(); }), std::vector<int>{kLeaf});
}

TEST_F(LinkTreeTest, SilentLeafIsLostForAllWithinTheLimit) {
  constexpr Duration kShort{1000};
  create(80, kShort, kLeaf);
  beginJoins(kLeaf);
  // A rank that greets and then says nothing, as one that was stopped.
  const auto target = socketAddress("127.0.0.1", ports_[place(kLeaf).parent]);
  const int raw = ::socket(AF_INET, SOCK_STREAM, 0);
  ASSERT_EQ(::connect(raw, target->get(), target->size()), 0);
  LinkFrame hello;
  hello.kind = LinkKind::kHello;
  hello.token = "token";
  hello.rank = kLeaf;
  const std::string bytes = encode(hello);
  ASSERT_EQ(::send(raw, bytes.data(), bytes.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(bytes.size()));
  awaitAll();
  expectFirstHeard("lost 40");
  EXPECT_EQ(heard(0).texts().size(), 1U) << "quiet ranks that live are not lost";
  ::close(raw);
}

TEST_F(LinkTreeTest, DeathOfAnInnerRankIsNamedAndTheRanksBelowItLive) {
  connect(130);
  die(kInner);
  expectFirstHeard("lost 1");
  // The ranks below turn to rank 0: the only one missing is the dead one.
  EXPECT_TRUE(eventually([this] { return link(0).missing() == std::vector<int>{kInner}; }));
  publish("rank 1 died");
  stop(kLeafOfInner, kKey, "lost a rank");
  for (int rank = 2; rank < size_; ++rank) {
    EXPECT_TRUE(heard(rank).await("verdict 4 rank 1 died")) << rank;
    if (rank != kLeafOfInner) {
      EXPECT_TRUE(heard(rank).await("stop 20 " + kKey.toString() + ": lost a rank")) << rank;
    }
    EXPECT_EQ(heard(rank).texts().size(), rank == kLeafOfInner ? 2U : 3U) << rank;
  }
}

TEST_F(LinkTreeTest, SilentInnerRankIsNamedAndKnowsItWhenItWakes) {
  constexpr Duration kShort{1000};
  create(80, kShort, kInner);
  // It alone has a control thread of its own, to stand still as in a stopped process.
  net::IoExecutor executor;
  auto inner = std::make_unique<Link>(executor, LinkOptions{kInner, 80, kShort, nullptr});
  const auto onInner = [&executor](auto f) { return *onControlThread(executor, in(kPatience), f); };
  ports_[kInner] = onInner([&] {
    inner->setListener(&heard(kInner));
    EXPECT_TRUE(inner->listen("127.0.0.1", "token"));
    beginJoin(kInner, *inner);
    return inner->port();
  });
  beginJoins(kInner);
  awaitAll();
  std::promise<void> wake;
  auto woken = wake.get_future();
  executor.post([&woken] { woken.wait(); });
  expectFirstHeard("lost 1");
  EXPECT_TRUE(eventually([this] { return link(0).missing() == std::vector<int>{kInner}; }));
  for (int rank = 0; rank < size_; ++rank) {
    EXPECT_LE(heard(rank).texts().size(), 1U) << rank;
  }
  // It is counted from when the tick was due: make sure that this is long ago.
  Interrupt nobody;
  EXPECT_TRUE(nobody.waitFor(kShort));
  wake.set_value();
  EXPECT_TRUE(heard(kInner).await("oversleep"));
  EXPECT_EQ(heard(kInner).texts().front(), "oversleep") << "before anything else";
  destroyOnControlThread(executor, inner);
}

TEST_F(LinkTreeTest, RankBelowADeadOneHearsAVerdictOfBeforeItCame) {
  connect(130);
  onThread([this] {
    // Both before rank 0 can notice the death, let alone be turned to.
    link(kLeafOfInner).setPosition(kKey);
    links_[kInner].reset();
    Verdict verdict;
    verdict.first = Status(Code::kAborted, "early");
    link(0).publishVerdict(kEpoch, verdict);
    return true;
  });
  EXPECT_TRUE(heard(kLeafOfInner).await("verdict 4 early"));
  EXPECT_EQ(heard(kLeafOfInner).texts().front(), "lost 1");
}

TEST_F(LinkTreeTest, DeathOfRankZeroIsToldToAll) {
  connect(130);
  die(0);
  expectFirstHeard("lost 0");
}

}  // namespace
}  // namespace pushrod::ranks
