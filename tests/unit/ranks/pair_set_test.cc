// SPDX-License-Identifier: Apache-2.0
#include "ranks/pair_set.h"

#include <future>

#include <gtest/gtest.h>

#include "local_job.h"
#include "ranks/rendezvous.h"

namespace pushrod::ranks {
namespace {

/// Two ranks that have met and have no connection yet.
class PairSetTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (int rank = 0; rank < 2; ++rank) {
      RendezvousOptions options;
      options.rank = *Rank::of(rank, 2);
      options.job = "test";
      options.privateDirectory = folder_.path();
      auto created = Rendezvous::create(executor_, std::move(options));
      ASSERT_TRUE(created) << created.status().toString();
      rendezvous_.push_back(std::move(*created));
    }
    auto first = std::async(std::launch::async, [this] { return meet(0); });
    EXPECT_TRUE(meet(1));
    EXPECT_TRUE(first.get());
  }

  Status meet(int rank) { return at(rank).meet(interrupt_, in(kPatience)); }

  Rendezvous& at(int rank) { return *rendezvous_[static_cast<std::size_t>(rank)]; }

  Status connect(int rank, const std::string& prefix, Interrupt& interrupt, Duration limit) {
    PairSet::Options options;
    options.peers = {1 - rank};
    options.prefix = prefix;
    return PairSet::connect(at(rank), options, interrupt, in(limit)).status();
  }

  TemporaryFolder folder_;
  net::IoExecutor executor_;
  Interrupt interrupt_;
  std::vector<std::unique_ptr<Rendezvous>> rendezvous_;
};

TEST_F(PairSetTest, AnInterruptEndsTheConnectToARankThatGaveUp) {
  // Which side waits for the other's connect is drawn by the ports; the other one is refused.
  int waited = 0;
  for (int round = 0; round < 40 && waited < 3; ++round) {
    const std::string prefix = "pairs" + std::to_string(round);
    // It leaves its addresses behind.
    EXPECT_EQ(connect(1, prefix, interrupt_, Duration{30}).code(), Code::kDeadlineExceeded);
    Interrupt interrupt;
    auto blocked =
        std::async(std::launch::async, [&] { return connect(0, prefix, interrupt, kPatience); });
    if (blocked.wait_for(Duration{300}) == std::future_status::timeout) {
      ++waited;
      interrupt.set(Status(Code::kAborted, "stopped by SIGINT"));
      EXPECT_EQ(blocked.wait_for(Duration{4000}), std::future_status::ready);
      EXPECT_EQ(blocked.get().message(), "stopped by SIGINT");
    } else {
      EXPECT_EQ(blocked.get().code(), Code::kUnavailable);
    }
  }
  EXPECT_EQ(waited, 3);
}

}  // namespace
}  // namespace pushrod::ranks
