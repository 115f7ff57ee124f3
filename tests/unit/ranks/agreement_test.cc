// SPDX-License-Identifier: Apache-2.0
// Ranks as threads of one process; see process_test.cc for ranks that die or stop.
#include <atomic>
#include <future>

#include <gtest/gtest.h>

#include "local_job.h"

namespace pushrod::ranks {
namespace {

VoteKey keyOf(std::uint64_t epoch, std::uint32_t step = 0, Phase phase = Phase::kCheck) {
  return {epoch, 1, phase, step};
}

Ballot failing(const std::string& text) {
  return {Status(Code::kDataMismatch, text), 0, false, {}};
}

TEST(SoloTest, OneRankNeedsNobody) {
  RanksOptions options;
  Member member(options);
  ASSERT_TRUE(member.agreement().open(1, in(kPatience)));
  const auto verdict = member.agreement().vote(keyOf(1), failing("mine"), in(kPatience));
  ASSERT_TRUE(verdict);
  EXPECT_EQ(verdict->first.origin().rank, 0);
  EXPECT_EQ(verdict->decision, Decision::kFail);
  EXPECT_EQ(member.agreement().share(keyOf(1, 1), "text", in(kPatience)).value(), "text");
  member.agreement().interrupt(1, Status(Code::kCancelled, "stop"));
  EXPECT_EQ(member.agreement().vote(keyOf(1, 2), {}, in(kPatience)).status().code(),
            Code::kCancelled);
  ASSERT_TRUE(member.agreement().open(2, in(kPatience)));
  EXPECT_TRUE(member.agreement().vote(keyOf(2), {}, in(kPatience)));
}

TEST(AgreementTest, RankZeroCollectsWhatEachRankSays) {
  LocalJob job(11);
  job.open(1);
  const auto said = [](int rank) {
    // Nothing, a little, and more than one chunk.
    return rank % 3 == 0 ? std::string()
                         : std::string(rank % 3 == 1 ? 5 : 200'000, static_cast<char>('a' + rank));
  };
  job.everyone([&said](int rank, Member& member) {
    for (std::uint32_t step = 0; step < 6; step += 2) {
      const auto list = member.agreement().collect(keyOf(1, step), said(rank), in(kPatience));
      ASSERT_TRUE(list) << rank << " " << list.status().toString();
      ASSERT_EQ(list->size(), rank == 0 ? 11U : 0U);
      for (int each = 0; rank == 0 && each < 11; ++each) {
        EXPECT_EQ((*list)[static_cast<std::size_t>(each)], said(each)) << each;
      }
      // The collectives that follow find their own records.
      ASSERT_TRUE(member.agreement().vote(keyOf(1, step + 1), {}, in(kPatience)));
    }
  });
}

TEST(AgreementTest, ACollectionIsNotTakenForAVote) {
  LocalJob job(2);
  job.open(1);
  job.everyone([](int rank, Member& member) {
    if (rank == 0) {
      EXPECT_FALSE(member.agreement().vote(keyOf(1), {}, in(kPatience)));
    } else {
      (void)member.agreement().collect(keyOf(1), "text", in(kPatience));
    }
  });
}

TEST(AgreementTest, AllAgree) {
  LocalJob job(11);
  job.open(1);
  job.everyone([](int rank, Member& member) {
    for (std::uint32_t step = 0; step < 20; ++step) {
      const auto verdict = member.agreement().vote(keyOf(1, step), {}, in(kPatience));
      ASSERT_TRUE(verdict) << rank << " " << verdict.status().toString();
      EXPECT_TRUE(verdict->first.ok());
      EXPECT_EQ(verdict->decision, Decision::kGo);
      EXPECT_TRUE(verdict->digestsEqual);
    }
  });
}

TEST(AgreementTest, LowestFailingRankIsTheFirstCauseEverywhere) {
  LocalJob job(11);
  job.open(3);
  job.everyone([](int rank, Member& member) {
    Ballot ballot;
    if (rank == 4 || rank == 10) {
      ballot = failing("rank " + std::to_string(rank) + " failed");
    }
    const auto verdict =
        member.agreement().vote(keyOf(3, 5, Phase::kStream), ballot, in(kPatience));
    ASSERT_TRUE(verdict) << verdict.status().toString();
    EXPECT_EQ(verdict->first.message(), "rank 4 failed");
    EXPECT_EQ(verdict->first.code(), Code::kDataMismatch);
    EXPECT_EQ(verdict->first.origin().rank, 4);
    EXPECT_EQ(verdict->first.origin().phase, Phase::kStream);
    EXPECT_EQ(verdict->first.origin().epoch, 3U);
    EXPECT_EQ(verdict->decision, Decision::kFail);
  });
}

TEST(AgreementTest, RankZeroDecidesOnceForAll) {
  LocalJob job(3);
  job.open(1);
  std::atomic<int> asked = 0;
  job.everyone([&asked](int rank, Member& member) {
    Ballot ballot = rank == 2 ? failing("no") : Ballot();
    ballot.decide = [&asked](const Status& first) {
      ++asked;
      return first.message() == "no" ? Decision::kResend : Decision::kGo;
    };
    const auto verdict = member.agreement().vote(keyOf(1), ballot, in(kPatience));
    ASSERT_TRUE(verdict);
    EXPECT_EQ(verdict->decision, Decision::kResend);
  });
  EXPECT_EQ(asked, 1);
}

TEST(AgreementTest, DifferingDigestIsNamed) {
  LocalJob job(11);
  job.open(1);
  job.everyone([](int rank, Member& member) {
    Ballot ballot;
    ballot.digest = rank == 9 ? 1 : 77;
    const auto verdict = member.agreement().vote(keyOf(1), ballot, in(kPatience));
    ASSERT_TRUE(verdict);
    EXPECT_FALSE(verdict->digestsEqual);
    EXPECT_EQ(verdict->differingRank, 9);
  });
}

TEST(AgreementTest, SharesAnySize) {
  LocalJob job(11);
  job.open(1);
  std::vector<std::string> texts = {"", "x", std::string(65536, 'c'), std::string(5000000, ' ')};
  for (std::size_t i = 0; i < texts.back().size(); ++i) {
    texts.back()[i] = static_cast<char>(i * 31 % 251);
  }
  job.everyone([&texts](int rank, Member& member) {
    for (std::uint32_t step = 0; step < texts.size(); ++step) {
      const auto shared = member.agreement().share(
          keyOf(1, step), rank == 0 ? texts[step] : "ignored", in(kPatience));
      ASSERT_TRUE(shared) << rank << " " << shared.status().toString();
      EXPECT_EQ(*shared, texts[step]);
    }
    EXPECT_TRUE(member.agreement().vote(keyOf(1, 99), {}, in(kPatience)));
  });
}

TEST(AgreementTest, TooLargeAShareIsRefused) {
  LocalJob job(2);
  job.open(1);
  const std::string large((std::size_t{64} << 20) + 1, 'x');
  EXPECT_EQ(job[0].agreement().share(keyOf(1), large, in(kPatience)).status().code(),
            Code::kInvalidArgument);
  EXPECT_EQ(job[1].agreement().share(keyOf(1), "", in(kPatience)).status().code(),
            Code::kUnavailable);
}

TEST(AgreementTest, RecordOfAnotherCollectiveIsNeverTaken) {
  const std::vector<VoteKey> others = {
      keyOf(1, 8), keyOf(2, 7), {1, 2, Phase::kCheck, 7}, keyOf(1, 7, Phase::kAgree)};
  std::uint64_t epoch = 0;
  LocalJob job(3);
  for (const VoteKey& other : others) {
    job.open(++epoch);
    job.everyone([&other](int rank, Member& member) {
      const VoteKey key = rank == 1 ? other : keyOf(1, 7);
      const auto verdict = member.agreement().vote(key, {}, in(kPatience));
      ASSERT_FALSE(verdict);
      EXPECT_EQ(verdict.status().code(), Code::kUnavailable);
      if (rank == 0) {
        EXPECT_NE(verdict.status().message().find("out of step"), std::string::npos)
            << verdict.status().message();
      }
    });
  }
}

TEST(AgreementTest, VoteIsNotTakenForAShare) {
  LocalJob job(2);
  job.open(1);
  job.everyone([](int rank, Member& member) {
    const Status status = rank == 0
                              ? member.agreement().share(keyOf(1), "x", in(Duration{500})).status()
                              : member.agreement().vote(keyOf(1), {}, in(Duration{500})).status();
    if (rank == 1) {
      EXPECT_FALSE(status);
    }
  });
}

TEST(AgreementTest, AfterAFailureTheNextPushMeetsAnew) {
  LocalJob job(11);
  for (std::uint64_t epoch = 1; epoch <= 3; ++epoch) {
    job.open(epoch);
    job.everyone([epoch](int rank, Member& member) {
      const auto good = member.agreement().vote(keyOf(epoch), {}, in(kPatience));
      EXPECT_TRUE(good) << good.status().toString();
      // Rank 9 goes its own way; everybody hears of it.
      const auto bad = member.agreement().vote(keyOf(epoch, rank == 9 ? 6 : 5), {}, in(kPatience));
      EXPECT_FALSE(bad);
      // Nothing else of this push can succeed.
      EXPECT_FALSE(member.agreement().vote(keyOf(epoch, 7), {}, in(kPatience)));
      EXPECT_FALSE(member.agreement().share(keyOf(epoch, 8), "", in(kPatience)));
    });
  }
  job.open(9);
}

TEST(AgreementTest, RankThatClosedItsConnectionsAfterAPushIsMetAgain) {
  LocalJob job(11);
  job.open(1);
  job.everyone([](int, Member& member) {
    EXPECT_TRUE(member.agreement().vote(keyOf(1), {}, in(kPatience)));
  });
  // Only one rank gives up, when the others are done.
  job[10].agreement().interrupt(1, Status(Code::kCancelled, "late"));
  EXPECT_FALSE(job[10].agreement().vote(keyOf(1, 1), {}, in(kPatience)));
  job.open(2);
  job.everyone([](int, Member& member) {
    const auto verdict = member.agreement().vote(keyOf(2), {}, in(kPatience));
    EXPECT_TRUE(verdict) << verdict.status().toString();
  });
}

TEST(AgreementTest, InterruptEndsAWaitingVoteAndIsSticky) {
  LocalJob job(3);
  job.open(1);
  for (const int waiting : {0, 1}) {
    const std::uint64_t epoch = static_cast<std::uint64_t>(waiting) + 1;
    if (waiting == 1) {
      job.open(epoch);
    }
    auto vote = std::async(std::launch::async, [&] {
      return job[waiting].agreement().vote(keyOf(epoch), {}, in(kPatience)).status();
    });
    const auto begin = std::chrono::steady_clock::now();
    job[waiting].agreement().interrupt(epoch, Status(Code::kAborted, "rank 2 failed"));
    const Status status = vote.get();
    EXPECT_EQ(status.code(), Code::kAborted);
    EXPECT_EQ(status.message(), "rank 2 failed");
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
    EXPECT_EQ(job[waiting].agreement().vote(keyOf(epoch, 1), {}, in(kPatience)).status().code(),
              Code::kAborted);
  }
  job.open(3);
  job.everyone([](int, Member& member) {
    EXPECT_TRUE(member.agreement().vote(keyOf(3), {}, in(kPatience)));
  });
}

TEST(AgreementTest, InterruptEndsAnOpenThatWaitsForOthers) {
  // The interrupt may come before the caller's thread is in its open().
  for (const bool before : {true, false}) {
    LocalJob job(2);
    const Status stop(Code::kCancelled, "stop");
    if (before) {
      job[1].agreement().interrupt(1, stop);
    }
    auto open =
        std::async(std::launch::async, [&] { return job[1].agreement().open(1, in(kPatience)); });
    job[1].agreement().interrupt(1, stop);
    ASSERT_EQ(open.wait_for(Duration{5000}), std::future_status::ready);
    EXPECT_EQ(open.get().code(), Code::kCancelled);
  }
}

TEST(AgreementTest, AnInterruptOfAnEarlierPushIsForgotten) {
  LocalJob job(2);
  job[1].agreement().interrupt(1, Status(Code::kCancelled, "stop"));
  job.open(2);
}

TEST(AgreementTest, VoteWithoutALateRankEndsByItsDeadline) {
  LocalJob job(3);
  job.open(1);
  const auto begin = std::chrono::steady_clock::now();
  job.everyone([](int rank, Member& member) {
    if (rank == 2) {
      return;
    }
    const auto verdict = member.agreement().vote(keyOf(1), {}, in(Duration{300}));
    EXPECT_FALSE(verdict);
    if (rank == 0) {
      EXPECT_EQ(verdict.status().code(), Code::kDeadlineExceeded);
      EXPECT_NE(verdict.status().message().find("rank 2"), std::string::npos);
    }
  });
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
  // Who comes late hears that the others have gone.
  EXPECT_FALSE(job[2].agreement().vote(keyOf(1), {}, in(kPatience)));
}

TEST(AgreementTest, PassedDeadlineFailsAtOnce) {
  LocalJob job(2);
  job.open(1);
  EXPECT_EQ(job[0].agreement().vote(keyOf(1), {}, in(Duration{0})).status().code(),
            Code::kDeadlineExceeded);
}

TEST(AgreementTest, OpenNamesTheRankThatDoesNotCome) {
  LocalJob job(3);
  std::vector<Status> opened(3);
  job.everyone([&opened](int rank, Member& member) {
    if (rank != 2) {
      opened[static_cast<std::size_t>(rank)] = member.agreement().open(1, in(Duration{300}));
    }
  });
  EXPECT_EQ(opened[0].code(), Code::kDeadlineExceeded);
  EXPECT_NE(opened[0].message().find("rank 2"), std::string::npos) << opened[0].message();
  EXPECT_FALSE(opened[1]);
}

TEST(AgreementTest, RankThatMissedTheFirstPushIsMetInTheSecond) {
  LocalJob job(3);
  job.everyone([](int rank, Member& member) {
    if (rank != 2) {
      EXPECT_FALSE(member.agreement().open(1, in(Duration{200})));
    }
  });
  job.open(2);
  job.everyone([](int, Member& member) {
    EXPECT_TRUE(member.agreement().vote(keyOf(2), {}, in(kPatience)));
  });
}

}  // namespace
}  // namespace pushrod::ranks
