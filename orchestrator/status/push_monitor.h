// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <pushrod/coordinator.h>
#include <pushrod/executor.h>
#include <pushrod/log_sink.h>

#include "metrics/push_metrics.h"
#include "orchestrator/driver/push_observer.h"
#include "orchestrator/status/status_board.h"

namespace pushrod::orchestrator {

/// What is fixed for a rank's life.
struct MonitorParts {
  const Clock& clock;
  LogSink& log;
  metrics::PushMetrics& metrics;
  StatusBoard& board;
  bool leader = false;
  const DataPlane* plane = nullptr;  ///< null on ranks that never send
};

/// Turns what pushes do into metrics, log lines, the status page and progress calls. Control thread
/// only.
class PushMonitor final : public PushObserver {
 public:
  explicit PushMonitor(MonitorParts parts) : parts_(parts) {}

  /// A push begins; `progress` is called until it ends.
  void begin(std::uint64_t epoch,
             const std::string& version,
             std::vector<EngineStatus> engines,
             std::function<void(const PushProgress&)> progress);
  void onManifest(std::uint64_t tensors, std::uint64_t bytes) override;
  void onPhase(Phase left, double seconds, Phase entered, std::uint32_t attempt) override;
  void onReply(std::size_t engine,
               Goal goal,
               const Call& call,
               const Reply& reply,
               const Ledger& ledger) override;
  void onDropped(std::size_t engine, Phase phase, const Status& cause) override;
  void onEngine(std::size_t engine, const Ledger& ledger) override;
  void onVote(double seconds, const Status& status) override;
  void onFailure(Phase phase, const Status& status) override;
  void onChannel(bool built) override;
  void onTensor(std::uint64_t tensors, std::uint64_t bytes) override;
  void onBytes(std::uint64_t bytes) override;
  void onNote(const std::string& note) override;
  void onEnd(const PushReport& report) override;

 private:
  void publish(bool always);

  MonitorParts parts_;
  std::uint64_t epoch_ = 0;
  std::vector<EngineStatus> engines_;
  std::function<void(const PushProgress&)> callback_;
  PushProgress progress_;
  std::string lastAnswer_;  ///< the last failed one, as logged
  TimePoint lastPublished_{};
  bool channelBuilt_ = false;
  bool channelOpen_ = false;
};

}  // namespace pushrod::orchestrator
