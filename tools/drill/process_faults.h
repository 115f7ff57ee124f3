// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>

#include "tools/sources/drill_source.h"

namespace pushrod::tools {

/// Faults of a real rank process: exceptions, hangs, SIGSTOP and sudden ends.
class ProcessFaults final : public FaultActor {
 public:
  /// `folder`: the supervisor's, empty without one.
  ProcessFaults(std::string folder, int rank) : folder_(std::move(folder)), rank_(rank) {}

  Status act(const DrillFault& fault) override;
  void endHang() noexcept override;

 private:
  Status hang(const DrillFault& fault);
  void stop(const DrillFault& fault);

  const std::string folder_;
  const int rank_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool hanging_ = false;
  bool ended_ = false;
};

/// How long the supervisor leaves a rank stopped that stopped itself; nullopt: it is not woken.
[[nodiscard]] std::optional<Duration> plannedStop(const std::string& folder, int rank);

}  // namespace pushrod::tools
