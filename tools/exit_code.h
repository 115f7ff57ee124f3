// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include <pushrod/report.h>
#include <pushrod/status.h>

namespace pushrod::tools {

/// What the program's exit code says; signals add 128 + signal.
inline constexpr int kExitDone = 0;      ///< done or recovered
inline constexpr int kExitInternal = 1;  ///< a broken promise of the program
inline constexpr int kExitRefused = 2;   ///< refused before any engine was contacted
inline constexpr int kExitFailed = 3;    ///< the push failed

[[nodiscard]] constexpr int exitOfSignal(int signal) {
  return 128 + signal;
}

[[nodiscard]] int exitOfReport(const PushReport& report);
/// For a push() that gave no report: its outcome is not known here, so nothing but an internal
/// error and a refused request keep their own codes.
[[nodiscard]] int exitOfPushError(const Status& error);

/// How one child of the supervisor ended.
struct ChildEnd {
  int code = 0;         ///< exit code; meaningless when `signal` is set
  int signal = 0;       ///< the signal that ended it, 0: none
  bool killed = false;  ///< the supervisor ended it as a straggler
  bool operator==(const ChildEnd&) const = default;
};

/// The supervisor's exit code. `signal` is the one it received itself, 0: none; it goes first.
/// Otherwise equal codes are handed on; a child that died or had to be ended makes the push failed.
[[nodiscard]] int combineExits(std::span<const ChildEnd> children, int signal);

}  // namespace pushrod::tools
