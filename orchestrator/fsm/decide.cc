// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/fsm/decide.h"

#include <algorithm>

namespace pushrod::orchestrator {

namespace {

/// Phases whose failure a full resend can mend (P2).
bool resendable(Phase phase) {
  return phase >= Phase::kClean && phase <= Phase::kConfirm;
}

/// Phases in which each engine is by itself: what one of them loses leaves the others as they are.
/// From channel to the end of the last stream they share a channel, which must be built anew
/// without it.
bool eachByItself(const DecideInput& input) {
  switch (input.phase) {
    case Phase::kFinish:
      return !input.draftComes;
    case Phase::kConnect:
    case Phase::kPause:
    case Phase::kClean:
    case Phase::kFlush:
    case Phase::kVerify:
    case Phase::kResume:
      return true;
    default:
      return false;
  }
}

/// Failures that would only repeat.
bool wouldRepeat(Phase phase, const Status& first) {
  switch (first.code()) {
    case Code::kInvalidArgument:
    case Code::kFailedPrecondition:
    case Code::kCancelled:
      return true;
    case Code::kDataMismatch:
      // The stream differs from its manifest: so will the next pass. Read back from an engine it
      // may be a label that was lost between two of its own calls (P23).
      return phase != Phase::kVerify;
    case Code::kDeadlineExceeded:
      // An init that reached its limit is not tried again.
      return phase == Phase::kChannel;
    case Code::kOk:
    case Code::kUnavailable:
    case Code::kAborted:
    case Code::kInternal:
      break;
  }
  return false;
}

std::vector<std::size_t> having(const DecideInput& input, Fault least) {
  std::vector<std::size_t> list;
  for (std::size_t i = 0; i < input.engines.size(); ++i) {
    if (!input.engines[i].dropped && input.engines[i].fault >= least) {
      list.push_back(i);
    }
  }
  return list;
}

bool enoughWithout(const DecideInput& input, const std::vector<std::size_t>& without) {
  const auto left = std::count_if(input.engines.begin(),
                                  input.engines.end(),
                                  [](const EngineStand& each) { return !each.dropped; });
  return static_cast<std::size_t>(left) >=
         without.size() + std::max<std::size_t>(input.minHealthy, 1);
}

bool mayResend(const DecideInput& input) {
  return input.resendAllowed && input.attempt == 1 && input.timeLeft && resendable(input.phase);
}

/// Ruling P2 with every engine.
Ruling withAll(const DecideInput& input, const Status& first) {
  const bool again =
      mayResend(input) && having(input, Fault::kLost).empty() && !wouldRepeat(input.phase, first);
  return {again ? Decision::kResend : Decision::kFail, {}, false};
}

/// Ruling P1 with quarantine, as if there were engines enough. A failure that another attempt may
/// mend gets that attempt first; where there is none left, its engine is given up as well.
Ruling withoutSome(const DecideInput& input, const Status& first) {
  const std::vector<std::size_t> unfit = having(input, Fault::kUnfit);
  const std::vector<std::size_t> failed = having(input, Fault::kFailed);
  const bool repeats = wouldRepeat(input.phase, first);
  const bool may = mayResend(input);
  if (!input.enginesAlone) {
    return {may && !repeats ? Decision::kResend : Decision::kFail, unfit, false};
  }
  if (eachByItself(input)) {
    const bool again = may && unfit != failed;
    return again ? Ruling{Decision::kResend, unfit, false} : Ruling{Decision::kGo, failed, false};
  }
  // A failure that would only repeat does not, once its engine is left out.
  return {
      may ? Decision::kResend : Decision::kFail, unfit.empty() && repeats ? failed : unfit, false};
}

}  // namespace

Ruling decide(const DecideInput& input, const Status& first) {
  // In verdict the engines are resumed or left as they are: nothing is decided there any more.
  if (first.ok() || input.phase == Phase::kVerdict) {
    return {};
  }
  if (!input.quarantine) {
    return withAll(input, first);
  }
  Ruling ruling = withoutSome(input, first);
  if (ruling.decision == Decision::kFail) {
    ruling.withoutEngines.clear();
    return ruling;
  }
  if (!enoughWithout(input, ruling.withoutEngines)) {
    ruling = withAll(input, first);
    ruling.tooFew = true;
  }
  return ruling;
}

std::size_t healthyNeeded(const MinHealthy& wanted, std::size_t listed) {
  const auto value = static_cast<std::size_t>(std::max(wanted.value, 1));
  constexpr std::size_t kWhole = 100;
  const std::size_t needed = wanted.percent ? (listed * value + kWhole - 1) / kWhole : value;
  return std::max<std::size_t>(needed, 1);
}

}  // namespace pushrod::orchestrator
