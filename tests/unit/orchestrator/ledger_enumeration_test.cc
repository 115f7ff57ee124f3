// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/unit/orchestrator/ledger_world.h"

namespace pushrod::orchestrator {

void forEachLedger(const std::function<void(const Ledger&, PushFacts)>& visit) {
  constexpr unsigned kFlags = 7;
  const PushFacts base = theFacts();
  for (const Session session : {Session::kUnknown, Session::kClosed, Session::kOpen}) {
    for (const Label label : {Label::kUnknown, Label::kOther, Label::kMarker, Label::kPushed}) {
      for (const Paused paused : {Paused::kUnknown, Paused::kNo, Paused::kYes}) {
        for (unsigned flags = 0; flags < (1U << kFlags); ++flags) {
          const auto flag = [flags](unsigned bit) { return (flags >> bit & 1U) != 0; };
          Ledger ledger = pausedLedger();
          ledger.session = session;
          ledger.label = label;
          ledger.labelText = label == Label::kPushed   ? "v2"
                             : label == Label::kMarker ? "pushrod-job-1"
                                                       : "v1";
          ledger.oldLabel = label == Label::kMarker ? "v0" : "";
          ledger.paused = paused;
          ledger.pauseSent = paused == Paused::kYes;
          ledger.foundPaused = flag(0);
          ledger.pausedByUs = flag(1);
          ledger.needsEmpty = flag(2);
          ledger.startSent = flag(3);
          ledger.finishUnknown = flag(4);
          ledger.proved = flag(5);
          ledger.verifyRead = flag(4) || flag(5);
          ledger.updateSent = flag(3);
          ledger.content = flag(3) ? Content::kComplete : Content::kBegun;
          ledger.channel = flag(4) ? ChannelState::kDead : ChannelState::kReady;
          PushFacts facts = base;
          facts.anyStartSent = flag(3) || flag(6);
          visit(ledger, facts);
        }
      }
    }
  }
}

namespace {

std::string text(const Ledger& ledger, Goal goal, const Next& next) {
  return std::string(goalName(goal)) + " asks " + std::string(callName(next.call.kind)) +
         ", session " + std::to_string(static_cast<int>(ledger.session)) + ", label " +
         std::to_string(static_cast<int>(ledger.label)) + ", paused " +
         std::to_string(static_cast<int>(ledger.paused)) +
         (ledger.startSent ? ", start sent" : "") + (ledger.proved ? ", proved" : "");
}

/// What no ledger may ever lead to, whatever the goal.
void checkCall(const Ledger& ledger, Goal goal, const PushFacts& facts, const Next& next) {
  switch (next.call.kind) {
    case CallKind::kStart:
      EXPECT_EQ(ledger.session, Session::kClosed) << text(ledger, goal, next);
      EXPECT_TRUE(goal == Goal::kClean || goal == Goal::kStarted) << text(ledger, goal, next);
      break;
    case CallKind::kFinish:
      EXPECT_EQ(ledger.session, Session::kOpen) << text(ledger, goal, next);
      EXPECT_EQ(next.call.hasVersion, goal == Goal::kFinished) << text(ledger, goal, next);
      EXPECT_EQ(next.call.version, next.call.hasVersion ? facts.version : "");
      break;
    case CallKind::kResume:
      if (goal == Goal::kResumed) {
        EXPECT_TRUE(ledger.proved) << text(ledger, goal, next);
      } else {
        EXPECT_EQ(goal, Goal::kClosed) << text(ledger, goal, next);
        EXPECT_TRUE(ledger.pausedByUs && !ledger.foundPaused && !ledger.startSent &&
                    !facts.anyStartSent && ledger.session == Session::kClosed)
            << text(ledger, goal, next);
      }
      break;
    case CallKind::kUpdate:
      EXPECT_EQ(goal, Goal::kUpdated) << text(ledger, goal, next);
      break;
    case CallKind::kPause:
      EXPECT_TRUE(goal == Goal::kPaused || goal == Goal::kClean) << text(ledger, goal, next);
      break;
    default:
      break;
  }
}

bool canHold(const Ledger& ledger, Goal goal) {
  // The goals after start are only asked for once start was done in this attempt.
  switch (goal) {
    case Goal::kStarted:
      return ledger.session == Session::kClosed;
    case Goal::kUpdated:
    case Goal::kFinished:
      return ledger.session == Session::kOpen;
    default:
      return true;
  }
}

TEST(LedgerEnumeration, NoGoalEverAsksForWhatIsForbidden) {
  forEachLedger([](const Ledger& ledger, const PushFacts& facts) {
    for (const Goal goal : kAllGoals) {
      if (!canHold(ledger, goal)) {
        continue;
      }
      for (const bool asked : {false, true}) {
        Ledger now = ledger;
        now.resumeAsked = asked;
        if (asked && goal != Goal::kResumed) {
          continue;
        }
        const Next next = nextCall(now, goal, facts, nullptr);
        if (next.kind == Next::Kind::kCall || next.kind == Next::Kind::kWait) {
          checkCall(now, goal, facts, next);
        }
      }
    }
  });
}

TEST(LedgerEnumeration, EveryGoalSettlesWithinTwelveGoodAnswers) {
  forEachLedger([](const Ledger& ledger, const PushFacts& facts) {
    for (const Goal goal : kAllGoals) {
      if (!canHold(ledger, goal)) {
        continue;
      }
      // What the ledger does not know may be either way; what it knows is so.
      for (const bool otherwise : {false, true}) {
        TrueEngine engine;
        engine.session =
            ledger.session == Session::kUnknown ? otherwise : ledger.session == Session::kOpen;
        engine.paused =
            ledger.paused == Paused::kUnknown ? otherwise : ledger.paused == Paused::kYes;
        engine.label = ledger.label == Label::kUnknown && otherwise ? "v2" : ledger.labelText;
        Ledger now = ledger;
        std::optional<Reply> last;
        int calls = 0;
        Next next = nextCall(now, goal, facts, nullptr);
        while (next.kind == Next::Kind::kCall || next.kind == Next::Kind::kWait) {
          checkCall(now, goal, facts, next);
          ASSERT_LE(++calls, 12) << text(now, goal, next);
          last = engine.answer(next.call);
          now = apply(std::move(now), goal, next.call, *last, facts);
          next = nextCall(now, goal, facts, &*last);
        }
        if (goal == Goal::kClean && next.kind == Next::Kind::kReached) {
          ASSERT_FALSE(engine.session);
          ASSERT_TRUE(engine.paused);
          ASSERT_NE(engine.label, facts.version);
          ASSERT_FALSE(now.needsEmpty);
        }
        if (goal == Goal::kVerified && next.kind == Next::Kind::kReached) {
          ASSERT_TRUE(now.proved);
          ASSERT_TRUE(engine.paused);
        }
        if (goal == Goal::kClosed && (ledger.startSent || facts.anyStartSent)) {
          ASSERT_FALSE(engine.session);
        }
      }
    }
  });
}

// A call that failed without a usable answer is never followed by a start, and by a resume only
// after reads.
TEST(LedgerEnumeration, NothingIsRepeatedBlindlyAfterAFailure) {
  forEachLedger([](const Ledger& ledger, const PushFacts& facts) {
    for (const Goal goal : kAllGoals) {
      if (!canHold(ledger, goal)) {
        continue;
      }
      const Next first = nextCall(ledger, goal, facts, nullptr);
      if (first.kind != Next::Kind::kCall) {
        continue;
      }
      for (const Reply& reply : {bad(first.call.kind, 0, Outcome::kNotSent),
                                 bad(first.call.kind, 0, Outcome::kUnknown),
                                 bad(first.call.kind, 400, Outcome::kRejected),
                                 bad(first.call.kind, 500, Outcome::kUnknown)}) {
        const Ledger now = apply(ledger, goal, first.call, reply, facts);
        const Next next = nextCall(now, goal, facts, &reply);
        const bool asks = next.kind == Next::Kind::kCall || next.kind == Next::Kind::kWait;
        if (!asks) {
          continue;
        }
        const CallKind kind = next.call.kind;
        EXPECT_TRUE(kind == CallKind::kReadPaused || kind == CallKind::kReadVersion ||
                    kind == CallKind::kReadSession)
            << text(now, goal, next) << " after a failed " << callName(first.call.kind);
      }
    }
  });
}

// P1: whatever became of it, an engine that was left out is only read and closed.
TEST(LedgerEnumeration, ADroppedEngineIsOnlyClosed) {
  forEachLedger([](const Ledger& ledger, const PushFacts& facts) {
    const Ledger out = drop(ledger);
    EXPECT_TRUE(out.forNextPush().quarantined && !out.forNextPush().dropped);
    EXPECT_TRUE(out.forNextPush().needsEmpty);
    for (const Goal goal : kAllGoals) {
      Next next = nextCall(out, goal, facts, nullptr);
      if (goal != Goal::kClosed) {
        EXPECT_EQ(next.kind, Next::Kind::kFailed);
        continue;
      }
      TrueEngine engine;
      engine.session = ledger.session == Session::kOpen;
      Ledger now = out;
      for (int calls = 0; next.kind == Next::Kind::kCall; ++calls) {
        ASSERT_LE(calls, 4);
        const bool reads = next.call.kind == CallKind::kReadSession;
        EXPECT_TRUE(reads || (next.call.kind == CallKind::kFinish && !next.call.hasVersion))
            << text(now, goal, next);
        const Reply last = engine.answer(next.call);
        now = apply(std::move(now), goal, next.call, last, facts);
        next = nextCall(now, goal, facts, &last);
      }
      EXPECT_EQ(next.kind, Next::Kind::kReached);
      EXPECT_FALSE(engine.session && (ledger.startSent || facts.anyStartSent));
    }
  });
}

TEST(LedgerEnumeration, ALostEngineIsNeverAskedAgain) {
  forEachLedger([](const Ledger& ledger, const PushFacts& facts) {
    Ledger lost = ledger;
    lost.reach = Reach::kLost;
    for (const Goal goal : kAllGoals) {
      const Next next = nextCall(lost, goal, facts, nullptr);
      EXPECT_TRUE(next.kind == Next::Kind::kReached || next.kind == Next::Kind::kFailed);
      EXPECT_EQ(next.kind == Next::Kind::kReached, goal == Goal::kClosed);
    }
  });
}

}  // namespace
}  // namespace pushrod::orchestrator
