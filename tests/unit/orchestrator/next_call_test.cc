// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/orchestrator/ledger_world.h"

namespace pushrod::orchestrator {
namespace {

TEST(NextCall, AFirstPushAsksInThisOrder) {
  Ledger ledger;
  TrueEngine engine;
  engine.paused = false;
  const PushFacts facts = theFacts();
  EXPECT_EQ(wayTo(Goal::kIdentified, ledger, engine, facts),
            (Calls{CallKind::kIdentify,
                   CallKind::kMeasureLag,
                   CallKind::kReadSession,
                   CallKind::kReadPaused,
                   CallKind::kReadVersion}));
  EXPECT_EQ(wayTo(Goal::kPaused, ledger, engine, facts),
            (Calls{CallKind::kPause, CallKind::kReadPaused}));
  EXPECT_EQ(wayTo(Goal::kClean, ledger, engine, facts),
            (Calls{CallKind::kStart, CallKind::kFinish}))
      << "the empty session of a first push (P15)";
  EXPECT_EQ(wayTo(Goal::kChannelled, ledger, engine, facts),
            (Calls{CallKind::kShutdown, CallKind::kInit}));
  EXPECT_EQ(wayTo(Goal::kStarted, ledger, engine, facts), (Calls{CallKind::kStart}));
  EXPECT_EQ(wayTo(Goal::kUpdated, ledger, engine, facts), (Calls{CallKind::kUpdate}));
  EXPECT_EQ(wayTo(Goal::kFinished, ledger, engine, facts), (Calls{CallKind::kFinish}));
  EXPECT_EQ(wayTo(Goal::kFlushed, ledger, engine, facts), (Calls{CallKind::kFlush}));
  EXPECT_EQ(wayTo(Goal::kVerified, ledger, engine, facts),
            (Calls{CallKind::kReadVersion, CallKind::kReadPaused}));
  EXPECT_EQ(wayTo(Goal::kResumed, ledger, engine, facts),
            (Calls{CallKind::kReadVersion, CallKind::kResume}));
}

TEST(NextCall, ChunksAreToldOneByOneAsTheyAreReady) {
  PushFacts facts = chunkFacts(3);
  Ledger ledger = pausedLedger();
  TrueEngine engine;
  wayTo(Goal::kStarted, ledger, engine, facts);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(nextCall(ledger, Goal::kUpdated, facts, nullptr).kind, Next::Kind::kHold) << i;
    facts.chunksReady = i + 1;
    const Next next = nextCall(ledger, Goal::kUpdated, facts, nullptr);
    ASSERT_EQ(next.kind, Next::Kind::kCall) << i;
    EXPECT_EQ(next.call.kind, CallKind::kUpdate);
    EXPECT_EQ(*next.call.body, "chunk " + std::to_string(i));
    EXPECT_NE(ledger.content, Content::kComplete) << i;
    ledger = apply(std::move(ledger), Goal::kUpdated, next.call, good(CallKind::kUpdate), facts);
  }
  EXPECT_EQ(ledger.content, Content::kComplete);
  EXPECT_EQ(nextCall(ledger, Goal::kUpdated, facts, nullptr).kind, Next::Kind::kReached);
}

TEST(NextCall, WhereOtherSourcesListenIsWaitedForBeforeAnInit) {
  PushFacts facts = theFacts();
  facts.initBody = nullptr;
  facts.initComes = true;
  Ledger ledger = pausedLedger();
  ledger.channel = ChannelState::kNone;
  EXPECT_EQ(nextCall(ledger, Goal::kChannelled, facts, nullptr).kind, Next::Kind::kHold);
  facts.initComes = false;
  facts.initBody = theFacts().initBody;
  EXPECT_EQ(nextCall(ledger, Goal::kChannelled, facts, nullptr).call.kind, CallKind::kInit);
}

TEST(NextCall, ARefusedChunkEndsTheGoalAndTheResendBeginsAnew) {
  PushFacts facts = chunkFacts(3);
  facts.chunksReady = 3;
  Ledger ledger = pausedLedger();
  TrueEngine engine;
  wayTo(Goal::kStarted, ledger, engine, facts);
  Call update;
  update.kind = CallKind::kUpdate;
  ledger = apply(std::move(ledger), Goal::kUpdated, update, good(CallKind::kUpdate), facts);
  const Reply refused = bad(CallKind::kUpdate, 500, Outcome::kUnknown);
  ledger = apply(std::move(ledger), Goal::kUpdated, update, refused, facts);
  EXPECT_EQ(nextCall(ledger, Goal::kUpdated, facts, &refused).kind, Next::Kind::kFailed);
  EXPECT_TRUE(ledger.needsEmpty);
  engine.session = false;
  ledger = ledger.forNextAttempt();
  facts.chunksReady = 1;
  EXPECT_EQ(wayTo(Goal::kClean, ledger, engine, facts),
            (Calls{CallKind::kReadPaused,
                   CallKind::kReadSession,
                   CallKind::kReadVersion,
                   CallKind::kStart,
                   CallKind::kFinish}));
  wayTo(Goal::kStarted, ledger, engine, facts);
  EXPECT_EQ(*nextCall(ledger, Goal::kUpdated, facts, nullptr).call.body, "chunk 0");
}

TEST(NextCall, AChunkThatNoSegmentWasFoundForHasTouchedTheEngine) {
  PushFacts facts = chunkFacts(1);
  facts.chunksReady = 1;
  Ledger ledger = pausedLedger();
  TrueEngine engine;
  wayTo(Goal::kStarted, ledger, engine, facts);
  Call update;
  update.kind = CallKind::kUpdate;
  ledger = apply(std::move(ledger),
                 Goal::kUpdated,
                 update,
                 bad(CallKind::kUpdate, 500, Outcome::kRejected),
                 facts);
  EXPECT_EQ(ledger.session, Session::kUnknown) << "read, not guessed";
  EXPECT_TRUE(ledger.touched) << "its parameters are placeholders";
}

TEST(NextCall, TheVersionAlreadyReportedIsMarkedBeforeAnyStart) {
  Ledger ledger = pausedLedger();
  ledger.label = Label::kPushed;
  ledger.labelText = "v2";
  ledger.needsEmpty = true;
  TrueEngine engine;
  engine.label = "v2";
  EXPECT_EQ(wayTo(Goal::kClean, ledger, engine, theFacts()),
            (Calls{CallKind::kSetVersion, CallKind::kStart, CallKind::kFinish}));
  EXPECT_EQ(engine.label, "pushrod-job-1");
  EXPECT_EQ(ledger.oldLabel, "v2");
}

TEST(NextCall, MarkerModes) {
  PushFacts facts = theFacts();
  Ledger ledger = pausedLedger();
  facts.markerMode = VersionMarker::kAlways;
  EXPECT_EQ(nextCall(ledger, Goal::kClean, facts, nullptr).call.kind, CallKind::kSetVersion);
  ledger.label = Label::kMarker;
  EXPECT_EQ(nextCall(ledger, Goal::kClean, facts, nullptr).kind, Next::Kind::kReached);
  facts.markerMode = VersionMarker::kNever;
  ledger.label = Label::kPushed;
  const Next next = nextCall(ledger, Goal::kClean, facts, nullptr);
  EXPECT_EQ(next.kind, Next::Kind::kFailed);
  EXPECT_EQ(next.status.code(), Code::kFailedPrecondition);
}

// The engine restarted between two attempts: it runs, and knows nothing of the push.
TEST(NextCall, TheSecondAttemptPausesARestartedEngineAgain) {
  Ledger ledger = pausedLedger();
  ledger.startSent = true;
  ledger.session = Session::kUnknown;
  ledger.needsEmpty = true;
  ledger = ledger.forNextAttempt();
  TrueEngine engine;
  engine.paused = false;
  engine.label = "default";
  EXPECT_EQ(wayTo(Goal::kClean, ledger, engine, theFacts()),
            (Calls{CallKind::kReadPaused,
                   CallKind::kPause,
                   CallKind::kReadPaused,
                   CallKind::kReadSession,
                   CallKind::kReadVersion,
                   CallKind::kStart,
                   CallKind::kFinish}));
}

// The first attempt's finish was done, so its label would prove the second attempt's content.
TEST(NextCall, TheSecondAttemptMarksWhatTheFirstPublished) {
  Ledger ledger = pausedLedger();
  const PushFacts facts = theFacts();
  Call finish;
  finish.kind = CallKind::kFinish;
  finish.hasVersion = true;
  finish.version = facts.version;
  ledger.session = Session::kOpen;
  ledger = apply(ledger, Goal::kFinished, finish, good(CallKind::kFinish), facts);
  ledger = ledger.forNextAttempt();
  TrueEngine engine;
  engine.label = facts.version;
  const Calls calls = wayTo(Goal::kClean, ledger, engine, facts);
  EXPECT_EQ(engine.label, facts.marker);
  EXPECT_EQ(calls.back(), CallKind::kSetVersion);
}

TEST(NextCall, AFinishWithoutAnswerIsResolvedByTheLabel) {
  const PushFacts facts = theFacts();
  for (const bool done : {true, false}) {
    Ledger ledger = pausedLedger();
    ledger.session = Session::kOpen;
    Call finish = nextCall(ledger, Goal::kFinished, facts, nullptr).call;
    const Reply unclear = bad(CallKind::kFinish, 0, Outcome::kUnknown);
    ledger = apply(ledger, Goal::kFinished, finish, unclear, facts);
    const Next read = nextCall(ledger, Goal::kFinished, facts, &unclear);
    ASSERT_EQ(read.call.kind, CallKind::kReadVersion);
    Reply label = good(CallKind::kReadVersion);
    label.text = done ? facts.version : "v1";
    ledger = apply(ledger, Goal::kFinished, read.call, label, facts);
    const Next end = nextCall(ledger, Goal::kFinished, facts, &label);
    EXPECT_EQ(end.kind, done ? Next::Kind::kReached : Next::Kind::kFailed);
    EXPECT_FALSE(ledger.proved) << "verify reads again, in its own phase";
  }
}

TEST(NextCall, SomebodyElsesResumeIsSeenInVerify) {
  Ledger ledger = pausedLedger();
  ledger.label = Label::kUnknown;
  const PushFacts facts = theFacts();
  TrueEngine engine;
  engine.label = facts.version;
  engine.paused = false;
  std::optional<Reply> last;
  Next next = nextCall(ledger, Goal::kVerified, facts, nullptr);
  while (next.kind == Next::Kind::kCall) {
    last = engine.answer(next.call);
    ledger = apply(ledger, Goal::kVerified, next.call, *last, facts);
    next = nextCall(ledger, Goal::kVerified, facts, &*last);
  }
  EXPECT_EQ(next.kind, Next::Kind::kFailed);
  EXPECT_EQ(next.status.code(), Code::kFailedPrecondition);
}

TEST(NextCall, WithoutAVersionRouteThePushIsRefusedUnlessNothingIsToBeProved) {
  EngineIdentity identity = *anEngine();
  identity.features.hasVersion = false;
  Ledger ledger = pausedLedger();
  ledger.identity = std::make_shared<const EngineIdentity>(identity);
  PushFacts facts = theFacts();
  EXPECT_EQ(nextCall(ledger, Goal::kIdentified, facts, nullptr).kind, Next::Kind::kFailed);
  facts.verify = false;
  EXPECT_EQ(nextCall(ledger, Goal::kIdentified, facts, nullptr).kind, Next::Kind::kReached);
}

TEST(NextCall, ThePutBackRestoresLabelThenRuns) {
  Ledger ledger = pausedLedger();
  ledger.label = Label::kMarker;
  ledger.oldLabel = "v1";
  TrueEngine engine;
  engine.label = "pushrod-job-1";
  EXPECT_EQ(wayTo(Goal::kClosed, ledger, engine, theFacts()),
            (Calls{CallKind::kSetVersion, CallKind::kResume}));
  EXPECT_EQ(engine.label, "v1");
}

TEST(NextCall, WhatASessionOfAnEarlierRunLeftIsNotPutBack) {
  Ledger ledger = pausedLedger();
  ledger.session = Session::kOpen;
  const PushFacts facts = theFacts();
  TrueEngine engine;
  Call close;
  close.kind = CallKind::kFinish;
  ledger = apply(ledger, Goal::kClean, close, engine.answer(close), facts);
  ASSERT_EQ(ledger.session, Session::kClosed);
  ledger.oldLabel = "v1";
  ledger.label = Label::kMarker;
  engine.label = "pushrod-job-1";
  EXPECT_EQ(wayTo(Goal::kClosed, ledger, engine, facts), (Calls{CallKind::kSetVersion}))
      << "its label goes back, but nobody knows what it would generate with (P39)";
}

// P39: somebody resumed what an earlier push of this job left paused with weights of nobody's.
TEST(NextCall, AnEngineThatAPushLeftPausedIsNotPutBack) {
  Ledger ledger = pausedLedger();
  EXPECT_EQ(nextCall(ledger, Goal::kClosed, theFacts(), nullptr).call.kind, CallKind::kResume);
  ledger.leftPaused = true;
  EXPECT_EQ(nextCall(ledger, Goal::kClosed, theFacts(), nullptr).kind, Next::Kind::kReached);
}

TEST(NextCall, AnEngineFoundAsleepIsNotPutBack) {
  Ledger ledger = pausedLedger();
  EngineIdentity identity = *anEngine();
  identity.asleep = true;
  ledger.identity = std::make_shared<const EngineIdentity>(identity);
  EXPECT_EQ(nextCall(ledger, Goal::kClosed, theFacts(), nullptr).kind, Next::Kind::kReached);
}

Ledger sleepingLedger() {
  Ledger ledger = pausedLedger();
  EngineIdentity identity = *anEngine();
  identity.asleep = true;
  ledger.identity = std::make_shared<const EngineIdentity>(identity);
  ledger.paused = Paused::kYes;
  ledger.pauseSent = false;
  ledger.pausedByUs = false;
  return ledger;
}

TEST(NextCall, ASleepingEngineIsRefusedByTheKeysName) {
  PushFacts facts = theFacts();
  for (const bool leftPaused : {false, true}) {
    Ledger ledger = sleepingLedger();
    ledger.leftPaused = leftPaused;
    const Next next = nextCall(ledger, Goal::kIdentified, facts, nullptr);
    EXPECT_EQ(next.kind, Next::Kind::kFailed);
    EXPECT_NE(next.status.message().find("engines.wake"), std::string::npos);
    facts.wake = Wake::kWeights;
    EXPECT_EQ(nextCall(ledger, Goal::kIdentified, facts, nullptr).kind, Next::Kind::kReached);
    facts.wake = Wake::kFalse;
  }
}

TEST(NextCall, ASleepingEngineIsWokenOnceItIsPaused) {
  PushFacts facts = theFacts();
  Ledger ledger = sleepingLedger();
  TrueEngine engine;
  facts.wake = Wake::kWeights;
  EXPECT_EQ(
      wayTo(Goal::kPaused, ledger, engine, facts),
      (Calls{CallKind::kPause, CallKind::kReadPaused, CallKind::kWake, CallKind::kReadPaused}));
  EXPECT_TRUE(ledger.weightsWoken && !ledger.cacheWoken);
  ledger.proved = true;
  EXPECT_EQ(wayTo(Goal::kResumed, ledger, engine, facts), (Calls{}))
      << "its cache sleeps still: generation is for whoever wakes that";

  facts.wake = Wake::kAll;
  ledger = sleepingLedger();
  EXPECT_EQ(wayTo(Goal::kPaused, ledger, engine, facts),
            (Calls{CallKind::kPause,
                   CallKind::kReadPaused,
                   CallKind::kWake,
                   CallKind::kReadPaused,
                   CallKind::kWake,
                   CallKind::kReadPaused}));
  EXPECT_TRUE(ledger.weightsWoken && ledger.cacheWoken);
  ledger.proved = true;
  engine.label = facts.version;
  EXPECT_EQ(wayTo(Goal::kResumed, ledger, engine, facts),
            (Calls{CallKind::kReadVersion, CallKind::kResume}));
}

TEST(NextCall, AnEngineThatWakingResumedIsPausedAgain) {
  PushFacts facts = theFacts();
  facts.wake = Wake::kWeights;
  Ledger ledger = sleepingLedger();
  TrueEngine engine;
  engine.wakingResumes = true;
  EXPECT_EQ(wayTo(Goal::kPaused, ledger, engine, facts),
            (Calls{CallKind::kPause,
                   CallKind::kReadPaused,
                   CallKind::kWake,
                   CallKind::kReadPaused,
                   CallKind::kPause,
                   CallKind::kReadPaused}));
  EXPECT_TRUE(engine.paused);
}

TEST(NextCall, AnEngineAwakeIsNotWoken) {
  PushFacts facts = theFacts();
  facts.wake = Wake::kAll;
  Ledger ledger = pausedLedger();
  ledger.pauseSent = false;
  TrueEngine engine;
  EXPECT_EQ(wayTo(Goal::kPaused, ledger, engine, facts),
            (Calls{CallKind::kPause, CallKind::kReadPaused}));
}

TEST(NextCall, AStartOnAnyEngineForbidsThePutBack) {
  Ledger ledger = pausedLedger();
  PushFacts facts = theFacts();
  facts.anyStartSent = true;
  EXPECT_EQ(nextCall(ledger, Goal::kClosed, facts, nullptr).kind, Next::Kind::kReached);
}

}  // namespace
}  // namespace pushrod::orchestrator
