// SPDX-License-Identifier: Apache-2.0
// What is left of a push that failed or recovered: its flight record.
#include <algorithm>
#include <utility>

#include "orchestrator/flight/file.h"
#include "orchestrator/flight/lines.h"
#include "orchestrator/push_session.h"

namespace pushrod::orchestrator {

void PushSession::settle(ThreadCaller& caller, Ended& ended) {
  watch_->end();
  recorder_->end();
  const bool wanted =
      !ended.known || ended.report.outcome == PushOutcome::kFailed || ended.report.resent;
  if (!wanted) {
    collector_->skip();
    caller.stop();
    return;
  }
  settling_ = true;
  collector_->collect([this, &caller, &ended](std::optional<FlightCollector::Parts> parts) {
    settling_ = false;
    if (parts && !flightFolder_.empty()) {
      ended.flight = flightText(ended, std::move(*parts));
    }
    caller.stop();
  });
}

std::string PushSession::flightText(const Ended& ended, FlightCollector::Parts parts) const {
  FlightHeader header;
  header.job = config_.job;
  header.push = epoch_;
  header.version = ended.report.version;
  header.outcome = pushOutcomeName(ended.report.outcome);
  header.startedAt = ended.report.startedAt;
  header.ranks = rank_.size;
  header.writer = rank_.rank;
  header.firstCause = ended.report.firstCause;
  for (const EngineReport& engine : ended.report.engines) {
    header.engines.push_back(engine.name);
  }
  header.missing = std::move(parts.missing);
  std::string text;
  for (const auto& [rank, record] : parts.records) {
    (void)rank;
    header.lines += static_cast<std::uint64_t>(std::count(record.begin(), record.end(), '\n'));
    text += record;
  }
  return headerLine(header) + text;
}

void PushSession::leaveFlight(const std::string& text) {
  const Result<std::string> path = writeFlight(flightFolder_, config_.job, text);
  if (path.ok()) {
    log_.log(LogLevel::kInfo, "flight record: " + *path + "; pushrod explain reads it");
  } else {
    // The push has its outcome already.
    log_.log(LogLevel::kWarning, "no flight record: " + path.status().message());
  }
}

void PushSession::logState() {
  executor_.post([this] { watch_->logNow(); });
}

}  // namespace pushrod::orchestrator
