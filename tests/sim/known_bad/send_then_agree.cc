// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/known_bad/send_then_agree.h"

#include <memory>
#include <vector>

#include "tests/sim/meetings.h"
#include "tests/support/virtual_executor.h"

namespace pushrod::sim::known_bad {

namespace {

// Longer than anybody waits: the loop itself sets no limits.
constexpr Duration kForEver = std::chrono::hours(1000);

/// One rank of the naive push.
class NaiveRank {
 public:
  NaiveRank(int rank, Agreements& agreements, Gathers& gathers, std::size_t failingPut)
      : rank_(rank), agreements_(agreements), gathers_(gathers), failingPut_(failingPut) {}

  void start() { gather(); }

  [[nodiscard]] bool ended() const { return ended_; }

 private:
  void gather() {
    if (sent_ == kTensors) {
      agree(Status());
      return;
    }
    gathers_.enter(rank_,
                   "SourceNext tensor " + std::to_string(sent_),
                   Gathers::Way::kJoins,
                   false,
                   [this](const Status&) { send(); });
  }

  void send() {
    ++sent_;
    if (rank_ == 0 && sent_ == failingPut_) {
      agree(Status(Code::kUnavailable, "the send failed"));
      return;
    }
    gather();
  }

  void agree(const Status& status) {
    Agreements::Part part;
    part.key = VoteKey{1, 1, Phase::kAgree, 1};
    part.ballot.status = status;
    part.done = [this](const Agreements::Result&) { ended_ = true; };
    agreements_.enter(rank_,
                      std::move(part),
                      Deadline::at(TimePoint() + 2 * kForEver),
                      Agreements::Trouble::kNone);
  }

  int rank_;
  Agreements& agreements_;
  Gathers& gathers_;
  std::size_t failingPut_;
  std::size_t sent_ = 0;
  bool ended_ = false;
};

}  // namespace

std::string sendThenAgree(int ranks, std::size_t failingPut) {
  testing::VirtualExecutor executor;
  const auto ignore = [](const std::string&) {};
  Pace pace(std::nullopt);
  Agreements agreements(executor, pace, ranks, ignore);
  Gathers gathers(executor, pace, ranks, kForEver, ignore);
  std::vector<std::unique_ptr<NaiveRank>> all;
  for (int rank = 0; rank < ranks; ++rank) {
    all.push_back(std::make_unique<NaiveRank>(rank, agreements, gathers, failingPut));
    executor.post([&each = *all.back()] { each.start(); });
  }
  executor.runFor(std::chrono::hours(24));
  std::string hang;
  for (int rank = 0; rank < ranks; ++rank) {
    if (!all[static_cast<std::size_t>(rank)]->ended()) {
      hang += (hang.empty() ? "" : "; ") + ("rank " + std::to_string(rank)) + " waits for " +
              agreements.waitsFor(rank) + gathers.waitsFor(rank);
    }
  }
  return hang;
}

}  // namespace pushrod::sim::known_bad
