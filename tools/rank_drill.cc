// SPDX-License-Identifier: Apache-2.0
// A rank's part in a drill: every push of the plan, one after another.
#include <algorithm>
#include <optional>
#include <poll.h>

#include "tools/drill/process_faults.h"
#include "tools/exit_code.h"
#include "tools/progress_line.h"
#include "tools/rank_runner.h"
#include "tools/report_file.h"
#include "tools/sources/drill_source.h"

namespace pushrod::tools {
namespace {

/// The worst of two pushes' exit codes: a broken promise, a failure, a refusal.
int worstExit(int one, int other) {
  for (const int code : {kExitInternal, kExitFailed, kExitRefused}) {
    if (one == code || other == code) {
      return code;
    }
  }
  return std::max(one, other);
}

/// A push whose report this rank cannot know, or that was not made, has its place in the list too.
RankResult resultOfNone(const std::string& version, int ranks, const Status& why) {
  PushReport report = refusedReport(version, ranks, why);
  report.outcome = PushOutcome::kFailed;
  RankResult result;
  result.exit = kExitFailed;
  result.outcome = "unknown";
  result.report = report.toJson();
  result.summary = why.toString();
  return result;
}

/// Whether some rank, by plan, is not there any more after this push.
bool losesRank(const DrillPush& push) {
  return std::any_of(push.faults.begin(), push.faults.end(), [](const DrillFault& fault) {
    return fault.endsRank();
  });
}

}  // namespace

RankResult RankRunner::drill() {
  RankResult all;
  bool lost = false;
  for (const DrillPush& push : plan_.pushes) {
    RankResult result;
    if (lost) {
      const Status why(
          Code::kUnavailable,
          "this push was not made, as a rank ended in an earlier one; restart the job");
      result = resultOfNone(push.version, rank_.size, why);
    } else if (!waitBefore(push)) {
      break;  // The order to stop is the drill's end.
    } else {
      result = drillPush(push);
    }
    lost = lost || (result.exit != kExitDone && losesRank(push));
    all.exit = worstExit(all.exit, result.exit);
    all.report += (all.report.empty() ? "" : ",") + result.report;
    all.summary += (all.summary.empty() ? "" : "\n") + result.summary;
    all.rankZeroLost = all.rankZeroLost || result.rankZeroLost;
  }
  all.report = reportText(options_, all.report);
  return all;
}

bool RankRunner::waitBefore(const DrillPush& push) const {
  pollfd entry{watch_.descriptor(), POLLIN, 0};
  return ::poll(&entry, 1, static_cast<int>(push.wait.count())) == 0;
}

RankResult RankRunner::drillPush(const DrillPush& push) {
  mendGather();
  ProcessFaults faults(options_.folder, rank_.rank);
  DrillSource source(plan_, push, *gather_, faults);
  DrillSource draft(plan_, push, *gather_, faults, true);
  std::optional<ProgressLine> line;
  if (rank_.rank == 0 && ProgressLine::wanted()) {
    line.emplace();
  }
  PushRequest request;
  request.version = push.version;
  request.weights = &source;
  request.draftWeights = push.draft ? &draft : nullptr;
  request.onPhase = [this, &source](Phase phase, int /*attempt*/) {
    noteMeeting();  // The first phase is told of once the ranks have met.
    return source.enter(phase);
  };
  if (line) {
    request.progress = [&line](const PushProgress& progress) { line->update(progress); };
  }
  const Result<PushReport> pushed = coordinator_->push(request);
  RankResult result = resultOf(pushed);
  lastFailed_ = result.exit != kExitDone;
  if (!pushed) {
    const bool rankZeroLost = result.rankZeroLost;
    const int exit = result.exit;
    result = resultOfNone(push.version, rank_.size, pushed.status());
    result.rankZeroLost = rankZeroLost;
    result.exit = exit;
  }
  return result;
}

}  // namespace pushrod::tools
