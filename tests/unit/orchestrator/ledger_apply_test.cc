// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/unit/orchestrator/ledger_world.h"

namespace pushrod::orchestrator {
namespace {

Call callOf(CallKind kind, bool version = false) {
  Call call;
  call.kind = kind;
  call.hasVersion = version;
  call.version = version ? "v2" : "";
  return call;
}

Ledger after(Ledger ledger, Goal goal, const Call& call, const Reply& reply) {
  return apply(std::move(ledger), goal, call, reply, theFacts());
}

Ledger openLedger() {
  Ledger ledger = pausedLedger();
  ledger.session = Session::kOpen;
  ledger.startSent = true;
  ledger.content = Content::kBegun;
  return ledger;
}

TEST(LedgerApply, AFailedUpdateLeavesTheSessionKnownOnlyWhereItIs) {
  struct Case {
    int http;
    Outcome outcome;
    Session session;
  };

  const Case cases[] = {{0, Outcome::kNotSent, Session::kUnknown},
                        {400, Outcome::kRejected, Session::kOpen},
                        {408, Outcome::kUnknown, Session::kUnknown},
                        {500, Outcome::kRejected, Session::kUnknown},
                        {500, Outcome::kUnknown, Session::kUnknown},
                        {0, Outcome::kUnknown, Session::kUnknown}};
  for (const Case& test : cases) {
    const Ledger ledger = after(openLedger(),
                                Goal::kUpdated,
                                callOf(CallKind::kUpdate),
                                bad(CallKind::kUpdate, test.http, test.outcome));
    EXPECT_EQ(ledger.session, test.session) << test.http << " " << outcomeName(test.outcome);
    EXPECT_TRUE(ledger.needsEmpty);
    EXPECT_NE(ledger.content, Content::kComplete);
  }
}

TEST(LedgerApply, AFailedFinishLeavesTheSessionToBeRead) {
  for (const Outcome outcome : {Outcome::kUnknown, Outcome::kRejected}) {
    const Ledger ledger = after(openLedger(),
                                Goal::kFinished,
                                callOf(CallKind::kFinish, true),
                                bad(CallKind::kFinish, 500, outcome));
    EXPECT_EQ(ledger.session, Session::kUnknown);
    EXPECT_EQ(ledger.finishUnknown, outcome == Outcome::kUnknown);
  }
}

TEST(LedgerApply, ASilentEngineMayHaveLostItsSession) {
  for (std::size_t i = 0; i < kCallKindCount; ++i) {
    const auto kind = static_cast<CallKind>(i);
    for (const Outcome outcome : {Outcome::kNotSent, Outcome::kUnknown}) {
      const Ledger ledger = after(openLedger(), Goal::kClean, callOf(kind), bad(kind, 0, outcome));
      EXPECT_EQ(ledger.session, Session::kUnknown) << callName(kind);
    }
  }
}

TEST(LedgerApply, WhatAFailureSaysAboutTheEngine) {
  const auto why = [](Code code) { return Status(code, "it failed", Outcome::kUnknown); };
  Ledger ledger = openLedger();
  EXPECT_EQ(faultOf(ledger, Status(), false), Fault::kNone);
  EXPECT_EQ(faultOf(ledger, why(Code::kUnavailable), false), Fault::kFailed) << "it answered";
  EXPECT_EQ(faultOf(ledger, why(Code::kDeadlineExceeded), false), Fault::kFailed);
  EXPECT_EQ(faultOf(ledger, why(Code::kInvalidArgument), false), Fault::kUnfit);
  EXPECT_EQ(faultOf(ledger, why(Code::kFailedPrecondition), false), Fault::kUnfit);
  ledger.silent = true;
  EXPECT_EQ(faultOf(ledger, why(Code::kUnavailable), false), Fault::kUnfit) << "nobody is there";
  EXPECT_EQ(faultOf(ledger, why(Code::kDeadlineExceeded), false), Fault::kFailed) << "it is slow";
  EXPECT_EQ(faultOf(ledger, why(Code::kUnavailable), true), Fault::kFailed) << "we ended it";
  ledger.reach = Reach::kLost;
  EXPECT_EQ(faultOf(ledger, why(Code::kUnavailable), true), Fault::kLost);
}

TEST(LedgerApply, AGoodFinishIsNoProof) {
  const Ledger ledger = after(
      openLedger(), Goal::kFinished, callOf(CallKind::kFinish, true), good(CallKind::kFinish));
  EXPECT_EQ(ledger.session, Session::kClosed);
  EXPECT_FALSE(ledger.proved);
  EXPECT_EQ(ledger.label, Label::kUnknown);
}

TEST(LedgerApply, OnlyTheVerifyingReadProves) {
  Reply reply = good(CallKind::kReadVersion);
  reply.text = "v2";
  for (const Goal goal : kAllGoals) {
    const Ledger ledger = after(openLedger(), goal, callOf(CallKind::kReadVersion), reply);
    EXPECT_EQ(ledger.proved, goal == Goal::kVerified || goal == Goal::kResumed) << goalName(goal);
    EXPECT_EQ(ledger.label, Label::kPushed);
  }
  reply.text = "v2 ";
  EXPECT_FALSE(after(openLedger(), Goal::kVerified, callOf(CallKind::kReadVersion), reply).proved);
}

TEST(LedgerApply, OnlyTheVerifyingReadSaysThatItIsStillPaused) {
  Reply reply = good(CallKind::kReadPaused);
  reply.flag = true;
  for (const Goal goal : kAllGoals) {
    const Ledger ledger = after(pausedLedger(), goal, callOf(CallKind::kReadPaused), reply);
    EXPECT_EQ(ledger.pausedChecked, goal == Goal::kVerified) << goalName(goal);
  }
}

TEST(LedgerApply, ASecondAttemptKnowsNeitherLabelNorPause) {
  Ledger ledger = pausedLedger();
  ledger.label = Label::kOther;
  ledger.proved = true;
  ledger.finishUnknown = true;
  ledger.updateSent = true;
  ledger.flushed = true;
  ledger.startSent = true;
  const Ledger next = ledger.forNextAttempt();
  EXPECT_EQ(next.label, Label::kUnknown);
  EXPECT_EQ(next.paused, Paused::kUnknown);
  EXPECT_FALSE(next.pauseSent || next.proved || next.finishUnknown || next.updateSent ||
               next.flushed);
  EXPECT_TRUE(next.startSent) << "P3 looks at the whole push";
  EXPECT_TRUE(next.pausedByUs);
}

TEST(LedgerApply, ANewPushKeepsOnlyWhatAnEngineKeeps) {
  Ledger ledger = openLedger();
  ledger.needsEmpty = true;
  ledger.channel = ChannelState::kDead;
  ledger.error = Status(Code::kUnavailable, "x");
  const Ledger next = ledger.forNextPush();
  EXPECT_TRUE(next.needsEmpty);
  EXPECT_EQ(next.channel, ChannelState::kDead);
  EXPECT_EQ(next.session, Session::kUnknown);
  EXPECT_EQ(next.reach, Reach::kUnknown);
  EXPECT_TRUE(next.leftPaused);
  EXPECT_FALSE(next.startSent || next.pausedByUs || next.proved || next.identified);
  EXPECT_TRUE(next.error.ok());
}

TEST(LedgerApply, AnUnansweredPauseCountsAsOurs) {
  Ledger ledger = pausedLedger();
  ledger.pausedByUs = false;
  ledger.pauseSent = false;
  EXPECT_TRUE(after(ledger,
                    Goal::kPaused,
                    callOf(CallKind::kPause),
                    bad(CallKind::kPause, 0, Outcome::kUnknown))
                  .pausedByUs);
  EXPECT_FALSE(after(ledger,
                     Goal::kPaused,
                     callOf(CallKind::kPause),
                     bad(CallKind::kPause, 0, Outcome::kNotSent))
                   .pausedByUs);
}

TEST(LedgerApply, TheEmptySessionClearsWhatWasLeft) {
  Ledger ledger = pausedLedger();
  ledger.needsEmpty = true;
  ledger = after(ledger, Goal::kClean, callOf(CallKind::kStart), good(CallKind::kStart));
  EXPECT_TRUE(ledger.emptyOpen);
  ledger = after(ledger, Goal::kClean, callOf(CallKind::kFinish), good(CallKind::kFinish));
  EXPECT_FALSE(ledger.needsEmpty);
  EXPECT_EQ(ledger.session, Session::kClosed);
}

// P15: on 0.22 the close of the interrupted session is itself the empty one; later it is not.
TEST(LedgerApply, ClosingAnInterruptedSessionIsEnoughOnlyWhereAFailedUpdateKeepsIt) {
  for (const bool closes : {true, false}) {
    Ledger ledger = openLedger();
    ledger.identity = anEngine(closes);
    ledger.needsEmpty = true;
    ledger = after(ledger, Goal::kClean, callOf(CallKind::kFinish), good(CallKind::kFinish));
    EXPECT_EQ(ledger.needsEmpty, closes);
  }
}

TEST(LedgerApply, AMarkerWithoutAnswerKeepsTheOldLabelForThePutBack) {
  Ledger ledger = pausedLedger();
  ledger.label = Label::kPushed;
  ledger.labelText = "v2";
  Call call = callOf(CallKind::kSetVersion);
  call.version = "pushrod-job-1";
  const Ledger unclear =
      after(ledger, Goal::kClean, call, bad(CallKind::kSetVersion, 0, Outcome::kUnknown));
  EXPECT_EQ(unclear.oldLabel, "v2");
  EXPECT_EQ(unclear.label, Label::kUnknown);
  const Ledger rejected =
      after(ledger, Goal::kClean, call, bad(CallKind::kSetVersion, 400, Outcome::kRejected));
  EXPECT_EQ(rejected.oldLabel, "");
  EXPECT_EQ(rejected.label, Label::kPushed);
}

// P5: what an engine was at its last good push is what it must still be.
TEST(LedgerApply, AnEngineOfAnotherSizeOrModelIsRefused) {
  struct Case {
    int workers;
    const char* model;
    bool same;
  };

  EngineIdentity before = *anEngine();
  before.worldSize = 2;
  PushFacts facts = theFacts();
  facts.expected = std::make_shared<const EngineIdentity>(before);
  for (const Case& test :
       {Case{2, "m", true}, {4, "m", false}, {1, "m", false}, {2, "other", false}, {2, "", true}}) {
    EngineIdentity now = before;
    now.worldSize = test.workers;
    now.model = test.model;
    Reply reply = good(CallKind::kIdentify);
    reply.identity = std::make_shared<const EngineIdentity>(now);
    const Ledger ledger =
        apply(Ledger(), Goal::kIdentified, callOf(CallKind::kIdentify), reply, facts);
    const Next next = nextCall(ledger, Goal::kIdentified, facts, &reply);
    EXPECT_EQ(next.kind, test.same ? Next::Kind::kCall : Next::Kind::kFailed) << test.model;
    if (!test.same) {
      EXPECT_EQ(next.status.code(), Code::kFailedPrecondition);
      EXPECT_EQ(next.status.outcome(), Outcome::kRejected);
    }
  }
}

// P19: what a session that failed left in the caches outlives the repair.
TEST(LedgerApply, CachesAreResetAfterAFailureAlsoWherePushFlushIsOff) {
  PushFacts facts = theFacts();
  facts.flush = false;
  const auto flushes = [&facts](const Ledger& ledger) {
    return nextCall(ledger, Goal::kFlushed, facts, nullptr).kind == Next::Kind::kCall;
  };
  EXPECT_FALSE(flushes(pausedLedger())) << "nothing failed";
  EXPECT_FALSE(flushes(pausedLedger().forNextAttempt())) << "nothing was sent";
  Ledger failed = openLedger();
  EXPECT_TRUE(flushes(failed.forNextAttempt()));
  EXPECT_TRUE(flushes(failed.forNextPush()));
  EXPECT_TRUE(flushes(failed.forNextPush().forNextPush())) << "a push between that sent nothing";
  failed.proved = true;
  EXPECT_FALSE(flushes(failed.forNextPush()));
  Ledger reset = apply(openLedger().forNextAttempt(),
                       Goal::kFlushed,
                       callOf(CallKind::kFlush),
                       good(CallKind::kFlush),
                       facts);
  EXPECT_FALSE(flushes(reset));
  reset.proved = true;
  EXPECT_FALSE(flushes(reset.forNextPush()));
}

TEST(LedgerApply, AnUnclearResumeIsProvedAnew) {
  Ledger ledger = pausedLedger();
  ledger.proved = true;
  ledger.verifyRead = true;
  const Ledger now = after(ledger,
                           Goal::kResumed,
                           callOf(CallKind::kResume),
                           bad(CallKind::kResume, 0, Outcome::kUnknown));
  EXPECT_FALSE(now.proved);
  EXPECT_EQ(now.paused, Paused::kUnknown);
  EXPECT_TRUE(now.resumeAsked);
}

}  // namespace
}  // namespace pushrod::orchestrator
