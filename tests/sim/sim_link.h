// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include <pushrod/rank_link.h>

#include "tests/sim/rank_executor.h"

namespace pushrod::sim {

class SimLink;

/// The star of links around rank 0: messages take time, closed connections are heard at once,
/// silence after timeouts.agreement.
class LinkHub {
 public:
  LinkHub(Executor& executor, Duration agreement) : executor_(executor), agreement_(agreement) {}

  void add(SimLink* link) { links_.push_back(link); }

  void relay(int from, const VoteKey& key, const Status& reason);
  void relayHalt(int from, const VoteKey& key, const Status& reason);
  void publish(std::uint64_t epoch, const Verdict& verdict);
  void died(int rank);
  void stopped(int rank, Duration silence);

 private:
  /// From one rank to all others, through rank 0.
  void spread(int from, const std::function<void(RankLinkListener&)>& message);
  void tellLost(int rank, const std::string& why, Duration after);
  void deliver(int to, Duration after, std::function<void(RankLinkListener&)> message);

  Executor& executor_;
  Duration agreement_;
  std::vector<SimLink*> links_;
};

class SimLink final : public RankLink {
 public:
  SimLink(LinkHub& hub, RankExecutor& executor, int rank)
      : hub_(hub), executor_(executor), rank_(rank) {}

  void setListener(RankLinkListener* listener) override { listener_ = listener; }

  void setPosition(const VoteKey& /*position*/) override {}

  void stop(const VoteKey& key, const Status& reason) override { hub_.relay(rank_, key, reason); }

  void halt(const VoteKey& key, const Status& reason) override {
    hub_.relayHalt(rank_, key, reason);
  }

  void publishVerdict(std::uint64_t epoch, const Verdict& verdict) override {
    hub_.publish(epoch, verdict);
  }

  [[nodiscard]] RankLinkListener* listener() const { return listener_; }

  [[nodiscard]] RankExecutor& executor() const { return executor_; }

 private:
  LinkHub& hub_;
  RankExecutor& executor_;
  int rank_;
  RankLinkListener* listener_ = nullptr;
};

}  // namespace pushrod::sim
