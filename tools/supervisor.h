// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <signal.h>
#include <string>
#include <vector>

#include <pushrod/deadline.h>
#include <pushrod/result.h>

#include "tools/child_process.h"

namespace pushrod::tools {

struct SuperviseOptions {
  int ranks = 1;
  std::function<std::vector<std::string>(int rank)> command;
  /// A child that outlives the first one's end by more than this is ended.
  Duration straggler = std::chrono::seconds(20);
  /// Asked of each running child when one has ended: by how much longer it may live than that.
  std::function<Duration(int rank)> stragglerMore = {};
  /// Asked once each time a child has stopped: after how long it gets SIGCONT, nullopt: never.
  std::function<std::optional<Duration>(int rank)> wakeAfter = {};
  /// All children together; zero: they bound themselves.
  Duration limit = Duration::zero();
};

struct SuperviseResult {
  std::vector<ChildEnd> ends;  ///< one per rank
  int signal = 0;              ///< the first stop order received by the supervisor, 0: none
};

/// Decides what a repeated stop order means (ruling P42).
class StopOrders {
 public:
  enum class Order { kFirst, kSame, kFurther };

  /// One delivery of `signal` at `now`.
  Order deliver(int signal, TimePoint now);

  /// The first one's signal, 0: none so far.
  [[nodiscard]] int first() const { return first_; }

 private:
  int first_ = 0;
  int last_ = 0;
  TimePoint at_;
};

/// The signals that order a stop: SIGINT, SIGTERM and, unless it is ignored, SIGHUP.
[[nodiscard]] sigset_t stopSignals();

/// Holds stop orders and SIGUSR1 back to the process's end, so that none ends it before it has
/// cleared up. Those that supervise() does not take over come too late.
void holdSignals();

/// Runs `ranks` children to their end on the calling thread, which must be the process's only one:
/// the stop signals are taken over meanwhile and each order is forwarded once. A failure means
/// that a child could not be started; those already running are killed.
Result<SuperviseResult> supervise(const SuperviseOptions& options);

}  // namespace pushrod::tools
