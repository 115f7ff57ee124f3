// SPDX-License-Identifier: Apache-2.0
//
// The push, from start to verdict, on one page. Every rank runs this table; what only rank 0 does
// (goals, plane) completes at once elsewhere, so all ranks meet in the same votes in the same
// order.
#include "orchestrator/fsm/push_table.h"

#include "orchestrator/fsm/rules.h"

namespace pushrod::orchestrator {

namespace {

using E = EventKind;
using P = Phase;
using S = Stage;
namespace g = guard;
namespace x = effect;

/// Phases whose work is one goal of rank 0.
constexpr PhaseSet kGoals = only(P::kConnect) | only(P::kPause) | only(P::kClean) |
                            only(P::kStart) | only(P::kFinish) | only(P::kFlush) |
                            only(P::kVerify) | only(P::kResume);
/// Phases in which a vote may say resend or fail.
constexpr PhaseSet kVoting = kGoals | only(P::kCheck) | only(P::kPrepare) | only(P::kChannel) |
                             only(P::kStream) | only(P::kAgree) | only(P::kConfirm) |
                             only(P::kRecover);
/// Phases that are already ending: trouble cannot turn them any more, as it can the voting ones.
constexpr PhaseSet kEnding = only(P::kFailing) | only(P::kVerdict);
constexpr PhaseSet kResting = only(P::kIdle) | only(P::kDone) | only(P::kFailed);

PhaseSet in(P phase) {
  return only(phase);
}

// One row per line is what makes this readable.
// clang-format off
const Row kTable[] = {
  // check: same configuration, same manifest, before any engine hears of us
  {"begin",                in(P::kIdle),           S::kNone,           E::kBegin,        g::kAlways,      P::kCheck,   S::kMeet,          {x::kMeet}},
  {"met",                  in(P::kCheck),          S::kMeet,           E::kLocalDone,    g::kOk,          kSamePhase,  S::kConfigVote,    {x::kVote}},
  {"not-met",              in(P::kCheck),          S::kMeet,           E::kLocalDone,    g::kAlways,      P::kFailed,  S::kNone,          {x::kKeepOwn, x::kStopPeers, x::kFinish}},
  {"config-stopped",        in(P::kCheck),           S::kConfigVote,     E::kVerdict,      g::kGoEqualStopped,kSamePhase,  S::kManifestVote,  {x::kVote}},
  {"config-equal",         in(P::kCheck),          S::kConfigVote,     E::kVerdict,      g::kGoEqual,     kSamePhase,  S::kManifest,      {x::kManifest}},
  {"config-differs",       in(P::kCheck),          S::kConfigVote,     E::kVerdict,      g::kGo,          kSamePhase,  S::kConfigShare,   {x::kShare}},
  {"config-compared",      in(P::kCheck),          S::kConfigShare,    E::kLocalDone,    g::kAlways,      kSamePhase,  S::kConfigVote,    {x::kLatch, x::kVote}},
  {"manifest",             in(P::kCheck),          S::kManifest,       E::kLocalDone,    g::kOk,          kSamePhase,  S::kManifestVote,  {x::kVote}},
  {"manifest-failed",      in(P::kCheck),          S::kManifest,       E::kLocalDone,    g::kAlways,      kSamePhase,  S::kManifestVote,  {x::kLatch, x::kStopPeers, x::kVote}},
  {"manifest-equal",       in(P::kCheck),          S::kManifestVote,   E::kVerdict,      g::kGoEqual,     P::kConnect, S::kWork,          {x::kGoal}},
  {"manifest-differs",     in(P::kCheck),          S::kManifestVote,   E::kVerdict,      g::kGo,          kSamePhase,  S::kManifestShare, {x::kShare}},
  {"manifest-compared",    in(P::kCheck),          S::kManifestShare,  E::kLocalDone,    g::kAlways,      kSamePhase,  S::kManifestVote,  {x::kLatch, x::kVote}},

  // every phase with a goal: rank 0 brings the engines there, then all vote
  {"goal-reached",         kGoals,                 S::kWork,           E::kGoalReached,  g::kAlways,      kSamePhase,  S::kVote,          {x::kVote}},
  {"goal-failed",          kGoals,                 S::kWork,           E::kGoalFailed,   g::kAlways,      kSamePhase,  S::kVote,          {x::kLatch, x::kVote}},

  // the way of a good push
  {"connected",            in(P::kConnect),        S::kVote,           E::kVerdict,      g::kGo,          P::kPrepare, S::kWork,          {x::kPrepare}},
  {"prepared",             in(P::kPrepare),        S::kWork,           E::kLocalDone,    g::kAlways,      kSamePhase,  S::kVote,          {x::kLatch, x::kVote}},
  {"pause",                in(P::kPrepare),        S::kVote,           E::kVerdict,      g::kGo,          P::kPause,   S::kWork,          {x::kGoal}},
  {"clean",                in(P::kPause),          S::kVote,           E::kVerdict,      g::kGo,          P::kClean,   S::kWork,          {x::kGoal}},
  {"channel",              in(P::kClean),          S::kVote,           E::kVerdict,      g::kGo,          P::kChannel, S::kWork,          {x::kChannelOpen, x::kGoal}},
  {"start",                in(P::kChannel),        S::kVote,           E::kVerdict,      g::kGo,          P::kStart,   S::kWork,          {x::kGoal}},
  {"stream-stopped",        in(P::kStart),           S::kVote,           E::kVerdict,      g::kGoStopped,   P::kStream,  S::kTensor,        {x::kTensorDone}},
  {"stream",               in(P::kStart),          S::kVote,           E::kVerdict,      g::kGo,          P::kStream,  S::kBegin,         {x::kNewPass, x::kGoal, x::kBegin}},
  {"agreed",               in(P::kAgree),          S::kVote,           E::kVerdict,      g::kGo,          P::kFinish,  S::kWork,          {x::kGoal}},
  {"draft",                in(P::kFinish),         S::kVote,           E::kVerdict,      g::kGoDraft,     P::kStart,   S::kWork,          {x::kDraft, x::kGoal}},
  {"flush",                in(P::kFinish),         S::kVote,           E::kVerdict,      g::kGo,          P::kFlush,   S::kWork,          {x::kGoal}},
  {"verify",               in(P::kFlush),          S::kVote,           E::kVerdict,      g::kGo,          P::kVerify,  S::kWork,          {x::kGoal}},
  {"confirm",              in(P::kVerify),         S::kVote,           E::kVerdict,      g::kGo,          P::kConfirm, S::kVote,          {x::kVote}},
  {"resume",               in(P::kConfirm),        S::kVote,           E::kVerdict,      g::kGo,          P::kResume,  S::kWork,          {x::kGoal}},
  {"verdict",              in(P::kResume),         S::kVote,           E::kVerdict,      g::kGo,          P::kVerdict, S::kVote,          {x::kVote}},

  // channel: the engines' init calls and our own opening run beside each other
  {"open-first",           in(P::kChannel),        S::kWork,           E::kLocalDone,    g::kOkGoalBusy,  kSamePhase,  kSameStage,        {}},
  {"open-failed-first",    in(P::kChannel),        S::kWork,           E::kLocalDone,    g::kGoalBusy,    kSamePhase,  kSameStage,        {x::kLatch, x::kCancelGoal}},
  {"open-last",            in(P::kChannel),        S::kWork,           E::kLocalDone,    g::kAlways,      kSamePhase,  S::kVote,          {x::kLatch, x::kVote}},
  {"init-first",           in(P::kChannel),        S::kWork,           E::kGoalReached,  g::kCallerBusy,  kSamePhase,  kSameStage,        {}},
  {"init-failed-first",    in(P::kChannel),        S::kWork,           E::kGoalFailed,   g::kCallerBusy,  kSamePhase,  kSameStage,        {x::kLatch, x::kStopPlane}},
  {"init-last",            in(P::kChannel),        S::kWork,           E::kGoalReached,  g::kAlways,      kSamePhase,  S::kVote,          {x::kVote}},
  {"init-failed-last",     in(P::kChannel),        S::kWork,           E::kGoalFailed,   g::kAlways,      kSamePhase,  S::kVote,          {x::kLatch, x::kVote}},

  // stream: one step of tensors, then a vote. A failed rank gathers on to the step's end, sending
  // nothing, unless its own gather failed or another rank's did. With push.stop: pass all then
  // gather on to the source's end, and vote in agree
  {"pass-stopped",          in(P::kStream),          S::kBegin,          E::kLocalDone,    g::kOkStopped,   kSamePhase,  S::kTensor,        {x::kTensorDone}},
  {"pass-begun",           in(P::kStream),         S::kBegin,          E::kLocalDone,    g::kOk,          kSamePhase,  S::kNext,          {x::kNext}},
  {"pass-not-begun",        in(P::kStream),          S::kBegin,          E::kLocalDone,    g::kAlways,      kSamePhase,  S::kTensor,        {x::kLatch, x::kStopPass, x::kGatherFailed, x::kStopPeers, x::kTensorDone}},
  {"send",                 in(P::kStream),         S::kNext,           E::kSourceItem,   g::kCanSend,     kSamePhase,  S::kPut,           {x::kCount, x::kPut}},
  {"skip",                 in(P::kStream),         S::kNext,           E::kSourceItem,   g::kAlways,      kSamePhase,  S::kTensor,        {x::kCount, x::kLatch, x::kTensorDone}},
  {"sent",                 in(P::kStream),         S::kPut,            E::kPlaneDone,    g::kAlways,      kSamePhase,  S::kTensor,        {x::kTensorDone}},
  {"send-failed",          in(P::kStream),         S::kPut,            E::kPlaneFailed,  g::kAlways,      kSamePhase,  S::kTensor,        {x::kLatch, x::kChannelAbort, x::kTensorDone}},
  {"gather-failed",        in(P::kStream),         S::kNext,           E::kSourceFailed, g::kAlways,      kSamePhase,  S::kTensor,        {x::kLatch, x::kStopPass, x::kGatherFailed, x::kStopPeers, x::kTensorDone}},
  {"ended-early",          in(P::kStream),         S::kNext,           E::kSourceEnd,    g::kAlways,      kSamePhase,  S::kTensor,        {x::kLatch, x::kStopPass, x::kStopPeers, x::kTensorDone}},
  {"next",                 in(P::kStream),         S::kTensor,         E::kTensorDone,   g::kStepOpen,    kSamePhase,  S::kNext,          {x::kNext}},
  {"pass-over",            in(P::kStream),         S::kTensor,         E::kTensorDone,   g::kPassOver,    kSamePhase,  S::kEnd,           {x::kNext}},
  {"pass-cut",             in(P::kStream),         S::kTensor,         E::kTensorDone,   g::kPassingOn,   kSamePhase,  S::kTail,          {x::kTailDone}},
  {"step-held",            in(P::kStream),         S::kTensor,         E::kTensorDone,   g::kMustHold,    kSamePhase,  S::kHold,          {x::kChannelAbort, x::kArmDrain}},
  {"step",                 in(P::kStream),         S::kTensor,         E::kTensorDone,   g::kAlways,      kSamePhase,  S::kVote,          {x::kVote}},
  {"held-settled",         in(P::kStream),         S::kHold,           E::kGoalReached,  g::kAlways,      kSamePhase,  S::kVote,          {x::kVote}},
  {"held-refused",         in(P::kStream),         S::kHold,           E::kGoalFailed,   g::kAlways,      kSamePhase,  S::kVote,          {x::kLatch, x::kVote}},
  {"pass-on",              in(P::kStream),         S::kVote,           E::kVerdict,      g::kPassOn,      kSamePhase,  S::kTensor,        {x::kKeepFirst, x::kPassOn, x::kChannelAbort, x::kTensorDone}},
  {"copies-differ",        in(P::kStream),         S::kVote,           E::kVerdict,      g::kGoUnequal,   kSamePhase,  S::kCopyShare,     {x::kShare}},
  {"copies-compared",      in(P::kStream),         S::kCopyShare,      E::kLocalDone,    g::kAlways,      kSamePhase,  S::kVote,          {x::kLatch, x::kVote}},
  {"step-stopped",          in(P::kStream),          S::kVote,           E::kVerdict,      g::kGoMoreStopped,kSamePhase,  S::kTensor,        {x::kNextStep, x::kTensorDone}},
  {"last-step-stopped",     in(P::kStream),          S::kVote,           E::kVerdict,      g::kGoStopped,   kSamePhase,  S::kTail,          {x::kTailDone}},
  {"step-agreed",          in(P::kStream),         S::kVote,           E::kVerdict,      g::kGoMoreSteps, kSamePhase,  S::kNext,          {x::kNextStep, x::kNext}},
  {"last-step-agreed",     in(P::kStream),         S::kVote,           E::kVerdict,      g::kGo,          kSamePhase,  S::kEnd,           {x::kNext}},
  {"ended",                in(P::kStream),         S::kEnd,            E::kSourceEnd,    g::kCanSend,     kSamePhase,  S::kFlush,         {x::kFlush}},
  {"ended-silent",         in(P::kStream),         S::kEnd,            E::kSourceEnd,    g::kAlways,      kSamePhase,  S::kTail,          {x::kLatch, x::kTailDone}},
  {"extra",                in(P::kStream),         S::kEnd,            E::kSourceItem,   g::kAlways,      kSamePhase,  S::kTail,          {x::kLatch, x::kStopPeers, x::kTailDone}},
  {"end-failed",           in(P::kStream),         S::kEnd,            E::kSourceFailed, g::kAlways,      kSamePhase,  S::kTail,          {x::kLatch, x::kGatherFailed, x::kStopPeers, x::kTailDone}},
  {"flushed",              in(P::kStream),         S::kFlush,          E::kPlaneDone,    g::kAlways,      kSamePhase,  S::kTail,          {x::kTailDone}},
  {"flush-failed",         in(P::kStream),         S::kFlush,          E::kPlaneFailed,  g::kAlways,      kSamePhase,  S::kTail,          {x::kLatch, x::kTailDone}},
  {"tail-failed",          in(P::kStream),         S::kTail,           E::kTailDone,     g::kMustHold,    kSamePhase,  S::kSettle,        {x::kChannelAbort, x::kArmDrain}},
  {"tail",                 in(P::kStream),         S::kTail,           E::kTailDone,     g::kGoalBusy,    kSamePhase,  S::kSettle,        {x::kArmDrain}},
  {"tail-settled",         in(P::kStream),         S::kTail,           E::kTailDone,     g::kAlways,      P::kAgree,   S::kVote,          {x::kVote}},
  {"settled",              in(P::kStream),         S::kSettle,         E::kGoalReached,  g::kAlways,      P::kAgree,   S::kVote,          {x::kVote}},
  {"refused-late",         in(P::kStream),         S::kSettle,         E::kGoalFailed,   g::kAlways,      P::kAgree,   S::kVote,          {x::kLatch, x::kVote}},
  {"answered-early",       in(P::kStream),         kAnyStage,          E::kGoalReached,  g::kCallerBusy,  kSamePhase,  kSameStage,        {x::kArmDrain}},
  {"refused",              in(P::kStream),         kAnyStage,          E::kGoalFailed,   g::kAlways,      kSamePhase,  kSameStage,        {x::kLatch, x::kStopPlane}},
  {"refused-early",        in(P::kStream),         kAnyStage,          E::kEarlyReply,   g::kAlways,      kSamePhase,  kSameStage,        {x::kLatch, x::kStopPlane}},
  {"drained",              in(P::kStream),         kAnyStage,          E::kDrained,      g::kAlways,      kSamePhase,  kSameStage,        {x::kLatch, x::kCancelGoal, x::kStopPlane}},

  // a vote said no
  {"resend-held",           kVoting,                 kAnyStage,          E::kVerdict,      g::kResendBusy,  P::kRecover, S::kSettle,        {x::kKeepFirst, x::kChannelAbort, x::kNextAttempt, x::kArmDrain}},
  {"resend",               kVoting,                kAnyStage,          E::kVerdict,      g::kResend,      P::kRecover, S::kMendVote,      {x::kKeepFirst, x::kChannelAbort, x::kNextAttempt, x::kVote}},
  {"fail",                 kVoting,                kAnyStage,          E::kVerdict,      g::kFail,        P::kFailing, S::kWork,          {x::kKeepFirst, x::kMarkFailed, x::kChannelAbort, x::kGoal}},
  {"vote-lost",             kVoting,                 kAnyStage,          E::kVoteFailed,   g::kAlways,      P::kFailing, S::kWork,          {x::kKeepOwn, x::kStopPeers, x::kChannelAbort, x::kCancelGoal, x::kGoal}},
  {"old-answered",          in(P::kRecover),         S::kSettle,         E::kGoalReached,  g::kAlways,      kSamePhase,  S::kMendVote,      {x::kVote}},
  {"old-refused",           in(P::kRecover),         S::kSettle,         E::kGoalFailed,   g::kAlways,      kSamePhase,  S::kMendVote,      {x::kVote}},
  {"old-silent",            in(P::kRecover),         S::kSettle,         E::kDrained,      g::kAlways,      kSamePhase,  kSameStage,        {x::kCancelGoal}},
  {"mend-stopped",          in(P::kRecover),         S::kMendVote,       E::kVerdict,      g::kGoMendStopped,kSamePhase,  S::kVote,          {x::kVote}},
  {"mend",                 in(P::kRecover),        S::kMendVote,       E::kVerdict,      g::kGoMend,      kSamePhase,  S::kWork,          {x::kRecover}},
  {"nothing-to-mend",      in(P::kRecover),        S::kMendVote,       E::kVerdict,      g::kGo,          P::kClean,   S::kWork,          {x::kTarget, x::kGoal}},
  {"mended",                in(P::kRecover),         S::kWork,           E::kLocalDone,    g::kOk,          kSamePhase,  S::kVote,          {x::kMended, x::kVote}},
  {"not-mended",            in(P::kRecover),         S::kWork,           E::kLocalDone,    g::kAlways,      kSamePhase,  S::kVote,          {x::kLatch, x::kStopPeers, x::kVote}},
  {"again",                in(P::kRecover),        S::kVote,           E::kVerdict,      g::kGo,          P::kClean,   S::kWork,          {x::kTarget, x::kGoal}},

  // the end
  {"closed-alone",         in(P::kFailing),        S::kWork,           E::kGoalReached,  g::kDead,        P::kFailed,  S::kNone,          {x::kFinish}},
  {"not-closed-alone",     in(P::kFailing),        S::kWork,           E::kGoalFailed,   g::kDead,        P::kFailed,  S::kNone,          {x::kFinish}},
  {"closed",               in(P::kFailing),        S::kWork,           E::kGoalReached,  g::kAlways,      P::kVerdict, S::kVote,          {x::kVote}},
  {"not-closed",           in(P::kFailing),        S::kWork,           E::kGoalFailed,   g::kAlways,      P::kVerdict, S::kVote,          {x::kVote}},
  {"failed",               in(P::kVerdict),        S::kVote,           E::kVerdict,      g::kFailed,      P::kFailed,  S::kNone,          {x::kFinish}},
  {"done",                 in(P::kVerdict),        S::kVote,           E::kVerdict,      g::kAlways,      P::kDone,    S::kNone,          {x::kFinish}},
  {"verdict-lost",         in(P::kVerdict),        S::kVote,           E::kVoteFailed,   g::kAlways,      P::kFailed,  S::kNone,          {x::kKeepOwn, x::kFinish}},

  // trouble from outside the collectives: interrupts, and is part of the next ballot
  {"peer-stop",            kVoting,                kAnyStage,          E::kPeerStop,     g::kAlways,      kSamePhase,  kSameStage,        {x::kPend, x::kStopPass, x::kPeerStopped, x::kInterrupt}},
  {"peer-lost",            kVoting,                kAnyStage,          E::kPeerLost,     g::kAlways,      kSamePhase,  kSameStage,        {x::kKeepLost, x::kPend, x::kStopPass, x::kInterrupt, x::kInterruptVote}},
  {"expired",              kVoting,                kAnyStage,          E::kExpired,      g::kAlways,      kSamePhase,  kSameStage,        {x::kPend, x::kStopPass, x::kStopPeers, x::kInterrupt}},
  {"cancelled",            kVoting,                kAnyStage,          E::kCancelled,    g::kAlways,      kSamePhase,  kSameStage,        {x::kPend, x::kStopPass, x::kStopPeers, x::kInterrupt}},
  {"lost-at-end",          kEnding,                kAnyStage,          E::kPeerLost,     g::kAlways,      kSamePhase,  kSameStage,        {x::kInterruptVote}},

  // what may rightly come too late to matter
  {"late-stop",            kEnding | kResting,     kAnyStage,          E::kPeerStop,     g::kAlways,      kSamePhase,  kSameStage,        {}},
  {"late-lost",            kResting,               kAnyStage,          E::kPeerLost,     g::kAlways,      kSamePhase,  kSameStage,        {}},
  {"late-expiry",          kEnding | kResting,     kAnyStage,          E::kExpired,      g::kAlways,      kSamePhase,  kSameStage,        {}},
  {"late-cancel",          kEnding | kResting,     kAnyStage,          E::kCancelled,    g::kAlways,      kSamePhase,  kSameStage,        {}},
  {"late-drain",           ~PhaseSet{0},           kAnyStage,          E::kDrained,      g::kAlways,      kSamePhase,  kSameStage,        {}},
  {"late-refusal",         ~PhaseSet{0},           kAnyStage,          E::kEarlyReply,   g::kAlways,      kSamePhase,  kSameStage,        {}},
};
// clang-format on

}  // namespace

std::span<const Row> pushTable() {
  return kTable;
}

}  // namespace pushrod::orchestrator
