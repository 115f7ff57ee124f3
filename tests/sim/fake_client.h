// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include <pushrod/engine_client.h>
#include <pushrod/executor.h>

#include "tests/sim/fake_engine.h"
#include "tests/sim/fault_plan.h"

namespace pushrod::sim {

/// Rank 0's way to one engine: one call at a time, latency, a deadline per call, and the plan's
/// fault at the call it names.
class FakeClient final : public EngineClient {
 public:
  struct Hooks {
    /// Counts a call and returns the fault that happens at it.
    std::function<Fault(const Call&)> fault;
    std::function<void(bool forEver)> crash;
    Complain complain;
    bool believesLate = false;  ///< an answer is taken for the present call's (known bad variant)
  };

  /// `world` carries what was sent, whatever becomes of the rank.
  FakeClient(Executor& rank, Executor& world, Pace& pace, FakeEngine& engine, Hooks hooks)
      : executor_(rank), world_(world), pace_(pace), engine_(engine), hooks_(std::move(hooks)) {}

  void call(Call call, Deadline deadline, Done done) override;
  void cancel(const Status& reason) override;

  [[nodiscard]] const std::string& name() const override { return engine_.name(); }

  [[nodiscard]] const std::string& url() const override { return engine_.name(); }

 private:
  using Change = std::function<void(Reply&)>;

  /// `change` null: no answer comes back.
  void send(const Call& call, const Change& change, const Fault& fault = {});
  void suffer(const Call& call, const Fault& fault);
  void crash(const Call& call, const Fault& fault);
  void answer(std::uint64_t id, Reply reply);
  void failLater(const Status& status, int http, Duration after = {}, bool lost = false);

  Executor& executor_;
  Executor& world_;
  Pace& pace_;
  FakeEngine& engine_;
  Hooks hooks_;
  std::uint64_t current_ = 0;  ///< the outstanding call; 0: none
  std::uint64_t last_ = 0;
  CallKind kind_ = CallKind::kIdentify;
  Done done_;
  Executor::TimerId timer_ = 0;
  TimePoint arrives_{};
};

}  // namespace pushrod::sim
