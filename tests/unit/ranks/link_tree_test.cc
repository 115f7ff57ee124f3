// SPDX-License-Identifier: Apache-2.0
#include "link_tree.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace pushrod::ranks {
namespace {

TEST_F(LinkTreeTest, IsAStarUpToSixtyFourRanks) {
  EXPECT_EQ(TreePlace::of(0, 64, Link::fanOut(64)).children.size(), 63U);
  for (const int size : {65, 130, 5000}) {
    for (int rank = 0; rank < size; ++rank) {
      EXPECT_LE(TreePlace::of(rank, size, Link::fanOut(size)).children.size(), 64U);
    }
  }
}

TEST_F(LinkTreeTest, StopOfALeafReachesAllOthersOnce) {
  connect(130);
  stop(kLeaf, kKey, "gather failed");
  expectFirstHeard("stop 40 " + kKey.toString() + ": gather failed", kLeaf);
  stop(0, kKey, "cancelled");
  for (int rank = 1; rank < size_; ++rank) {
    EXPECT_TRUE(heard(rank).await("stop 0 " + kKey.toString() + ": cancelled")) << rank;
    EXPECT_EQ(heard(rank).texts().size(), rank == kLeaf ? 1U : 2U) << rank;
  }
}

TEST_F(LinkTreeTest, StopAndVerdictCrossThreeLevels) {
  connect(280);
  stop(279, kKey, "deep");
  expectFirstHeard("stop 279 " + kKey.toString() + ": deep", 279);
  publish("rank 279 failed");
  for (int rank = 1; rank < size_; ++rank) {
    EXPECT_TRUE(heard(rank).await("verdict 4 rank 279 failed")) << rank;
  }
}

TEST_F(LinkTreeTest, RankThatConnectsLateHearsWhatRanksSaidBefore) {
  create(130, kLong);
  // The leaf stops while its way to rank 0 ends at the inner rank.
  onThread([this] {
    beginJoin(kLeafOfInner);
    return true;
  });
  EXPECT_TRUE(eventually([this] { return link(kLeafOfInner).missing().empty(); }));
  stop(kLeafOfInner, kKey, "early");
  const std::string early = "stop 20 " + kKey.toString() + ": early";
  EXPECT_TRUE(heard(kInner).await(early));
  EXPECT_TRUE(heard(0).texts().empty());
  beginJoins(kLeafOfInner);
  expectFirstHeard(early, kLeafOfInner);
}

TEST_F(LinkTreeTest, PositionsAndAgesOfAllReachRankZero) {
  constexpr Duration kShort{1000};  // a beat every 250 ms
  create(130, kShort);
  const TimePoint begin = SteadyClock().now();
  onThread([this] {
    for (int rank = 1; rank < size_; ++rank) {
      link(rank).setPosition({kEpoch, 1, Phase::kStream, static_cast<std::uint32_t>(rank)});
      beginJoin(rank);
    }
    return true;
  });
  awaitAll();
  const auto all = [this] { return onThread([this] { return link(0).positions(); }); };
  // All stand still: their ages grow by the time that passes, also two levels away.
  EXPECT_TRUE(eventually([&] {
    const auto positions = all();
    return std::all_of(positions.begin(), positions.end(), [](const RankPosition& each) {
      return each.key.epoch == kEpoch && each.age >= Duration{600};
    });
  }));
  const auto positions = all();
  const TimePoint end = SteadyClock().now();
  ASSERT_EQ(positions.size(), 129U);
  for (std::size_t i = 0; i < positions.size(); ++i) {
    EXPECT_EQ(positions[i].rank, static_cast<int>(i) + 1);
    EXPECT_EQ(positions[i].key.step, i + 1);
    EXPECT_LE(positions[i].age, end - begin);
    EXPECT_LE(positions[i].silence, kShort * 2);
  }
  // The same position again does not make it younger, another one does.
  const TimePoint change = SteadyClock().now();
  onThread([this] {
    link(kLeaf).setPosition({kEpoch, 1, Phase::kStream, kLeaf});
    link(kLeaf + 1).setPosition({kEpoch, 1, Phase::kFinish, 0});
    return true;
  });
  EXPECT_TRUE(eventually([&] { return link(0).positions()[kLeaf].key.phase == Phase::kFinish; }));
  const auto later = all();
  EXPECT_GE(later[kLeaf - 1].age, positions[kLeaf - 1].age);
  EXPECT_LE(later[kLeaf].age, SteadyClock().now() - change);
  // Elsewhere: the way to rank 0 and what is below.
  const auto seen = onThread([this] { return link(kInner).positions(); });
  ASSERT_EQ(seen.size(), 17U);
  EXPECT_EQ(seen.front().rank, 0);
  EXPECT_EQ(seen.back().rank, 32);
}

TEST_F(LinkTreeTest, LinksEndInAnyOrder) {
  connect(130);
  onThread([this] {
    for (std::size_t i = 0; i < links_.size(); ++i) {
      // 37 and 130 have no common factor: every link once, inner and outer ones mixed.
      links_[i * 37 % links_.size()].reset();
    }
    return true;
  });
  for (const auto& each : heard_) {
    EXPECT_TRUE(each->texts().empty());
  }
}

TEST(LinkTreeMeetingTest, RanksOfALargeJobFindTheirPlacesThroughTheStore) {
  constexpr int kSize = 66;  // two levels: rank 1 has 17 to 32 below it
  LocalJob job(kSize);
  job.open(1);
  const auto missing = [&job] {
    auto& executor = job[0].executor;
    auto* const link = &job[0].ranks->linkWithPositions();
    return onControlThread(executor, in(kPatience), [link] { return link->missing(); });
  };
  EXPECT_EQ(missing(), std::vector<int>());
  Heard heard;
  onControlThread(job[kSize - 1].executor, in(kPatience), [&] {
    job[kSize - 1].ranks->link().setListener(&heard);
    return true;
  });
  const VoteKey key{1, 1, Phase::kStream, 0};
  onControlThread(job[20].executor, in(kPatience), [&] {
    job[20].ranks->link().stop(key, Status(Code::kInternal, "gather failed"));
    return true;
  });
  EXPECT_TRUE(heard.await("stop 20 " + key.toString() + ": gather failed"));
  onControlThread(job[kSize - 1].executor, in(kPatience), [&] {
    job[kSize - 1].ranks->link().setListener(nullptr);
    return true;
  });
  job.open(2);
}

}  // namespace
}  // namespace pushrod::ranks
