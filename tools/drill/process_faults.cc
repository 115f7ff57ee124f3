// SPDX-License-Identifier: Apache-2.0
#include "tools/drill/process_faults.h"

#include <cstdint>
#include <fstream>
#include <signal.h>
#include <stdexcept>
#include <unistd.h>

#include "tools/console.h"
#include "tools/exit_code.h"
#include "tools/report_file.h"

namespace pushrod::tools {
namespace {

std::string stopFile(const std::string& folder, int rank) {
  return folder + "/rank-" + std::to_string(rank) + ".stop";
}

}  // namespace

Status ProcessFaults::act(const DrillFault& fault) {
  switch (fault.kind) {
    case FaultKind::kThrow:
      throw std::runtime_error("planned fault: " + fault.describe());
    case FaultKind::kHang:
      return hang(fault);
    case FaultKind::kExit:
      // As a crash would: no destructor runs and nobody is told.
      ::_exit(kExitFailed);
    case FaultKind::kStop:
      stop(fault);
      return {};
    case FaultKind::kMissing:
    case FaultKind::kExtra:
    case FaultKind::kReorder:
    case FaultKind::kWrongShape:
    case FaultKind::kOtherValues:
      break;
  }
  return {};
}

Status ProcessFaults::hang(const DrillFault& fault) {
  std::unique_lock lock(mutex_);
  hanging_ = true;
  ended_ = false;
  changed_.wait_for(lock, fault.length, [this] { return ended_; });
  hanging_ = false;
  if (ended_) {
    return {Code::kAborted, "planned fault: " + fault.describe() + ", ended by the push"};
  }
  return {};
}

void ProcessFaults::endHang() noexcept {
  const std::lock_guard lock(mutex_);
  ended_ = hanging_;
  changed_.notify_all();
}

void ProcessFaults::stop(const DrillFault& fault) {
  if (!folder_.empty()) {
    const std::string text = std::to_string(fault.length.count());
    const Status written = writeReportFile(stopFile(folder_, rank_), text);
    if (!written) {
      printError(written.message());
    }
  }
  ::raise(SIGSTOP);
}

std::optional<Duration> plannedStop(const std::string& folder, int rank) {
  std::ifstream file(stopFile(folder, rank));
  std::int64_t milliseconds = 0;
  if (!(file >> milliseconds) || milliseconds <= 0) {
    return std::nullopt;
  }
  return Duration(milliseconds);
}

}  // namespace pushrod::tools
