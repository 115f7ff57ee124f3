// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include <pushrod/config.h>
#include <pushrod/coordinator.h>
#include <pushrod/rank.h>

#include "common/log.h"
#include "tools/push_options.h"
#include "tools/rank_result.h"
#include "tools/signal_watch.h"
#include "tools/sources/checkpoint.h"
#include "tools/sources/drill_plan.h"
#include "tools/sources/share_gather.h"

namespace pushrod::tools {

/// One trainer rank's life: checks, pushes, results. Lives on the process's main thread.
class RankRunner {
 public:
  explicit RankRunner(PushOptions options) : options_(std::move(options)) {}

  /// Returns the process's exit code.
  int run();

 private:
  Status prepare();
  /// What the push needs of this rank's host.
  Status openFiles();
  Status connect();
  Status openPlan();
  int pushOrders();
  /// Every push of the plan (rank_drill.cc).
  RankResult drill();
  RankResult drillPush(const DrillPush& push);
  bool waitBefore(const DrillPush& push) const;
  /// Mends the ranks' own gather after a push that failed.
  void mendGather();
  RankResult push(const Checkpoint& checkpoint, const std::string& version);
  /// Tells all ranks why this one cannot push.
  RankResult refuseTogether();
  /// Tells the supervisor that this rank waits for no other to come.
  void noteMeeting();
  void publish(const RankResult& result) const;
  /// An earlier push's report is not taken for this one's, whatever happens to it.
  void forgetOldReport() const;
  void leaveReport(const std::string& report) const;
  void linger() const;
  [[nodiscard]] int exitCode(int code) const;

  PushOptions options_;
  SignalWatch watch_;
  Config config_;
  Rank rank_;
  std::unique_ptr<common::StderrLogSink> log_;
  std::unique_ptr<Checkpoint> checkpoint_;  ///< null: `refused_` says why
  Status refused_;
  DrillPlan plan_;
  std::unique_ptr<ShareGather> gather_;
  bool lastFailed_ = false;
  bool met_ = false;  ///< noted; used by one thread, the one that a push tells its phases on
  std::unique_ptr<PushCoordinator> coordinator_;
};

}  // namespace pushrod::tools
