// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/fsm/decide.h"

#include <initializer_list>

#include <gtest/gtest.h>

namespace pushrod::orchestrator {
namespace {

constexpr Code kCodes[] = {Code::kInvalidArgument,
                           Code::kFailedPrecondition,
                           Code::kUnavailable,
                           Code::kDeadlineExceeded,
                           Code::kCancelled,
                           Code::kAborted,
                           Code::kDataMismatch,
                           Code::kInternal};

Status failure(Code code) {
  return Status(code, "it failed", Outcome::kUnknown);
}

DecideInput in(Phase phase) {
  DecideInput input;
  input.phase = phase;
  return input;
}

bool isOneOf(Phase phase, std::initializer_list<Phase> list) {
  for (const Phase each : list) {
    if (each == phase) {
      return true;
    }
  }
  return false;
}

TEST(Decide, SuccessGoesOnEverywhere) {
  for (std::size_t i = 0; i < kPhaseCount; ++i) {
    DecideInput input = in(static_cast<Phase>(i));
    for (const bool good : {true, false}) {
      input.attempt = good ? 1 : 2;
      input.resendAllowed = good;
      input.timeLeft = good;
      input.engineLost = !good;
      EXPECT_EQ(decide(input, Status()), Decision::kGo) << phaseName(input.phase);
    }
  }
}

// Ruling P2, phase by phase: from clean to confirm a failure that may pass is sent again.
TEST(Decide, ResendsFromCleanToConfirm) {
  for (std::size_t i = 0; i < kPhaseCount; ++i) {
    const auto phase = static_cast<Phase>(i);
    const bool resent = isOneOf(phase,
                                {Phase::kClean,
                                 Phase::kChannel,
                                 Phase::kStart,
                                 Phase::kStream,
                                 Phase::kAgree,
                                 Phase::kFinish,
                                 Phase::kFlush,
                                 Phase::kVerify,
                                 Phase::kConfirm});
    const Decision otherwise = phase == Phase::kVerdict ? Decision::kGo : Decision::kFail;
    EXPECT_EQ(decide(in(phase), failure(Code::kUnavailable)),
              resent ? Decision::kResend : otherwise)
        << phaseName(phase);
  }
}

TEST(Decide, NeverResendsWhatWouldRepeat) {
  for (std::size_t i = 0; i < kPhaseCount; ++i) {
    const auto phase = static_cast<Phase>(i);
    for (const Code code : {Code::kInvalidArgument, Code::kFailedPrecondition, Code::kCancelled}) {
      EXPECT_NE(decide(in(phase), failure(code)), Decision::kResend)
          << phaseName(phase) << " " << codeName(code);
    }
  }
}

TEST(Decide, AnInitAtItsLimitIsFinalOtherLimitsAreNot) {
  EXPECT_EQ(decide(in(Phase::kChannel), failure(Code::kDeadlineExceeded)), Decision::kFail);
  EXPECT_EQ(decide(in(Phase::kStream), failure(Code::kDeadlineExceeded)), Decision::kResend);
  EXPECT_EQ(decide(in(Phase::kFinish), failure(Code::kDeadlineExceeded)), Decision::kResend);
}

TEST(Decide, ADifferenceIsSentAgainOnlyWhereItWasReadBack) {
  EXPECT_EQ(decide(in(Phase::kStream), failure(Code::kDataMismatch)), Decision::kFail);
  EXPECT_EQ(decide(in(Phase::kAgree), failure(Code::kDataMismatch)), Decision::kFail);
  EXPECT_EQ(decide(in(Phase::kVerify), failure(Code::kDataMismatch)), Decision::kResend);
  EXPECT_EQ(decide(in(Phase::kFinish), failure(Code::kDataMismatch)), Decision::kResend);
}

// At most one resend, and none without permission, time or engines: for every phase and code.
TEST(Decide, EachConditionAloneForbidsTheResend) {
  for (std::size_t i = 0; i < kPhaseCount; ++i) {
    for (const Code code : kCodes) {
      DecideInput second = in(static_cast<Phase>(i));
      second.attempt = 2;
      DecideInput forbidden = in(static_cast<Phase>(i));
      forbidden.resendAllowed = false;
      DecideInput late = in(static_cast<Phase>(i));
      late.timeLeft = false;
      DecideInput lost = in(static_cast<Phase>(i));
      lost.engineLost = true;
      for (const DecideInput& input : {second, forbidden, late, lost}) {
        EXPECT_NE(decide(input, failure(code)), Decision::kResend)
            << phaseName(input.phase) << " " << codeName(code);
      }
    }
  }
}

}  // namespace
}  // namespace pushrod::orchestrator
