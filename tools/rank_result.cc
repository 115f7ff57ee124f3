// SPDX-License-Identifier: Apache-2.0
#include "tools/rank_result.h"

#include "tools/exit_code.h"
#include "tools/report_file.h"

namespace pushrod::tools {

RankResult resultOfRefusal(const Status& why, const std::string& version, int ranks) {
  RankResult result;
  result.report = refusedReport(version, ranks, why).toJson();
  result.exit = why.code() == Code::kInternal ? kExitInternal : kExitRefused;
  result.outcome = "refused";
  result.summary = why.message() + "; no engine was contacted";
  return result;
}

namespace {

/// A failure of an engine or of rank 0's own work names rank 0 too, but comes from a living one.
bool saysRankZeroIsGone(const Status& cause) {
  return cause.code() == Code::kUnavailable && cause.outcome() == Outcome::kUnknown &&
         cause.origin().rank == 0 && cause.origin().engine.empty();
}

}  // namespace

RankResult resultOf(const Result<PushReport>& pushed) {
  RankResult result;
  if (!pushed) {
    result.exit = exitOfPushError(pushed.status());
    result.outcome = "unknown";
    result.summary = pushed.status().toString();
    return result;
  }
  result.exit = exitOfReport(*pushed);
  result.outcome = pushOutcomeName(pushed->outcome);
  result.report = pushed->toJson();
  result.summary = pushed->summary();
  result.rankZeroLost = saysRankZeroIsGone(pushed->firstCause);
  return result;
}

}  // namespace pushrod::tools
