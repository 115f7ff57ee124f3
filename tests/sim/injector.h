// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <pushrod/phase.h>

#include "tests/sim/fault_plan.h"

namespace pushrod::sim {

/// A fault that struck, and what it met.
struct FaultSite {
  Fault fault;
  SeamCall at;
  std::string what;            ///< the call, for people
  Phase phase = Phase::kIdle;  ///< rank 0's, then
  std::size_t order = 0;       ///< with World::Options::keepCalls: calls so far, this one included
};

/// Decides at every seam call whether one of the plan's faults happens there.
class Injector {
 public:
  explicit Injector(std::vector<Fault> faults)
      : faults_(std::move(faults)), counts_(faults_.size()), struck_(faults_.size()) {}

  /// Counts a call; the fault of kind kNone when nothing happens.
  Fault at(const SeamCall& call) {
    Fault now;
    for (std::size_t i = 0; i < faults_.size(); ++i) {
      const bool waits = faults_[i].chained && i > 0 && !struck_[i - 1];
      if (struck_[i] || waits || !faults_[i].fits(call) || ++counts_[i] < faults_[i].nth) {
        continue;
      }
      // One thing at a time: another fault that is due happens at the next call that fits it.
      if (now.kind == FaultKind::kNone) {
        struck_[i] = true;
        now = faults_[i];
      }
    }
    return now;
  }

  [[nodiscard]] bool struck(std::size_t fault) const { return struck_[fault]; }

 private:
  std::vector<Fault> faults_;
  std::vector<std::uint64_t> counts_;
  std::vector<bool> struck_;
};

}  // namespace pushrod::sim
