// SPDX-License-Identifier: Apache-2.0
#include "tools/unheard_ranks.h"

#include <algorithm>

#include "common/time_text.h"

namespace pushrod::tools {

std::string deathsText(const std::vector<ChildEnd>& ends) {
  std::string text;
  for (std::size_t rank = 0; rank < ends.size(); ++rank) {
    const ChildEnd& end = ends[rank];
    if (end.killed) {
      text += " Rank " + std::to_string(rank) + " did not end in time and was killed.";
    } else if (end.signal != 0) {
      text += " Rank " + std::to_string(rank) + " was ended by signal " +
              std::to_string(end.signal) + ".";
    }
  }
  return text;
}

std::string unheardText(const std::vector<ChildEnd>& ends, const std::string& folder) {
  const bool ended = std::any_of(
      ends.begin(), ends.end(), [](const ChildEnd& end) { return !end.killed && end.signal == 0; });
  if (!ended) {
    return "No rank lived to leave a result." + deathsText(ends);
  }
  std::string codes;
  bool stopped = true;  // A further stop order ends a rank on the spot.
  for (std::size_t rank = 0; rank < ends.size(); ++rank) {
    if (!ends[rank].killed && ends[rank].signal == 0) {
      codes += (codes.empty() ? "" : ", ") + ("rank " + std::to_string(rank)) + " with " +
               std::to_string(ends[rank].code);
      stopped = stopped && ends[rank].code > exitOfSignal(0);
    }
  }
  return "No rank left a result in " + folder +
         "; what they said stands above. They ended by themselves: " + codes + "." +
         (stopped
              ? " They were told to stop more than once."
              : " If there is no room left in that folder, make some or set TMPDIR to another.") +
         deathsText(ends);
}

PushReport unheardReport(const std::string& version,
                         const Config& config,
                         int ranks,
                         std::chrono::system_clock::time_point started,
                         const std::string& why) {
  PushReport report;
  report.version = version;
  report.outcome = PushOutcome::kFailed;
  report.startedAt = common::utcText(started);
  report.durationSeconds =
      std::chrono::duration<double>(std::chrono::system_clock::now() - started).count();
  report.ranks = ranks;
  report.firstCause = Status(Code::kUnavailable, why, Outcome::kUnknown);
  for (const EngineConfig& engine : config.engines.list) {
    EngineReport row;
    row.name = engine.name;
    row.url = engine.url;
    row.outcome = "unknown";
    row.remedy = "ask it by pushrod engines version; do not resume it; push again";
    report.engines.push_back(std::move(row));
  }
  return report;
}

}  // namespace pushrod::tools
