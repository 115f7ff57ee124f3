// SPDX-License-Identifier: Apache-2.0
#include "tools/rank_gather.h"

#include <cstddef>
#include <utility>
#include <vector>

#include "net/io_executor.h"
#include "ranks/gather.h"
#include "ranks/interrupt.h"
#include "ranks/rendezvous.h"

namespace pushrod::tools {
namespace {

/// The ranks' gather as a trainer would own one: connections and store keys apart from the push's.
class RankGather final : public ShareGather {
 public:
  RankGather(const Rank& rank, Duration limit) : rank_(rank), limit_(limit) {}

  Status create(ranks::RendezvousOptions options) {
    Result<std::unique_ptr<ranks::Rendezvous>> rendezvous =
        ranks::Rendezvous::create(executor_, std::move(options));
    if (!rendezvous) {
      return rendezvous.status();
    }
    rendezvous_ = std::move(*rendezvous);
    gather_ = std::make_unique<ranks::Gather>(*rendezvous_);
    return {};
  }

  [[nodiscard]] int rank() const override { return rank_.rank; }

  [[nodiscard]] int size() const override { return rank_.size; }

  Status gather(std::span<std::byte> whole) override {
    const Deadline deadline = Deadline::after(executor_, limit_);
    const Status met = rendezvous_->meet(interrupt_, deadline);
    if (!met) {
      return met.prefixed("the ranks' gather");
    }
    std::vector<std::size_t> counts;
    counts.reserve(static_cast<std::size_t>(rank_.size));
    for (int each = 0; each < rank_.size; ++each) {
      counts.push_back(shareOf(whole.size(), each, rank_.size).bytes);
    }
    const Share mine = shareOf(whole.size(), rank_.rank, rank_.size);
    const Status gathered =
        gather_->allGatherShares(whole.subspan(mine.offset, mine.bytes), whole, counts, deadline);
    return gathered ? gathered : gathered.prefixed("the ranks' gather");
  }

  bool abort() noexcept override {
    const Status reason(Code::kAborted, "the pass was ended");
    interrupt_.set(reason);
    gather_->abort(reason);
    return true;
  }

  bool recover() override {
    const Deadline deadline = Deadline::after(executor_, limit_);
    interrupt_.clear();
    return rendezvous_->meet(interrupt_, deadline).ok() && gather_->recover(deadline).ok();
  }

  void renew() override {
    interrupt_.clear();
    gather_->renew();
  }

 private:
  Rank rank_;
  Duration limit_;
  net::IoExecutor executor_;
  ranks::Interrupt interrupt_;
  std::unique_ptr<ranks::Rendezvous> rendezvous_;
  std::unique_ptr<ranks::Gather> gather_;
};

}  // namespace

Result<std::unique_ptr<ShareGather>> makeRankGather(const Config& config,
                                                    const Rank& rank,
                                                    const std::string& privateStore) {
  auto gather = std::make_unique<RankGather>(rank, config.timeouts.gather);
  ranks::RendezvousOptions options;
  options.rank = rank;
  options.config = config.ranks;
  options.job = config.job + ".gather";
  options.privateDirectory = privateStore;
  const Status created = gather->create(std::move(options));
  if (!created) {
    return created;
  }
  return std::unique_ptr<ShareGather>(std::move(gather));
}

}  // namespace pushrod::tools
