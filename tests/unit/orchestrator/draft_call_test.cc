// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/unit/orchestrator/ledger_world.h"

namespace pushrod::orchestrator {
namespace {

/// The facts of a push with a draft model, in the target's session or in the draft's.
PushFacts pairFacts(bool draft) {
  PushFacts facts = theFacts();
  facts.withDraft = true;
  facts.draft = draft;
  return facts;
}

TEST(DraftCall, TheDraftFollowsTheTargetAndOnlyItsFinishHasTheVersion) {
  Ledger ledger = pausedLedger();
  ledger.needsEmptyDraft = false;
  TrueEngine engine;
  for (const bool draft : {false, true}) {
    const PushFacts facts = pairFacts(draft);
    EXPECT_EQ(nextCall(ledger, Goal::kStarted, facts, nullptr).call.draft, draft);
    EXPECT_EQ(wayTo(Goal::kStarted, ledger, engine, facts), (Calls{CallKind::kStart}));
    EXPECT_EQ(wayTo(Goal::kUpdated, ledger, engine, facts), (Calls{CallKind::kUpdate}));
    const Call finish = nextCall(ledger, Goal::kFinished, facts, nullptr).call;
    EXPECT_EQ(finish.hasVersion, draft);
    EXPECT_EQ(finish.version, draft ? "v2" : "");
    EXPECT_EQ(wayTo(Goal::kFinished, ledger, engine, facts), (Calls{CallKind::kFinish}));
    EXPECT_EQ(ledger.content, Content::kComplete);
    EXPECT_EQ(engine.label, draft ? "v2" : "v1");
  }
}

TEST(DraftCall, AnInterruptedDraftGetsAnEmptySessionOfItsOwn) {
  const PushFacts facts = pairFacts(true);
  Ledger ledger = pausedLedger();
  ledger.needsEmptyDraft = false;
  TrueEngine engine;
  wayTo(Goal::kStarted, ledger, engine, facts);
  Call update;
  update.kind = CallKind::kUpdate;
  ledger = apply(std::move(ledger),
                 Goal::kUpdated,
                 update,
                 bad(CallKind::kUpdate, 500, Outcome::kUnknown),
                 facts);
  EXPECT_TRUE(ledger.needsEmptyDraft);
  EXPECT_FALSE(ledger.needsEmpty);
  ledger = ledger.forNextAttempt();
  ledger.paused = Paused::kYes;
  ledger.session = Session::kClosed;
  ledger.label = Label::kOther;
  const Next next = nextCall(ledger, Goal::kClean, pairFacts(false), nullptr);
  EXPECT_EQ(next.call.kind, CallKind::kStart);
  EXPECT_TRUE(next.call.draft);
  EXPECT_TRUE(ledger.forNextPush().needsEmptyDraft);
}

TEST(DraftCall, ATargetAloneIsRefusedWhileTheDraftMayBeHalfLoaded) {
  const PushFacts facts = pairFacts(true);
  Ledger ledger = pausedLedger();
  ledger.needsEmptyDraft = false;
  TrueEngine engine;
  wayTo(Goal::kStarted, ledger, engine, facts);
  Ledger next = ledger.forNextPush();
  next.identified = true;
  next.reach = Reach::kUp;
  const Next refused = nextCall(next, Goal::kIdentified, theFacts(), nullptr);
  EXPECT_EQ(refused.kind, Next::Kind::kFailed);
  EXPECT_NE(refused.status.message().find("draft"), std::string::npos);
  next.identity = anEngine();
  wayTo(Goal::kUpdated, ledger, engine, facts);
  wayTo(Goal::kFinished, ledger, engine, facts);
  EXPECT_FALSE(ledger.forNextPush().draftBroken);
}

TEST(DraftCall, AReleaseWithoutDraftSessionsIsRefusedAtConnect) {
  Ledger ledger = pausedLedger();
  const Next next = nextCall(ledger, Goal::kIdentified, pairFacts(false), nullptr);
  EXPECT_EQ(next.kind, Next::Kind::kFailed);
  EXPECT_NE(next.status.message().find("draft"), std::string::npos);
  EXPECT_EQ(nextCall(ledger, Goal::kIdentified, theFacts(), nullptr).kind, Next::Kind::kReached);
}

}  // namespace
}  // namespace pushrod::orchestrator
