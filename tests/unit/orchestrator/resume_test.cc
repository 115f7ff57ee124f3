// SPDX-License-Identifier: Apache-2.0
// What is believed of an engine at the end of a push, and at the next one's begin.
#include <string>

#include <gtest/gtest.h>

#include "tests/unit/orchestrator/ledger_world.h"

namespace pushrod::orchestrator {
namespace {

TEST(Resume, AResumeWithoutAnswerIsReadAndProvedAgain) {
  const PushFacts facts = theFacts();

  struct Case {
    bool paused;
    const char* label;
    Next::Kind kind;
    CallKind call;
  };

  const Case cases[] = {{false, "v2", Next::Kind::kReached, CallKind::kIdentify},
                        {true, "v2", Next::Kind::kWait, CallKind::kResume},
                        {false, "default", Next::Kind::kFailed, CallKind::kIdentify},
                        {true, "default", Next::Kind::kFailed, CallKind::kIdentify}};
  for (const Case& test : cases) {
    Ledger ledger = pausedLedger();
    ledger.proved = true;
    ledger.verifyRead = true;
    Call call = nextCall(ledger, Goal::kResumed, facts, nullptr).call;
    ASSERT_EQ(call.kind, CallKind::kReadVersion);
    const Reply same = TrueEngine{false, true, facts.version}.answer(call);
    ledger = apply(ledger, Goal::kResumed, call, same, facts);
    call = nextCall(ledger, Goal::kResumed, facts, &same).call;
    ASSERT_EQ(call.kind, CallKind::kResume);
    Reply reply = bad(CallKind::kResume, 0, Outcome::kUnknown);
    TrueEngine engine;
    engine.paused = test.paused;
    engine.label = test.label;
    for (const CallKind expected : {CallKind::kReadPaused, CallKind::kReadVersion}) {
      ledger = apply(ledger, Goal::kResumed, call, reply, facts);
      const Next next = nextCall(ledger, Goal::kResumed, facts, &reply);
      ASSERT_EQ(next.call.kind, expected);
      call = next.call;
      reply = engine.answer(call);
    }
    ledger = apply(ledger, Goal::kResumed, call, reply, facts);
    const Next end = nextCall(ledger, Goal::kResumed, facts, &reply);
    EXPECT_EQ(end.kind, test.kind) << test.label << (test.paused ? " paused" : "");
    EXPECT_EQ(end.call.kind, test.call);
  }
}

TEST(Resume, AnEngineThatRestartedAfterItsVerifyIsNotResumed) {
  const PushFacts facts = theFacts();
  Ledger ledger = pausedLedger();
  ledger.proved = true;
  ledger.verifyRead = true;
  ledger.label = Label::kPushed;
  const Call read = nextCall(ledger, Goal::kResumed, facts, nullptr).call;
  const Reply silent = bad(CallKind::kReadVersion, 0, Outcome::kNotSent);
  ledger = apply(ledger, Goal::kResumed, read, silent, facts);
  const Next again = nextCall(ledger, Goal::kResumed, facts, &silent);
  EXPECT_EQ(again.kind, Next::Kind::kWait) << "it may be starting";
  EXPECT_EQ(again.call.kind, CallKind::kReadVersion);
  Reply other = good(CallKind::kReadVersion);
  other.text = "default";
  ledger = apply(ledger, Goal::kResumed, read, other, facts);
  const Next end = nextCall(ledger, Goal::kResumed, facts, &other);
  EXPECT_EQ(end.kind, Next::Kind::kFailed);
  EXPECT_NE(end.status.message().find("'default' instead of 'v2'"), std::string::npos);
  EXPECT_FALSE(ledger.proved) << "its report must not call it current";
}

/// As a good push leaves it.
Ledger currentLedger(const PushFacts& facts) {
  Ledger ledger = pausedLedger();
  ledger.startSent = true;
  ledger.proved = true;
  ledger.resumed = true;
  ledger.label = Label::kPushed;
  ledger.labelText = facts.version;
  return ledger;
}

TEST(Resume, ARestartBetweenTwoPushesIsSeenByTheVersion) {
  PushFacts facts = theFacts();
  const Ledger before = currentLedger(facts);
  const std::string left = facts.version;
  facts.version = "v3";
  for (const char* label : {left.c_str(), "default"}) {
    Ledger ledger = before.forNextPush();
    TrueEngine engine;
    engine.label = label;
    wayTo(Goal::kIdentified, ledger, engine, facts);
    const bool same = label == left;
    EXPECT_EQ(ledger.changed, !same) << label;
    EXPECT_EQ(ledger.channel, same ? ChannelState::kReady : ChannelState::kDead) << label;
    EXPECT_EQ(ledger.needsEmpty, !same) << "what others left in it is not known";
  }
}

TEST(Resume, AfterAFailedPushNoVersionIsExpected) {
  PushFacts facts = theFacts();
  Ledger before = currentLedger(facts);
  before.proved = false;
  Ledger ledger = before.forNextPush();
  TrueEngine engine;
  engine.label = "default";
  wayTo(Goal::kIdentified, ledger, engine, facts);
  EXPECT_FALSE(ledger.changed);
}

}  // namespace
}  // namespace pushrod::orchestrator
