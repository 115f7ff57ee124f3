// SPDX-License-Identifier: Apache-2.0
#include "ranks/gather.h"

#include <future>
#include <numeric>

#include <gtest/gtest.h>

#include "local_job.h"

namespace pushrod::ranks {
namespace {

std::byte byteAt(std::size_t place) {
  return static_cast<std::byte>(place * 131 % 251);
}

/// Every rank's gatherer of a job that has met.
class GatherTest : public ::testing::Test {
 protected:
  void meet(int size) {
    job_ = std::make_unique<LocalJob>(size);
    job_->open(1);
    for (int rank = 0; rank < size; ++rank) {
      gathers_.push_back((*job_)[rank].ranks->gather());
    }
  }

  Gather& gather(int rank) { return *gathers_[static_cast<std::size_t>(rank)]; }

  Status gatherOnce(int rank, const std::vector<std::size_t>& counts, Duration limit = kPatience) {
    const auto own = static_cast<std::size_t>(rank);
    const std::size_t begin =
        std::accumulate(counts.begin(), counts.begin() + rank, std::size_t{0});
    const std::size_t total = std::accumulate(counts.begin(), counts.end(), std::size_t{0});
    std::vector<std::byte> mine(counts[own]);
    for (std::size_t i = 0; i < mine.size(); ++i) {
      mine[i] = byteAt(begin + i);
    }
    std::vector<std::byte> whole(total);
    const Status status = gather(rank).allGatherShares(mine, whole, counts, in(limit));
    for (std::size_t i = 0; status.ok() && i < total; ++i) {
      if (whole[i] != byteAt(i)) {
        ADD_FAILURE() << "rank " << rank << " has a wrong byte at " << i;
        break;
      }
    }
    return status;
  }

  void everyoneGathers(const std::vector<std::size_t>& counts) {
    job_->everyone([&](int rank, Member&) {
      const Status status = gatherOnce(rank, counts);
      EXPECT_TRUE(status) << rank << ": " << status.toString();
    });
  }

  std::unique_ptr<LocalJob> job_;
  std::vector<std::unique_ptr<Gather>> gathers_;
};

TEST_F(GatherTest, OneRankCopies) {
  meet(1);
  everyoneGathers({1000});
}

TEST_F(GatherTest, TwoRanks) {
  meet(2);
  everyoneGathers({10, 7});
  everyoneGathers({0, 0});
  everyoneGathers({0, 5});
  everyoneGathers({Gather::kPiece + 1, 3});
}

TEST_F(GatherTest, FiveRanksWithUnevenAndEmptyShares) {
  meet(5);
  everyoneGathers({1, 0, 300000, 17, 4096});
  everyoneGathers({0, 0, 0, 0, 1});
  for (int i = 0; i < 20; ++i) {
    everyoneGathers({10, 10, 10, 10, 10});
  }
  everyoneGathers({9000000, 1, 1, 9000000, 1});
}

TEST_F(GatherTest, DifferentCountsAreFoundBeforeAnyByteMoves) {
  meet(3);
  job_->everyone([&](int rank, Member&) {
    std::vector<std::size_t> counts = {100, 100, 100};
    if (rank == 1) {
      counts = {100, 100, 5000};
    }
    EXPECT_FALSE(gatherOnce(rank, counts, Duration{2000}));
  });
  job_->everyone([&](int rank, Member&) {
    EXPECT_FALSE(gatherOnce(rank, {1, 1, 1})) << "until recover()";
    EXPECT_TRUE(gather(rank).recover(in(kPatience)));
  });
  everyoneGathers({1, 2, 3});
}

TEST_F(GatherTest, SharesThatDoNotAddUpAreRefused) {
  meet(2);
  std::vector<std::byte> mine(3);
  std::vector<std::byte> whole(10);
  const std::vector<std::size_t> counts = {3, 6};
  EXPECT_EQ(gather(0).allGatherShares(mine, whole, counts, in(kPatience)).code(),
            Code::kInvalidArgument);
}

TEST_F(GatherTest, AbortEndsABlockedCallAndRecoverMakesItUsable) {
  meet(3);
  everyoneGathers({5, 5, 5});
  for (int round = 0; round < 3; ++round) {
    auto blocked = std::async(std::launch::async, [&] { return gatherOnce(0, {5, 5, 5}); });
    gather(0).abort(Status(Code::kAborted, "rank 2 failed"));
    EXPECT_EQ(blocked.get().message(), "rank 2 failed");
    job_->everyone([&](int rank, Member&) {
      const Status recovered = gather(rank).recover(in(kPatience));
      EXPECT_TRUE(recovered) << recovered.toString();
    });
    everyoneGathers({5, 5, 5});
  }
}

TEST_F(GatherTest, RanksThatRecoveredADifferentNumberOfTimesMeetAgain) {
  meet(3);
  everyoneGathers({5, 5, 5});
  // Rank 1 tries to recover alone, twice.
  EXPECT_EQ(gather(1).recover(in(Duration{50})).code(), Code::kDeadlineExceeded);
  EXPECT_EQ(gather(1).recover(in(Duration{50})).code(), Code::kDeadlineExceeded);
  job_->everyone([&](int rank, Member&) {
    const Status recovered = gather(rank).recover(in(kPatience));
    EXPECT_TRUE(recovered) << recovered.toString();
  });
  everyoneGathers({5, 6, 7});
}

TEST_F(GatherTest, RanksRenewEachByItself) {
  meet(3);
  everyoneGathers({5, 5, 5});
  gather(0).abort(Status(Code::kAborted, "the pass was ended"));
  job_->everyone([&](int rank, Member&) { EXPECT_FALSE(gatherOnce(rank, {5, 5, 5})) << rank; });
  // One after another, in one thread: no call can wait for another rank's.
  for (const int rank : {2, 0, 1, 2, 2}) {
    gather(rank).renew();
  }
  everyoneGathers({5, 6, 7});
}

TEST_F(GatherTest, RingsOfAnyOrderConnect) {
  // Which side of a pair waits for the other's connect is drawn by its ports. A ring whose ranks
  // began at their own right would wait for ever about once in eight.
  for (int round = 0; round < 40; ++round) {
    gathers_.clear();
    meet(3);
    everyoneGathers({1, 1, 1});
  }
}

TEST_F(GatherTest, MissingRankEndsByTheDeadline) {
  meet(3);
  everyoneGathers({5, 5, 5});
  job_->everyone([&](int rank, Member&) {
    if (rank != 2) {
      EXPECT_FALSE(gatherOnce(rank, {5, 5, 5}, Duration{200}));
    }
  });
}

TEST_F(GatherTest, VotesGoOnBesideGathers) {
  meet(3);
  job_->everyone([&](int rank, Member& member) {
    for (std::uint32_t step = 0; step < 10; ++step) {
      EXPECT_TRUE(gatherOnce(rank, {100, 200, 300}));
      EXPECT_TRUE(member.agreement().vote({1, 1, Phase::kStream, step}, {}, in(kPatience)));
    }
  });
}

TEST(GatherAloneTest, NeedsRanksThatHaveMet) {
  LocalJob job(2);
  const auto gather = job[0].ranks->gather();
  std::vector<std::byte> whole(2);
  const std::vector<std::size_t> counts = {1, 1};
  EXPECT_EQ(gather->allGatherShares(std::span(whole).first(1), whole, counts, in(kPatience)).code(),
            Code::kFailedPrecondition);
}

}  // namespace
}  // namespace pushrod::ranks
