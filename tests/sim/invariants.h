// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <pushrod/report.h>

#include "tests/sim/fake_engine.h"
#include "tests/sim/fault_plan.h"

namespace pushrod::sim {

/// How one rank's push ended.
struct RankEnd {
  bool ended = false;
  bool gone = false;  ///< dead, or stopped in this push
  bool stopped = false;
  bool known = true;  ///< the common verdict is known here
  bool agreementDead = false;
  PushReport report;
  Duration took = Duration::zero();
};

/// What the fault met, for the question how the push must end.
struct FaultSite {
  bool hit = false;
  std::string what;
  int rank = 0;                ///< whose call it was
  Phase phase = Phase::kIdle;  ///< rank 0's, then
  std::optional<CallKind> call;
};

/// The promises of docs/failure-model.md, checked from outside: over engines, ranks and reports.
class Invariants {
 public:
  explicit Invariants(std::vector<FakeEngine*> engines) : engines_(std::move(engines)) {}

  void beginPush(int number);
  /// After every event; `phase` is rank 0's.
  void check(Phase phase);
  /// Before every call to an engine.
  void onCall(const Call& call, const std::string& engine, Phase phase);
  void checkEnd(const std::vector<RankEnd>& ends, const FaultPlan& plan, const FaultSite& site);
  void complain(const std::string& text);

  [[nodiscard]] const std::vector<std::string>& broken() const { return broken_; }

 private:
  struct Before {
    int content = 0;
    bool paused = false;
    std::uint64_t starts = 0;
    std::uint64_t restarts = 0;
    std::uint64_t resumes = 0;
  };

  void checkServing(std::size_t engine);
  void checkOneVerdict(const std::vector<RankEnd>& ends);
  void checkLostVerdict(const std::vector<RankEnd>& ends,
                        const FaultPlan& plan,
                        const FaultSite& site);
  void checkEngines(const std::vector<RankEnd>& ends, const FaultPlan& plan);
  void checkOutcome(const std::vector<RankEnd>& ends, const FaultPlan& plan, const FaultSite& site);

  std::vector<FakeEngine*> engines_;
  std::vector<Before> before_;
  int push_ = 0;
  bool mayResume_ = false;  ///< rank 0 got as far as resuming what was proved
  std::vector<std::string> broken_;
};

/// Whether a push must end done or recovered when its only fault is this one.
[[nodiscard]] bool mustRecover(const FaultPlan& plan, const FaultSite& site);

}  // namespace pushrod::sim
