// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "orchestrator/flight/collector.h"
#include "tests/support/virtual_executor.h"

namespace pushrod::orchestrator {
namespace {

/// Keeps what is said to it.
class FakeExchange final : public ranks::RecordExchange {
 public:
  void setRecordListener(ranks::RecordListener*) override {}

  void setProgress(const ranks::RankProgress&) override {}

  void askRecords(std::uint64_t epoch) override { asked.push_back(epoch); }

  void sendRecord(std::uint64_t epoch, std::string_view record) override {
    sent.emplace_back(epoch, std::string(record));
  }

  void endRecords(std::uint64_t epoch) override { ended.push_back(epoch); }

  [[nodiscard]] bool reaches(int rank) const override { return !gone.contains(rank); }

  [[nodiscard]] std::vector<ranks::RankPosition> positions() const override { return {}; }

  std::vector<std::uint64_t> asked, ended;
  std::vector<std::pair<std::uint64_t, std::string>> sent;
  std::set<int> gone;
};

class Collecting : public ::testing::Test {
 protected:
  void become(int rank, int size) {
    Rank self;
    self.rank = rank;
    self.size = size;
    collector = std::make_unique<FlightCollector>(
        executor, exchange, self, [](std::size_t) { return std::string("own\n"); });
    collector->begin(7);
  }

  void collect() {
    collector->collect([this](std::optional<FlightCollector::Parts> parts) {
      done = true;
      result = std::move(parts);
    });
  }

  void part(int rank, std::uint32_t number, bool last, const std::string& bytes) {
    ranks::RecordPart frame;
    frame.rank = rank;
    frame.epoch = 7;
    frame.number = number;
    frame.last = last;
    frame.bytes = bytes;
    collector->onRecordPart(frame);
  }

  testing::VirtualExecutor executor;
  FakeExchange exchange;
  std::unique_ptr<FlightCollector> collector;
  bool done = false;
  std::optional<FlightCollector::Parts> result;
};

TEST_F(Collecting, RankZeroEndsWithTheLastPart) {
  become(0, 3);
  part(2, 0, true, "two\n");  // its push ended first
  collect();
  EXPECT_EQ(exchange.asked, std::vector<std::uint64_t>{7});
  part(1, 0, false, "o");
  part(1, 1, true, "ne\n");
  EXPECT_FALSE(done) << "never inline";
  executor.run();
  ASSERT_TRUE(done && result);
  EXPECT_EQ(executor.elapsed(), Duration::zero()) << "without a wait";
  EXPECT_EQ(result->records,
            (std::map<int, std::string>{{0, "own\n"}, {1, "one\n"}, {2, "two\n"}}));
  EXPECT_TRUE(result->missing.empty());
  EXPECT_EQ(exchange.ended, std::vector<std::uint64_t>{7});
}

TEST_F(Collecting, DeadRanksAreNamedAndNotWaitedFor) {
  become(0, 3);
  exchange.gone = {1};
  collector->onRankGone(1);
  collect();
  part(2, 0, true, "two\n");
  executor.run();
  ASSERT_TRUE(result);
  EXPECT_EQ(executor.elapsed(), Duration::zero());
  EXPECT_EQ(result->missing, (std::map<int, std::string>{{1, "it is gone"}}));
}

TEST_F(Collecting, ASilentRankCostsTheLimitAndNoMore) {
  become(0, 2);
  collect();
  part(1, 0, false, "half");
  executor.run();
  ASSERT_TRUE(result);
  EXPECT_EQ(executor.elapsed(), FlightCollector::kLimit);
  EXPECT_EQ(result->missing.at(1), "it did not answer in time");
}

TEST_F(Collecting, PartsOfAnotherPushOutOfOrderOrWithoutEndAreNotTaken) {
  become(0, 3);
  ranks::RecordPart old;
  old.rank = 1;
  old.epoch = 6;
  old.last = true;
  old.bytes = "old\n";
  collector->onRecordPart(old);
  part(1, 1, true, "late\n");
  const std::string much(ranks::kMaxRecordPart, 'x');
  for (std::uint32_t i = 0; i < 1000; ++i) {
    part(2, i, false, much);
  }
  collect();
  executor.run();
  ASSERT_TRUE(result);
  EXPECT_EQ(result->records.size(), 1U);
  EXPECT_EQ(result->missing.at(1), "it sent more than is taken, or not in order");
  EXPECT_EQ(result->missing.at(2), "it sent more than is taken, or not in order");
}

TEST_F(Collecting, AFollowerSendsAtOnceAndStaysUntilRankZeroHasAll) {
  become(2, 3);
  collect();
  EXPECT_EQ(exchange.sent, (std::vector<std::pair<std::uint64_t, std::string>>{{7, "own\n"}}));
  executor.runFor(FlightCollector::kLimit / 2);
  EXPECT_FALSE(done);
  collector->onRecordEnded(7);
  executor.run();
  EXPECT_TRUE(done);
  EXPECT_FALSE(result) << "rank 0 writes";
  EXPECT_LT(executor.elapsed(), FlightCollector::kLimit);
}

TEST_F(Collecting, AFollowerWhosePushGoesOnAnswersOnce) {
  become(1, 3);
  collector->onRecordAsked(6);
  EXPECT_TRUE(exchange.sent.empty()) << "of another push";
  collector->onRecordAsked(7);
  collector->onRecordAsked(7);
  collector->onRecordEnded(7);
  EXPECT_EQ(exchange.sent.size(), 1U);
  collect();
  executor.run();
  EXPECT_EQ(exchange.sent.size(), 1U);
  EXPECT_EQ(executor.elapsed(), Duration::zero());
  EXPECT_FALSE(result);
}

TEST_F(Collecting, RankOneWritesItsOwnWhereRankZeroIsGone) {
  become(1, 3);
  exchange.gone = {0};
  collect();
  executor.run();
  ASSERT_TRUE(result);
  EXPECT_EQ(executor.elapsed(), Duration::zero());
  EXPECT_EQ(result->records, (std::map<int, std::string>{{1, "own\n"}}));
  EXPECT_EQ(result->missing.at(0), "it is gone");
  EXPECT_EQ(result->missing.count(2), 1U);
  done = false;
  become(2, 3);
  collect();
  executor.run();
  EXPECT_TRUE(done);
  EXPECT_FALSE(result) << "one rank writes";
}

TEST_F(Collecting, RankOneLeavesItToARankZeroThatHasWrittenAndLeft) {
  become(1, 2);
  collector->onRecordEnded(7);
  exchange.gone = {0};
  collect();
  executor.run();
  EXPECT_TRUE(done);
  EXPECT_FALSE(result);
}

TEST_F(Collecting, AnOrderToStopEndsTheWait) {
  become(0, 2);
  collect();
  collector->cut();
  executor.run();
  EXPECT_TRUE(done);
  EXPECT_EQ(executor.elapsed(), Duration::zero());
}

TEST(FlightBudget, KeepsAllPartsTogetherSmall) {
  EXPECT_EQ(FlightCollector::budget(1), std::size_t{256} << 10);
  EXPECT_LE(FlightCollector::budget(1000) * 1000, std::size_t{8} << 20);
  EXPECT_EQ(FlightCollector::budget(1'000'000), std::size_t{4} << 10);
}

}  // namespace
}  // namespace pushrod::orchestrator
