// SPDX-License-Identifier: Apache-2.0
#include "tools/exit_code.h"

#include <vector>

#include <gtest/gtest.h>

namespace pushrod::tools {
namespace {

ChildEnd code(int value) {
  return {.code = value};
}

constexpr ChildEnd kDied{.signal = 9};
constexpr ChildEnd kStraggler{.signal = 9, .killed = true};

TEST(ExitCode, FollowsTheReport) {
  PushReport report;
  report.outcome = PushOutcome::kDone;
  EXPECT_EQ(exitOfReport(report), 0);
  report.outcome = PushOutcome::kRecovered;
  EXPECT_EQ(exitOfReport(report), 0);
  report.outcome = PushOutcome::kRefused;
  EXPECT_EQ(exitOfReport(report), 2);
  report.outcome = PushOutcome::kFailed;
  EXPECT_EQ(exitOfReport(report), 3);
}

TEST(ExitCode, AnUnknownOutcomeIsAFailure) {
  EXPECT_EQ(exitOfPushError(Status(Code::kUnavailable, "x")), 3);
  EXPECT_EQ(exitOfPushError(Status(Code::kDeadlineExceeded, "x")), 3);
  EXPECT_EQ(exitOfPushError(Status(Code::kInvalidArgument, "x")), 2);
  EXPECT_EQ(exitOfPushError(Status(Code::kInternal, "x")), 1);
}

TEST(ExitCode, ChildrenAreCombined) {
  struct Row {
    std::vector<ChildEnd> children;
    int signal;
    int expected;
  };

  const std::vector<Row> rows = {
      {{code(0), code(0)}, 0, 0},
      {{code(2), code(2)}, 0, 2},
      {{code(3), code(3)}, 0, 3},
      {{code(1), code(1)}, 0, 1},
      {{code(0), code(3)}, 0, 3},
      {{code(2), code(3)}, 0, 3},
      {{code(0), code(2)}, 0, 2},
      {{code(3), code(1)}, 0, 1},
      {{code(3), kDied, code(3)}, 0, 3},
      {{code(0), kDied}, 0, 3},
      {{code(1), kDied}, 0, 3},
      {{code(2), kStraggler}, 0, 3},
      {{code(143), code(3)}, 0, 3},  // One rank alone was told to stop.
      {{code(143), code(143)}, 0, 3},
      {{code(143), code(143)}, 15, 143},
      {{code(130), code(130)}, 2, 130},
      {{code(0), code(0)}, 15, 143},
      {{kStraggler, kDied}, 2, 130},
  };
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(combineExits(rows[i].children, rows[i].signal), rows[i].expected) << "row " << i;
  }
}

}  // namespace
}  // namespace pushrod::tools
