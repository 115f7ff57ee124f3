// SPDX-License-Identifier: Apache-2.0
#include "tools/exit_code.h"

#include <algorithm>

namespace pushrod::tools {

int exitOfReport(const PushReport& report) {
  switch (report.outcome) {
    case PushOutcome::kDone:
    case PushOutcome::kRecovered:
      return kExitDone;
    case PushOutcome::kRefused:
      return kExitRefused;
    case PushOutcome::kFailed:
      break;
  }
  return kExitFailed;
}

int exitOfPushError(const Status& error) {
  if (error.code() == Code::kInternal) {
    return kExitInternal;
  }
  return error.code() == Code::kInvalidArgument ? kExitRefused : kExitFailed;
}

int combineExits(std::span<const ChildEnd> children, int signal) {
  if (signal != 0) {
    return exitOfSignal(signal);
  }
  const auto any = [children](auto test) {
    return std::any_of(children.begin(), children.end(), test);
  };
  if (any([](const ChildEnd& end) { return end.signal != 0 || end.killed; })) {
    return kExitFailed;
  }
  // Codes differ when ranks saw different ends; the most alarming known one speaks for all.
  for (const int code : {kExitInternal, kExitFailed, kExitRefused}) {
    if (any([code](const ChildEnd& end) { return end.code == code; })) {
      return code;
    }
  }
  return any([](const ChildEnd& end) { return end.code != kExitDone; }) ? kExitFailed : kExitDone;
}

}  // namespace pushrod::tools
