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
    std::function<FaultKind(const Call&)> fault;
    std::function<void(bool forEver)> crash;
    Complain complain;
  };

  FakeClient(Executor& rank, FakeEngine& engine, Hooks hooks)
      : executor_(rank), engine_(engine), hooks_(std::move(hooks)) {}

  void call(Call call, Deadline deadline, Done done) override;
  void cancel(const Status& reason) override;

  [[nodiscard]] const std::string& name() const override { return engine_.name(); }

  [[nodiscard]] const std::string& url() const override { return engine_.name(); }

 private:
  void send(const Call& call, const std::function<Reply(Reply)>& change);
  void answer(std::uint64_t id, Reply reply);
  void failLater(const Status& status, int http);

  Executor& executor_;
  FakeEngine& engine_;
  Hooks hooks_;
  std::uint64_t current_ = 0;  ///< the outstanding call; 0: none
  std::uint64_t last_ = 0;
  CallKind kind_ = CallKind::kIdentify;
  Done done_;
  Executor::TimerId timer_ = 0;
};

}  // namespace pushrod::sim
