// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/sim_link.h"

#include <algorithm>
#include <utility>

namespace pushrod::sim {

namespace {

constexpr Duration kHop{1};

}  // namespace

void LinkHub::deliver(int to, Duration hops, std::function<void(RankLinkListener&)> message) {
  SimLink* link = links_[static_cast<std::size_t>(to)];
  TimePoint& arrives = arrives_[static_cast<std::size_t>(to)];
  arrives = std::max(arrives, executor_.now() + pace_.of(hops));
  // Through the receiver's own executor: the dead hear nothing, the stopped later.
  executor_.postAt(arrives, [link, message = std::move(message)] {
    link->executor().post([link, message] {
      if (link->listener() != nullptr) {
        message(*link->listener());
      }
    });
  });
}

void LinkHub::spread(int from, const std::function<void(RankLinkListener&)>& message) {
  const bool rootDead = links_.front()->executor().dead();
  for (int to = 0; to < static_cast<int>(links_.size()); ++to) {
    if (to == from || (rootDead && to != 0)) {
      continue;
    }
    deliver(to, from == 0 || to == 0 ? kHop : 2 * kHop, message);
  }
}

void LinkHub::relay(int from, const VoteKey& key, const Status& reason) {
  spread(from, [from, key, reason](RankLinkListener& each) { each.onStop(from, key, reason); });
}

void LinkHub::relayHalt(int from, const VoteKey& key, const Status& reason) {
  spread(from, [from, key, reason](RankLinkListener& each) { each.onHalt(from, key, reason); });
}

void LinkHub::publish(std::uint64_t epoch, const Verdict& verdict) {
  for (int to = 1; to < static_cast<int>(links_.size()); ++to) {
    deliver(to, kHop, [epoch, verdict](RankLinkListener& each) { each.onVerdict(epoch, verdict); });
  }
}

void LinkHub::tellLost(int rank, const std::string& why) {
  for (int to = 0; to < static_cast<int>(links_.size()); ++to) {
    if (to != rank && hears_.losses) {
      const Duration hops = rank == 0 || to == 0 ? kHop : 2 * kHop;
      deliver(to, hops, [rank, why](RankLinkListener& each) {
        each.onLost(rank, Status(Code::kUnavailable, why));
      });
    }
  }
}

void LinkHub::died(int rank) {
  tellLost(rank, "its connection closed");
}

void LinkHub::stopped(int rank, Duration silence) {
  const bool noticed = silence >= agreement_;
  if (noticed) {
    executor_.postAt(executor_.now() + agreement_,
                     [this, rank] { tellLost(rank, "it is silent"); });
  }
  SimLink* link = links_[static_cast<std::size_t>(rank)];
  executor_.postAt(executor_.now() + silence, [this, link, silence, noticed] {
    link->executor().wake([this, link, silence, noticed] {
      if (noticed && hears_.oversleep && link->listener() != nullptr) {
        link->listener()->onOversleep(silence);
      }
    });
  });
}

}  // namespace pushrod::sim
