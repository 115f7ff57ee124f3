// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include <pushrod/rank_link.h>

#include "tests/sim/random.h"
#include "tests/sim/rank_executor.h"

namespace pushrod::sim {

class SimLink;

/// The star of links around rank 0: messages take time, closed connections are heard at once,
/// silence after timeouts.agreement.
class LinkHub {
 public:
  /// False in known bad variants.
  struct Hears {
    bool oversleep = true;  ///< a rank, that it was stopped
    bool losses = true;     ///< the others, that a rank is lost
  };

  LinkHub(Executor& executor, Pace& pace, Duration agreement, Hears hears)
      : executor_(executor), pace_(pace), agreement_(agreement), hears_(hears) {}

  void add(SimLink* link) {
    links_.push_back(link);
    arrives_.push_back(TimePoint());
  }

  void relay(int from, const VoteKey& key, const Status& reason);
  void relayHalt(int from, const VoteKey& key, const Status& reason);
  void publish(std::uint64_t epoch, const Verdict& verdict);
  void died(int rank);
  /// The rank's process runs again after `silence`; the others notice when it is a long one.
  void stopped(int rank, Duration silence);

 private:
  /// From one rank to all others, through rank 0.
  void spread(int from, const std::function<void(RankLinkListener&)>& message);
  void tellLost(int rank, const std::string& why);
  void deliver(int to, Duration hops, std::function<void(RankLinkListener&)> message);

  Executor& executor_;
  Pace& pace_;
  Duration agreement_;
  Hears hears_;
  std::vector<SimLink*> links_;
  std::vector<TimePoint> arrives_;  ///< when the last message arrives: none overtakes another
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
