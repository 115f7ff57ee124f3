// SPDX-License-Identifier: Apache-2.0
#include "ranks/run_id.h"

#include <future>

#include <gtest/gtest.h>

#include "local_job.h"
#include "ranks/file_store.h"

namespace pushrod::ranks {
namespace {

using Values = std::vector<std::optional<std::string>>;

TEST(RunIdTest, DeadRunsIdIsNotTakenAndIsRemoved) {
  const TemporaryFolder folder;
  auto first = FileStore::open(folder.path());
  auto second = FileStore::open(folder.path());
  ASSERT_TRUE((*first)->set("base/run", "dead", in(kPatience)));
  ASSERT_TRUE((*first)->set("base/dead/vote/1/0", "old address", in(kPatience)));
  Interrupt interrupt;
  auto follower = std::async(std::launch::async, [&] {
    return RunAgreement("base", *Rank::of(1, 2)).agree(**second, interrupt, in(kPatience));
  });
  // Only once the follower has fallen for the old id.
  ASSERT_TRUE(awaitKey(**first, "base/dead/hello/1", interrupt, in(kPatience)));
  const auto leader =
      RunAgreement("base", *Rank::of(0, 2)).agree(**first, interrupt, in(kPatience));
  const auto followed = follower.get();
  ASSERT_TRUE(leader && followed);
  EXPECT_EQ(*leader, *followed);
  EXPECT_NE(*leader, "dead");
  EXPECT_EQ((*first)->get({"base/dead/vote/1/0"}, in(kPatience)).value(), Values{std::nullopt});
}

TEST(RunIdTest, RankZeroLearnsWhereEveryRankLives) {
  const TemporaryFolder folder;
  auto first = FileStore::open(folder.path());
  auto second = FileStore::open(folder.path());
  auto third = FileStore::open(folder.path());
  Interrupt interrupt;
  const auto follow = [&](Store& store, int rank, const std::string& host) {
    return std::async(std::launch::async, [&store, &interrupt, rank, host] {
      return RunAgreement("base", *Rank::of(rank, 3), host).agree(store, interrupt, in(kPatience));
    });
  };
  auto one = follow(**second, 1, "host-b");
  auto two = follow(**third, 2, "");
  RunAgreement leader("base", *Rank::of(0, 3), "host-a");
  ASSERT_TRUE(leader.agree(**first, interrupt, in(kPatience)));
  ASSERT_TRUE(one.get() && two.get());
  EXPECT_EQ(leader.hostIds(), (std::vector<std::string>{"host-a", "host-b", ""}));
}

TEST(RunIdTest, DifferentSizesAreToldOnBothRanks) {
  const TemporaryFolder folder;
  auto first = FileStore::open(folder.path());
  auto second = FileStore::open(folder.path());
  Interrupt interrupt;
  auto follower = std::async(std::launch::async, [&] {
    return RunAgreement("base", *Rank::of(1, 3)).agree(**second, interrupt, in(kPatience));
  });
  const auto leader =
      RunAgreement("base", *Rank::of(0, 2)).agree(**first, interrupt, in(kPatience));
  const auto followed = follower.get();
  ASSERT_FALSE(leader || followed);
  EXPECT_EQ(leader.status().code(), Code::kInvalidArgument);
  EXPECT_EQ(leader.status().message(), followed.status().message());
}

TEST(RunIdTest, RankThatIsLateForTheFirstTryIsTakenInTheSecond) {
  const TemporaryFolder folder;
  auto firstStore = FileStore::open(folder.path());
  auto secondStore = FileStore::open(folder.path());
  Store& first = **firstStore;
  Store& second = **secondStore;
  Interrupt interrupt;
  RunAgreement leader("base", *Rank::of(0, 3));
  RunAgreement early("base", *Rank::of(1, 3));
  auto follower =
      std::async(std::launch::async, [&] { return early.agree(second, interrupt, in(kPatience)); });
  EXPECT_FALSE(leader.agree(first, interrupt, in(Duration{100})));
  RunAgreement late("base", *Rank::of(2, 3));
  auto lateFollower = std::async(std::launch::async, [&] {
    auto third = FileStore::open(folder.path());
    return late.agree(**third, interrupt, in(kPatience));
  });
  const auto run = leader.agree(first, interrupt, in(kPatience));
  ASSERT_TRUE(run);
  EXPECT_EQ(follower.get().value(), *run);
  EXPECT_EQ(lateFollower.get().value(), *run);
}

TEST(RunIdTest, RanksOfDifferentJobsSayWhereEachWaited) {
  const TemporaryFolder folder;
  auto store = FileStore::open(folder.path());
  auto other = FileStore::open(folder.path());
  Interrupt interrupt;
  auto waiting = std::async(std::launch::async, [&] {
    return RunAgreement("pushrod/b", *Rank::of(1, 2)).agree(**other, interrupt, in(Duration{60}));
  });
  const auto leader =
      RunAgreement("pushrod/a", *Rank::of(0, 2)).agree(**store, interrupt, in(Duration{60}));
  EXPECT_NE(leader.status().message().find("'pushrod/a'"), std::string::npos);
  const std::string theirs = waiting.get().status().message();
  EXPECT_NE(theirs.find("rank 0 did not come to 'pushrod/b'"), std::string::npos) << theirs;
  EXPECT_NE(theirs.find("job and store must be the same"), std::string::npos);
}

TEST(RunIdTest, MissingRanksAreNamed) {
  const TemporaryFolder folder;
  auto store = FileStore::open(folder.path());
  Interrupt interrupt;
  const auto leader =
      RunAgreement("base", *Rank::of(0, 3)).agree(**store, interrupt, in(Duration{60}));
  EXPECT_EQ(leader.status().code(), Code::kDeadlineExceeded);
  EXPECT_NE(leader.status().message().find("ranks 1, 2"), std::string::npos);
  const auto follower =
      RunAgreement("new", *Rank::of(1, 3)).agree(**store, interrupt, in(Duration{60}));
  EXPECT_NE(follower.status().message().find("rank 0"), std::string::npos);
}

}  // namespace
}  // namespace pushrod::ranks
