// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/fsm/rules.h"

namespace pushrod::orchestrator {

namespace {

bool go(const Event& event) {
  return event.verdict.decision == Decision::kGo && event.verdict.first.ok();
}

bool moreSteps(const PushState& state) {
  return state.stepIndex + 1 < state.passSteps().size();
}

bool mend(const PushState& state, const Event& event) {
  return go(event) && (state.gatherFailed || !event.verdict.digestsEqual);
}

bool stepEnds(const PushState& state) {
  const std::vector<std::uint64_t>& steps = state.passSteps();
  return state.stepIndex >= steps.size() || state.tensors >= steps[state.stepIndex];
}

void add(Actions& actions, ActionKind kind, Status status = {}) {
  actions.push_back(Action{kind, std::move(status)});
}

void callerAction(PushState& state, Actions& actions, ActionKind kind) {
  state.callerBusy = true;
  add(actions, kind);
}

/// Why something of ours is interrupted: the failure known so far.
Status reasonOf(const PushState& state, const Event& event) {
  if (!state.local.ok()) {
    return state.local;
  }
  return state.pending.ok() ? event.status : state.pending;
}

}  // namespace

namespace guard {

const Guard kOk{"ok", [](const PushState&, const Event& e) { return e.status.ok(); }};
const Guard kGo{"go", [](const PushState&, const Event& e) { return go(e); }};
const Guard kGoEqual{"go, digests equal", [](const PushState&, const Event& e) {
                       return go(e) && e.verdict.digestsEqual;
                     }};
const Guard kResend{"resend", [](const PushState&, const Event& e) {
                      return e.verdict.decision == Decision::kResend;
                    }};
const Guard kResendBusy{"resend, answers outstanding", [](const PushState& s, const Event& e) {
                          return s.goalBusy && e.verdict.decision == Decision::kResend;
                        }};
const Guard kFail{"fail", [](const PushState&, const Event& e) {
                    return e.verdict.decision != Decision::kResend && !go(e);
                  }};
const Guard kCanSend{"sender, nothing failed", [](const PushState& s, const Event& e) {
                       return (s.leader || s.packs) && s.local.ok() && e.status.ok() && !s.stopPass;
                     }};
const Guard kStepOpen{"step open",
                      [](const PushState& s, const Event&) { return !s.stopPass && !stepEnds(s); }};
const Guard kMustHold{"failed, answers outstanding", [](const PushState& s, const Event&) {
                        return s.goalBusy && !(s.local.ok() && s.pending.ok());
                      }};
const Guard kGoMoreSteps{"go, steps left",
                         [](const PushState& s, const Event& e) { return go(e) && moreSteps(s); }};
const Guard kGoDraft{"go, the draft comes",
                     [](const PushState& s, const Event& e) { return go(e) && s.draftComes(); }};
const Guard kGoalBusy{"answers outstanding",
                      [](const PushState& s, const Event&) { return s.goalBusy; }};
const Guard kCallerBusy{"caller busy",
                        [](const PushState& s, const Event&) { return s.callerBusy; }};
const Guard kOkGoalBusy{"ok, answers outstanding", [](const PushState& s, const Event& e) {
                          return s.goalBusy && e.status.ok();
                        }};
const Guard kGoUnequal{"go, digests differ", [](const PushState&, const Event& e) {
                         return go(e) && !e.verdict.digestsEqual;
                       }};
const Guard kPassOn{
    "not go, push.stop: pass, no source stopped",
    [](const PushState& s, const Event& e) { return s.stopAtEnd && !go(e) && !e.verdict.stopped; }};
const Guard kPassOver{"passing on, not stopped",
                      [](const PushState& s, const Event&) { return s.passingOn && !s.stopPass; }};
const Guard kPassingOn{"passing on", [](const PushState& s, const Event&) { return s.passingOn; }};
const Guard kGoMend{"go, a gather failed", mend};
const Guard kOkStopped{
    "ok, stopped", [](const PushState& s, const Event& e) { return s.stopPass && e.status.ok(); }};
const Guard kGoStopped{"go, stopped",
                       [](const PushState& s, const Event& e) { return s.stopPass && go(e); }};
const Guard kGoEqualStopped{"go, digests equal, stopped", [](const PushState& s, const Event& e) {
                              return s.stopPass && go(e) && e.verdict.digestsEqual;
                            }};
const Guard kGoMoreStopped{"go, steps left, stopped", [](const PushState& s, const Event& e) {
                             return s.stopPass && go(e) && moreSteps(s);
                           }};
const Guard kGoMendStopped{"go, a gather failed, stopped", [](const PushState& s, const Event& e) {
                             return s.stopPass && mend(s, e);
                           }};
const Guard kDead{"agreement dead",
                  [](const PushState& s, const Event&) { return s.agreementDead; }};
const Guard kFailed{"failed", [](const PushState& s, const Event&) { return s.failed; }};

}  // namespace guard

namespace effect {

const Effect kLatch{"latch", [](PushState& s, const Event& e, Actions&) {
                      if (!e.status.ok()) {
                        // What another rank or the caller said first is the cause of what followed.
                        s.local.merge(s.pending);
                        s.pending = Status();
                        s.local.merge(e.status);
                      }
                    }};
const Effect kPend{"pend",
                   [](PushState& s, const Event& e, Actions&) { s.pending.merge(e.status); }};
const Effect kKeepLost{"keep lost", [](PushState& s, const Event& e, Actions&) {
                         // A rank that said why it leaves has given the cause itself.
                         const bool told =
                             !s.pending.ok() && s.pending.origin().rank == e.status.origin().rank;
                         if (s.lost.ok() && !told) {
                           s.lost = e.status;
                         }
                       }};
const Effect kPeerStopped{"peer stopped",
                          [](PushState& s, const Event&, Actions&) { s.peerStopped = true; }};
const Effect kKeepFirst{
    "keep first", [](PushState& s, const Event& e, Actions&) {
      // A pass that went on has brought the same failure to the vote at its end.
      const Status& first = e.verdict.first;
      if (s.first.message() != first.message() || s.first.origin() != first.origin()) {
        s.first.merge(first);
      }
    }};
const Effect kKeepOwn{"keep own", [](PushState& s, const Event& e, Actions&) {
                        s.agreementDead = true;
                        s.failed = true;
                        s.first.merge(s.lost);
                        s.first.merge(s.local);
                        s.first.merge(s.pending);
                        s.first.merge(e.status);
                      }};
const Effect kMarkFailed{"mark failed", [](PushState& s, const Event&, Actions&) {
                           s.failed = true;
                           s.local = Status();
                         }};
const Effect kNextAttempt{"next attempt", [](PushState& s, const Event&, Actions&) {
                            ++s.attempt;
                            s.local = Status();
                            s.passingOn = false;
                            // A peer's stop belongs to the attempt it ended; a cancel to the push.
                            if (s.pending.code() != Code::kCancelled) {
                              s.pending = Status();
                              s.stopPass = false;
                              s.peerStopped = false;
                            }
                          }};
const Effect kPassOn{"pass on", [](PushState& s, const Event& e, Actions&) {
                       s.passingOn = true;
                       s.local = e.verdict.first;
                       // One step is left, up to the last tensor.
                       s.stepIndex = s.passSteps().empty() ? 0 : s.passSteps().size() - 1;
                     }};
const Effect kNewPass{"new pass", [](PushState& s, const Event&, Actions&) {
                        s.passingOn = false;
                        s.tensors = 0;
                        s.stepIndex = 0;
                        s.stopPass = false;
                        s.peerStopped = false;
                      }};
const Effect kDraft{"draft", [](PushState& s, const Event&, Actions&) {
                      s.draft = true;
                      s.voteStep = s.firstVoteStep();
                    }};
const Effect kTarget{"target", [](PushState& s, const Event&, Actions&) { s.draft = false; }};
const Effect kStopPass{"stop pass",
                       [](PushState& s, const Event&, Actions&) { s.stopPass = true; }};
const Effect kGatherFailed{"gather failed",
                           [](PushState& s, const Event&, Actions&) { s.gatherFailed = true; }};
const Effect kMended{"mended",
                     [](PushState& s, const Event&, Actions&) { s.gatherFailed = false; }};
const Effect kCount{"count", [](PushState& s, const Event&, Actions&) { ++s.tensors; }};
const Effect kNextStep{"next step", [](PushState& s, const Event&, Actions&) { ++s.stepIndex; }};
const Effect kTensorDone{"raise TensorDone", [](PushState&, const Event&, Actions&) {}};
const Effect kTailDone{"raise TailDone", [](PushState&, const Event&, Actions&) {}};

const Effect kMeet{
    "Meet", [](PushState& s, const Event&, Actions& a) { callerAction(s, a, ActionKind::kMeet); }};
const Effect kVote{"Vote", [](PushState& s, const Event&, Actions& a) {
                     s.local.merge(s.pending);
                     s.pending = Status();
                     ++s.voteStep;
                     callerAction(s, a, ActionKind::kVote);
                   }};
const Effect kShare{"Share", [](PushState& s, const Event&, Actions& a) {
                      ++s.voteStep;
                      callerAction(s, a, ActionKind::kShare);
                    }};
const Effect kManifest{"SourceManifest", [](PushState& s, const Event&, Actions& a) {
                         callerAction(s, a, ActionKind::kSourceManifest);
                       }};
const Effect kPrepare{"Prepare", [](PushState& s, const Event&, Actions& a) {
                        ++s.voteStep;
                        callerAction(s, a, ActionKind::kPrepare);
                      }};
const Effect kGoal{"StartGoal", [](PushState& s, const Event&, Actions& a) {
                     // A follower's goals complete at once; in stream it has nothing to wait for.
                     if (s.leader || s.phase != Phase::kStream) {
                       s.goalBusy = true;
                       add(a, ActionKind::kStartGoal);
                     }
                   }};
const Effect kCancelGoal{"CancelGoal", [](PushState& s, const Event& e, Actions& a) {
                           if (s.goalBusy) {
                             add(a, ActionKind::kCancelGoal, reasonOf(s, e));
                           }
                         }};
const Effect kChannelOpen{"ChannelOpen", [](PushState& s, const Event&, Actions& a) {
                            callerAction(s, a, ActionKind::kChannelOpen);
                          }};
const Effect kChannelAbort{
    "ChannelAbort", [](PushState& s, const Event& e, Actions& a) {
      add(a, ActionKind::kChannelAbort, s.first.ok() ? reasonOf(s, e) : s.first);
    }};
const Effect kBegin{"SourceBegin", [](PushState& s, const Event&, Actions& a) {
                      callerAction(s, a, ActionKind::kSourceBegin);
                    }};
const Effect kNext{"SourceNext", [](PushState& s, const Event&, Actions& a) {
                     callerAction(s, a, ActionKind::kSourceNext);
                   }};
const Effect kRecover{"SourceRecover", [](PushState& s, const Event&, Actions& a) {
                        callerAction(s, a, ActionKind::kSourceRecover);
                      }};
const Effect kPut{"PlanePut", [](PushState& s, const Event&, Actions& a) {
                    callerAction(s, a, ActionKind::kPlanePut);
                  }};
const Effect kFlush{"PlaneFlush", [](PushState& s, const Event&, Actions& a) {
                      callerAction(s, a, ActionKind::kPlaneFlush);
                    }};
const Effect kStopPlane{"PlaneInterrupt", [](PushState& s, const Event& e, Actions& a) {
                          add(a, ActionKind::kPlaneInterrupt, reasonOf(s, e));
                        }};
const Effect kStopPeers{"StopPeers", [](PushState& s, const Event& e, Actions& a) {
                          const Status reason = reasonOf(s, e);
                          if (!s.peerStopped && !reason.ok()) {
                            add(a, ActionKind::kStopPeers, reason);
                          }
                        }};
const Effect kInterrupt{"interrupt", [](PushState& s, const Event& e, Actions& a) {
                          const Status reason = reasonOf(s, e);
                          if (s.goalBusy) {
                            add(a, ActionKind::kCancelGoal, reason);
                          }
                          if (!s.callerBusy) {
                            return;
                          }
                          switch (s.stage) {
                            case Stage::kMeet:
                              add(a, ActionKind::kVoteInterrupt, reason);
                              break;
                            case Stage::kManifest:
                            case Stage::kBegin:
                            case Stage::kNext:
                            case Stage::kEnd:
                              add(a, ActionKind::kSourceAbort, reason);
                              break;
                            case Stage::kPut:
                            case Stage::kFlush:
                              add(a, ActionKind::kPlaneInterrupt, reason);
                              break;
                            case Stage::kWork:
                              if (s.phase == Phase::kChannel) {
                                add(a, ActionKind::kPlaneInterrupt, reason);
                              } else if (s.phase == Phase::kRecover) {
                                add(a, ActionKind::kSourceAbort, reason);
                              }
                              break;
                            case Stage::kNone:
                            case Stage::kConfigVote:
                            case Stage::kConfigShare:
                            case Stage::kManifestVote:
                            case Stage::kManifestShare:
                            case Stage::kVote:
                            case Stage::kTensor:
                            case Stage::kHold:
                            case Stage::kTail:
                            case Stage::kSettle:
                            case Stage::kCopyShare:
                            case Stage::kMendVote:
                              break;
                          }
                        }};
const Effect kInterruptVote{"VoteInterrupt", [](PushState& s, const Event& e, Actions& a) {
                              add(a, ActionKind::kVoteInterrupt, reasonOf(s, e));
                            }};
const Effect kArmDrain{"ArmDrain",
                       [](PushState&, const Event&, Actions& a) { add(a, ActionKind::kArmDrain); }};
const Effect kFinish{"Finish",
                     [](PushState&, const Event&, Actions& a) { add(a, ActionKind::kFinish); }};

}  // namespace effect

}  // namespace pushrod::orchestrator
