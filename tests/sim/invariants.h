// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <pushrod/config.h>
#include <pushrod/report.h>

#include "tests/sim/fake_engine.h"
#include "tests/sim/injector.h"

namespace pushrod::sim {

/// How one rank's push ended.
struct RankEnd {
  bool ended = false;
  bool gone = false;  ///< dead, or stopped in this push
  bool stopped = false;
  bool known = true;  ///< the common verdict is known here
  bool agreementDead = false;
  PushReport report;
  TimePoint began{};
  TimePoint endedAt{};
  /// It could not return before: it was stopped, or in a source that nobody can end.
  TimePoint blockedUntil{};
};

/// Whether the push was a good one.
[[nodiscard]] inline bool good(const PushReport& report) {
  return report.outcome == PushOutcome::kDone || report.outcome == PushOutcome::kRecovered;
}

/// The promises of docs/failure-model.md, checked from outside: over engines, ranks and reports.
class Invariants {
 public:
  Invariants(std::vector<FakeEngine*> engines, const FaultPlan& plan);

  /// `draft`: it carries the draft model as well.
  void beginPush(int number, const std::string& version, bool draft);
  /// After every event; `phase` is rank 0's.
  void check(Phase phase);
  /// Before every call to an engine; `stopped`: rank 0 was stopped in this push.
  void onCall(const Call& call, std::size_t engine, Phase phase, bool stopped);

  /// A rank is gone or silent from now on, and the others must hear of it.
  void onLoss(TimePoint now) { lost_ = std::min(lost_, now); }

  /// After a push. `hits`: the faults that struck in it; `sound`: nothing else is wrong.
  void checkEnd(const std::vector<RankEnd>& ends, const std::vector<FaultSite>& hits, bool sound);
  void complain(const std::string& text);

  [[nodiscard]] const std::vector<std::string>& broken() const { return broken_; }

 private:
  struct Before {
    int content = 0;
    int draft = 0;  ///< of its draft model
    bool paused = false;
    bool session = false;
    bool asleep = false;
    bool mayRefuse = false;  ///< no push may take it as it is
    std::uint64_t starts = 0;
    std::uint64_t restarts = 0;
    std::uint64_t resumes = 0;
  };

  void checkServing(std::size_t engine);
  void checkInTime(const std::vector<RankEnd>& ends, bool onlyLoss);
  void checkOneVerdict(const std::vector<RankEnd>& ends);
  void checkLostVerdict(const std::vector<RankEnd>& ends, const std::vector<FaultSite>& hits);
  void checkEngines(const RankEnd& leader, const std::vector<FaultSite>& hits);
  void checkGood(std::size_t engine, const std::vector<FaultSite>& hits);
  void checkLeftOut(std::size_t engine, const std::vector<FaultSite>& hits);
  void checkFailed(std::size_t engine, const std::vector<FaultSite>& hits, bool anyStart);
  void checkOutcome(const RankEnd& leader, const std::vector<FaultSite>& hits);
  [[nodiscard]] bool compared(const FaultSite& site) const;
  [[nodiscard]] bool mayRefuse() const;

  std::vector<FakeEngine*> engines_;
  FaultPlan plan_;
  TimeoutsConfig limits_;
  std::vector<Before> before_;
  int push_ = 0;
  bool draft_ = false;  ///< the push carries the draft model as well
  std::string version_;
  bool sound_ = true;
  TimePoint lost_ = TimePoint::max();  ///< the first loss of a rank in this push
  bool mayResume_ = false;             ///< rank 0 got as far as resuming what was proved
  std::vector<std::string> broken_;
};

/// Whether a push must end done or recovered when its only fault is this one.
[[nodiscard]] bool mustRecover(const FaultPlan& plan, const FaultSite& site);

}  // namespace pushrod::sim
