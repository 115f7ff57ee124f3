// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>
#include <utility>

#include <pushrod/config.h>
#include <pushrod/executor.h>
#include <pushrod/log_sink.h>

#include "orchestrator/flight/recorder.h"
#include "orchestrator/status/stall_report.h"
#include "orchestrator/status/status_board.h"
#include "ranks/record_exchange.h"

namespace pushrod::orchestrator {

/// What a watch looks at; all of it outlives the watch.
struct StallWatchParts {
  Executor& executor;
  LogSink& log;
  StatusBoard& board;
  FlightRecorder& recorder;
  ranks::RecordExchange& exchange;
  const Config& config;
  int rank = 0;
};

/// Looks a few times per second at what a running push waits for: shows it on /status, tells the
/// other ranks how far this one is, and logs each wait once that takes longer than half of its
/// limit. Control thread only.
class StallWatch {
 public:
  explicit StallWatch(StallWatchParts parts);
  ~StallWatch();
  StallWatch(const StallWatch&) = delete;
  StallWatch& operator=(const StallWatch&) = delete;

  void begin(std::uint64_t epoch, const std::string& version);
  void end();
  /// Logs where every rank and engine stands now, asked for by somebody.
  void logNow();

 private:
  void look();
  void arm();
  void measureRate();
  [[nodiscard]] StallInput input();
  [[nodiscard]] RankStand own() const;
  [[nodiscard]] std::string tensorText(const VoteKey& at,
                                       std::uint64_t begun,
                                       std::uint64_t returned) const;
  void tell(const StallInput& input, LogLevel level);

  StallWatchParts parts_;
  Duration period_;
  Executor::TimerId timer_ = 0;
  bool running_ = false;
  std::uint64_t epoch_ = 0;
  std::string version_;
  TimePoint began_{};
  VoteKey place_;
  TimePoint placeSince_{};
  TimePoint measuredAt_{};
  std::uint64_t measuredBytes_ = 0;
  std::uint64_t kibPerSecond_ = 0;
  std::set<std::string> told_;  ///< waits that go on and were logged
};

}  // namespace pushrod::orchestrator
