// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/fsm/decide.h"

#include <algorithm>
#include <functional>
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
      input.engines = {{good ? Fault::kNone : Fault::kLost, false}};
      EXPECT_EQ(decide(input, Status()), Ruling{}) << phaseName(input.phase);
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
    EXPECT_EQ(decide(in(phase), failure(Code::kUnavailable)).decision,
              resent ? Decision::kResend : otherwise)
        << phaseName(phase);
  }
}

TEST(Decide, NeverResendsWhatWouldRepeat) {
  for (std::size_t i = 0; i < kPhaseCount; ++i) {
    const auto phase = static_cast<Phase>(i);
    for (const Code code : {Code::kInvalidArgument, Code::kFailedPrecondition, Code::kCancelled}) {
      EXPECT_NE(decide(in(phase), failure(code)).decision, Decision::kResend)
          << phaseName(phase) << " " << codeName(code);
    }
  }
}

TEST(Decide, AnInitAtItsLimitIsFinalOtherLimitsAreNot) {
  EXPECT_EQ(decide(in(Phase::kChannel), failure(Code::kDeadlineExceeded)).decision,
            Decision::kFail);
  EXPECT_EQ(decide(in(Phase::kStream), failure(Code::kDeadlineExceeded)).decision,
            Decision::kResend);
  EXPECT_EQ(decide(in(Phase::kFinish), failure(Code::kDeadlineExceeded)).decision,
            Decision::kResend);
}

TEST(Decide, ADifferenceIsSentAgainOnlyWhereItWasReadBack) {
  EXPECT_EQ(decide(in(Phase::kStream), failure(Code::kDataMismatch)).decision, Decision::kFail);
  EXPECT_EQ(decide(in(Phase::kAgree), failure(Code::kDataMismatch)).decision, Decision::kFail);
  EXPECT_EQ(decide(in(Phase::kVerify), failure(Code::kDataMismatch)).decision, Decision::kResend);
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
      lost.engines = {{Fault::kLost, false}, {}};
      for (const DecideInput& input : {second, forbidden, late, lost}) {
        EXPECT_NE(decide(input, failure(code)).decision, Decision::kResend)
            << phaseName(input.phase) << " " << codeName(code);
      }
    }
  }
}

// Quarantine (P1), by enumeration: every phase, code, attempt and stand of three engines.
void forEachQuarantine(const std::function<void(const DecideInput&, const Status&)>& visit) {
  constexpr Fault kFaults[] = {Fault::kNone, Fault::kFailed, Fault::kUnfit, Fault::kLost};
  constexpr std::size_t kEngines = 3;
  constexpr std::size_t kStands = 5 * 5 * 5;
  for (std::size_t i = 0; i < kPhaseCount; ++i) {
    for (const Code code : kCodes) {
      for (std::size_t stands = 0; stands < kStands; ++stands) {
        for (unsigned flags = 0; flags < 64; ++flags) {
          DecideInput input = in(static_cast<Phase>(i));
          input.quarantine = true;
          input.attempt = 1 + (flags & 1U);
          input.resendAllowed = (flags & 2U) == 0;
          input.timeLeft = (flags & 4U) == 0;
          input.enginesAlone = (flags & 8U) == 0;
          input.minHealthy = 1 + (flags >> 4U);
          std::size_t rest = stands;
          for (std::size_t engine = 0; engine < kEngines; ++engine, rest /= 5) {
            input.engines.push_back(rest % 5 == 4 ? EngineStand{Fault::kLost, true}
                                                  : EngineStand{kFaults[rest % 5], false});
          }
          visit(input, failure(code));
        }
      }
    }
  }
}

std::size_t left(const DecideInput& input) {
  std::size_t count = 0;
  for (const EngineStand& each : input.engines) {
    count += each.dropped ? 0U : 1U;
  }
  return count;
}

TEST(DecideQuarantine, LeavesOutOnlyWhoFailedAndNeverTooMany) {
  forEachQuarantine([](const DecideInput& input, const Status& first) {
    const Ruling ruling = decide(input, first);
    for (const std::size_t engine : ruling.withoutEngines) {
      ASSERT_FALSE(input.engines[engine].dropped);
      ASSERT_NE(input.engines[engine].fault, Fault::kNone);
    }
    if (!ruling.withoutEngines.empty()) {
      ASSERT_GE(left(input), ruling.withoutEngines.size() + input.minHealthy);
      ASSERT_NE(ruling.decision, Decision::kFail);
    }
  });
}

TEST(DecideQuarantine, GoesOnOnlyWithoutEveryEngineThatFailed) {
  forEachQuarantine([](const DecideInput& input, const Status& first) {
    const Ruling ruling = decide(input, first);
    if (ruling.decision != Decision::kGo || input.phase == Phase::kVerdict) {
      return;
    }
    ASSERT_TRUE(input.enginesAlone) << "another's failure is no engine's loss";
    ASSERT_TRUE(isOneOf(input.phase,
                        {Phase::kConnect,
                         Phase::kPause,
                         Phase::kClean,
                         Phase::kFinish,
                         Phase::kFlush,
                         Phase::kVerify,
                         Phase::kResume}))
        << phaseName(input.phase);
    for (std::size_t i = 0; i < input.engines.size(); ++i) {
      const bool out = std::find(ruling.withoutEngines.begin(), ruling.withoutEngines.end(), i) !=
                       ruling.withoutEngines.end();
      const EngineStand& each = input.engines[i];
      ASSERT_TRUE(each.dropped || out || each.fault == Fault::kNone);
    }
  });
}

TEST(DecideQuarantine, NothingIsSentTwiceMoreAndNoUnfitEngineIsSentTo) {
  forEachQuarantine([](const DecideInput& input, const Status& first) {
    const Ruling ruling = decide(input, first);
    if (ruling.decision != Decision::kResend) {
      return;
    }
    ASSERT_EQ(input.attempt, 1U);
    ASSERT_TRUE(input.resendAllowed && input.timeLeft);
    ASSERT_GE(input.phase, Phase::kClean);
    ASSERT_LE(input.phase, Phase::kConfirm);
    ASSERT_NE(first.code() == Code::kCancelled && !input.enginesAlone, true);
    for (std::size_t i = 0; i < input.engines.size(); ++i) {
      const bool out = std::find(ruling.withoutEngines.begin(), ruling.withoutEngines.end(), i) !=
                       ruling.withoutEngines.end();
      if (input.engines[i].fault == Fault::kLost && !input.engines[i].dropped) {
        ASSERT_TRUE(out);
      }
    }
  });
}

TEST(DecideQuarantine, TooFewMeansTheRulingWithoutQuarantine) {
  forEachQuarantine([](const DecideInput& input, const Status& first) {
    const Ruling ruling = decide(input, first);
    if (ruling.tooFew) {
      DecideInput plain = input;
      plain.quarantine = false;
      // What is left out already is no engine of this push any more.
      plain.engines.erase(std::remove_if(plain.engines.begin(),
                                         plain.engines.end(),
                                         [](const EngineStand& each) { return each.dropped; }),
                          plain.engines.end());
      ASSERT_EQ(ruling.decision, decide(plain, first).decision);
      ASSERT_TRUE(ruling.withoutEngines.empty());
    }
  });
}

// The same loss, phase by phase: on in the same attempt, or by the resend.
TEST(DecideQuarantine, AnEngineNobodyAnswersForNeverEndsAFirstAttempt) {
  for (const Phase phase : {Phase::kConnect,
                            Phase::kPause,
                            Phase::kClean,
                            Phase::kChannel,
                            Phase::kStart,
                            Phase::kStream,
                            Phase::kAgree,
                            Phase::kFinish,
                            Phase::kFlush,
                            Phase::kVerify,
                            Phase::kResume}) {
    DecideInput input = in(phase);
    input.quarantine = true;
    input.enginesAlone = true;
    input.engines = {{}, {Fault::kUnfit, false}, {}};
    const bool shared =
        isOneOf(phase, {Phase::kChannel, Phase::kStart, Phase::kStream, Phase::kAgree});
    const Ruling expected{shared ? Decision::kResend : Decision::kGo, {1}, false};
    for (const Code code : {Code::kUnavailable, Code::kInvalidArgument}) {
      EXPECT_EQ(decide(input, failure(code)), expected) << phaseName(phase);
    }
    input.minHealthy = 3;
    EXPECT_NE(decide(input, failure(Code::kInvalidArgument)).decision, Decision::kGo);
    EXPECT_TRUE(decide(input, failure(Code::kUnavailable)).tooFew) << phaseName(phase);
  }
}

TEST(DecideQuarantine, WhatMayPassIsSentAgainFirstAndGivenUpAfterwards) {
  DecideInput input = in(Phase::kFinish);
  input.quarantine = true;
  input.enginesAlone = true;
  input.engines = {{Fault::kFailed, false}, {}};
  EXPECT_EQ(decide(input, failure(Code::kUnavailable)), (Ruling{Decision::kResend, {}, false}));
  input.attempt = 2;
  EXPECT_EQ(decide(input, failure(Code::kUnavailable)), (Ruling{Decision::kGo, {0}, false}));
  input.phase = Phase::kStream;
  EXPECT_EQ(decide(input, failure(Code::kUnavailable)).decision, Decision::kFail)
      << "the others would need a third pass";
}

TEST(DecideQuarantine, MinHealthyIsACountOrAShare) {
  const auto needed = [](int value, bool percent, std::size_t listed) {
    return healthyNeeded(MinHealthy{value, percent}, listed);
  };
  EXPECT_EQ(needed(2, false, 5), 2U);
  EXPECT_EQ(needed(80, true, 5), 4U);
  EXPECT_EQ(needed(50, true, 3), 2U) << "rounded up";
  EXPECT_EQ(needed(1, true, 3), 1U);
  EXPECT_EQ(needed(100, true, 3), 3U);
}

}  // namespace
}  // namespace pushrod::orchestrator
