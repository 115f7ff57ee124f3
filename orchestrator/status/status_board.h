// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include <pushrod/coordinator.h>
#include <pushrod/report.h>

namespace pushrod::orchestrator {

/// One engine on the status page.
struct EngineStatus {
  std::string name, url, release, version;
  std::string session = "unknown", paused = "unknown", channel = "unknown";
  int workers = 0;
  int replyLag = 0;
  std::string lastCall, lastAnswer;
};

/// What /status shows: filled on the control thread, read from any. Bounded: the last 50 reports.
class StatusBoard {
 public:
  StatusBoard(std::string job, int rank, int size);

  void setPhase(Phase phase, std::uint32_t attempt, std::uint64_t epoch);
  void setVersion(const std::string& version);
  void setProgress(const PushProgress& progress);
  void setEngines(std::vector<EngineStatus> engines);
  /// One of them alone: there may be thousands, and each has news often.
  void setEngine(std::size_t engine, const EngineStatus& status);
  /// What the running push waits for, a JSON object; empty: nothing runs.
  void setWaiting(std::string json);
  void addReport(const PushReport& report);

  [[nodiscard]] PushProgress progress() const;
  /// One JSON object; its fields are described in docs/report.md.
  [[nodiscard]] std::string json() const;

 private:
  mutable std::mutex mutex_;
  std::string job_;
  int rank_;
  int size_;
  std::uint64_t epoch_ = 0;
  std::string version_;
  PushProgress progress_;
  std::vector<EngineStatus> engines_;
  std::string waiting_;
  std::deque<std::string> reports_;
};

}  // namespace pushrod::orchestrator
