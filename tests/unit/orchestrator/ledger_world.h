// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "orchestrator/ledger/ledger.h"
#include "orchestrator/ledger/next_call.h"

namespace pushrod::orchestrator {

inline constexpr Goal kAllGoals[] = {Goal::kIdentified,
                                     Goal::kPaused,
                                     Goal::kClean,
                                     Goal::kChannelled,
                                     Goal::kStarted,
                                     Goal::kUpdated,
                                     Goal::kFinished,
                                     Goal::kFlushed,
                                     Goal::kVerified,
                                     Goal::kResumed,
                                     Goal::kClosed};

inline std::shared_ptr<const EngineIdentity> anEngine(bool closes = true) {
  EngineIdentity identity;
  identity.release = "0.32.0";
  identity.features.profile = "0.32";
  identity.features.hasShutdown = true;
  identity.features.failedUpdateCloses = closes;
  identity.model = "m";
  return std::make_shared<const EngineIdentity>(identity);
}

inline PushFacts theFacts() {
  PushFacts facts;
  facts.version = "v2";
  facts.marker = "pushrod-job-1";
  facts.engine = "e1";
  facts.initBody = std::make_shared<const std::string>("{}");
  facts.updateBody = facts.initBody;
  return facts;
}

/// As theFacts, for a stream of `chunks` updates.
inline PushFacts chunkFacts(std::size_t chunks) {
  PushFacts facts = theFacts();
  std::vector<std::shared_ptr<const std::string>> bodies;
  for (std::size_t i = 0; i < chunks; ++i) {
    bodies.push_back(std::make_shared<const std::string>("chunk " + std::to_string(i)));
  }
  facts.chunkBodies =
      std::make_shared<const std::vector<std::shared_ptr<const std::string>>>(std::move(bodies));
  return facts;
}

/// A ledger as it stands when a push has come as far as pause.
inline Ledger pausedLedger() {
  Ledger ledger;
  ledger.identity = anEngine();
  ledger.reach = Reach::kUp;
  ledger.identified = true;
  ledger.lagMeasured = true;
  ledger.session = Session::kClosed;
  ledger.channel = ChannelState::kReady;
  ledger.paused = Paused::kYes;
  ledger.pauseSent = true;
  ledger.pausedByUs = true;
  ledger.label = Label::kOther;
  ledger.labelText = "v1";
  ledger.needsEmpty = false;
  return ledger;
}

inline Reply good(CallKind kind) {
  Reply reply;
  reply.kind = kind;
  reply.httpStatus = 200;
  return reply;
}

inline Reply bad(CallKind kind, int http, Outcome outcome) {
  Reply reply;
  reply.kind = kind;
  reply.httpStatus = http;
  reply.status = Status(Code::kUnavailable, "it failed", outcome);
  return reply;
}

/// A well-behaved engine, as far as its answers depend on what was asked before.
struct TrueEngine {
  bool session = false;
  bool paused = true;
  std::string label = "v1";
  bool wakingResumes = false;  ///< up to 0.23

  Reply answer(const Call& call) {
    Reply reply = good(call.kind);
    switch (call.kind) {
      case CallKind::kIdentify:
        reply.identity = anEngine();
        break;
      case CallKind::kReadPaused:
        reply.flag = paused;
        break;
      case CallKind::kReadSession:
        reply.flag = session;
        break;
      case CallKind::kReadVersion:
        reply.text = label;
        break;
      case CallKind::kPause:
        paused = true;
        break;
      case CallKind::kResume:
        paused = false;
        break;
      case CallKind::kSetVersion:
        label = call.version;
        break;
      case CallKind::kStart:
        session = true;
        break;
      case CallKind::kFinish:
        session = false;
        if (call.hasVersion) {
          label = call.version;
        }
        break;
      case CallKind::kWake:
        paused = paused && !wakingResumes;
        break;
      default:
        break;
    }
    return reply;
  }
};

/// Every combination of what the ledger's members can say, with `visit` called for each.
void forEachLedger(const std::function<void(const Ledger&, PushFacts)>& visit);

/// The calls that bring `ledger` to `goal` at a well-behaved engine.
inline std::vector<CallKind> wayTo(Goal goal,
                                   Ledger& ledger,
                                   TrueEngine& engine,
                                   const PushFacts& facts) {
  std::vector<CallKind> calls;
  std::optional<Reply> last;
  Next next = nextCall(ledger, goal, facts, nullptr);
  while ((next.kind == Next::Kind::kCall || next.kind == Next::Kind::kWait) && calls.size() < 20) {
    calls.push_back(next.call.kind);
    last = engine.answer(next.call);
    ledger = apply(std::move(ledger), goal, next.call, *last, facts);
    next = nextCall(ledger, goal, facts, &*last);
  }
  EXPECT_EQ(next.kind, Next::Kind::kReached) << goalName(goal) << ": " << next.status.toString();
  return calls;
}

using Calls = std::vector<CallKind>;

}  // namespace pushrod::orchestrator
