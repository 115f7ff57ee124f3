// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string_view>
#include <vector>

#include "tests/sim/world.h"

namespace pushrod::sim {

/// All runs of one shape of world: every fault of `kinds` at every seam call, and one run without.
struct Sweep {
  int ranks = 1;
  int engines = 1;
  std::vector<FaultKind> kinds;
  /// Not empty: every fault is followed by one of these, at every call after it.
  std::vector<FaultKind> seconds;
  bool oldProfile = false;
  bool quarantine = false;
  bool chunked = false;
  bool pass = false;
  bool draft = false;
  bool replicas = false;
  bool checksums = false;
  int owners = 0;
  std::uint64_t secondStride = 1;
  std::uint64_t stride = 1;  ///< of k, for the larger worlds
  /// Every so many runs are made twice: the same plan, the same trace.
  std::uint64_t twiceEvery = 16;
};

/// All kinds of faults.
[[nodiscard]] std::vector<FaultKind> everyKind();

struct SweepResult {
  std::uint64_t runs = 0;
  std::vector<std::string> failures;  ///< with the command that repeats the run
  std::set<std::string_view> rows;
};

[[nodiscard]] SweepResult runSweep(const Sweep& sweep);

/// Every fault of `kinds` at one call of each class, each followed by every fault of `seconds` at
/// one call of each class after it. Calls of one class are alike: the same call in the same phase
/// and attempt, of whichever rank but for those that send, to whichever engine but for the one that
/// the first fault struck. `stride`: every so many pairs only.
[[nodiscard]] SweepResult runPairsOfClasses(const Sweep& sweep);

}  // namespace pushrod::sim
