// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/sim_link.h"

#include <utility>

namespace pushrod::sim {

namespace {

constexpr Duration kHop{1};

}  // namespace

void LinkHub::deliver(int to, Duration after, std::function<void(RankLinkListener&)> message) {
  SimLink* link = links_[static_cast<std::size_t>(to)];
  // Through the receiver's own executor: the dead hear nothing, the stopped later.
  executor_.postAt(executor_.now() + after, [link, message = std::move(message)] {
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

void LinkHub::tellLost(int rank, const std::string& why, Duration after) {
  for (int to = 0; to < static_cast<int>(links_.size()); ++to) {
    if (to != rank) {
      const Duration hops = rank == 0 || to == 0 ? kHop : 2 * kHop;
      deliver(to, after + hops, [rank, why](RankLinkListener& each) {
        each.onLost(rank, Status(Code::kUnavailable, why));
      });
    }
  }
}

void LinkHub::died(int rank) {
  tellLost(rank, "its connection closed", Duration::zero());
}

void LinkHub::stopped(int rank, Duration silence) {
  tellLost(rank, "it is silent", agreement_);
  SimLink* link = links_[static_cast<std::size_t>(rank)];
  executor_.postAt(executor_.now() + silence, [link, silence] {
    link->executor().wake([link, silence] {
      if (link->listener() != nullptr) {
        link->listener()->onOversleep(silence);
      }
    });
  });
}

}  // namespace pushrod::sim
