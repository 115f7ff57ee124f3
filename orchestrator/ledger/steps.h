// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>
#include <utility>

#include "orchestrator/ledger/next_call.h"

// What the ways to the goals are made of.
namespace pushrod::orchestrator {

inline constexpr Duration kPollPause = std::chrono::milliseconds(50);

inline Next reached() {
  return Next{};
}

inline Next ask(CallKind kind) {
  Next next;
  next.kind = Next::Kind::kCall;
  next.call.kind = kind;
  return next;
}

inline Next askAgain(CallKind kind, Status why = {}) {
  Next next = ask(kind);
  next.kind = Next::Kind::kWait;
  next.pause = kPollPause;
  next.status = std::move(why);
  return next;
}

inline Next failed(Status status) {
  Next next;
  next.kind = Next::Kind::kFailed;
  next.status = std::move(status);
  return next;
}

inline Next refuse(const std::string& text) {
  return failed(Status(Code::kFailedPrecondition, text, Outcome::kRejected));
}

// An engine that was never identified has no features.

inline bool hasVersion(const Ledger& ledger) {
  return ledger.identity != nullptr && ledger.identity->features.hasVersion;
}

inline bool hasShutdown(const Ledger& ledger) {
  return ledger.identity != nullptr && ledger.identity->features.hasShutdown;
}

inline bool hasChecker(const Ledger& ledger) {
  return ledger.identity != nullptr && ledger.identity->features.hasChecker;
}

inline bool foundAsleep(const Ledger& ledger) {
  return ledger.identity != nullptr && ledger.identity->asleep;
}

inline Next setVersion(const std::string& version) {
  Next next = ask(CallKind::kSetVersion);
  next.call.version = version;
  return next;
}

}  // namespace pushrod::orchestrator
