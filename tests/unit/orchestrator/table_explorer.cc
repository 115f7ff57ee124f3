// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/orchestrator/table_explorer.h"

#include <algorithm>

namespace pushrod::orchestrator {

namespace {

constexpr std::uint64_t kTensors = 3;

struct Possible {
  Event event;
  std::string text;
  bool completion = true;
};

using List = std::vector<Possible>;

Status failure(Code code) {
  return Status(code, std::string(codeName(code)), Outcome::kUnknown);
}

void both(List& list, EventKind good, EventKind bad) {
  list.push_back({Event{good, Status(), {}}, "ok"});
  list.push_back({Event{bad, failure(Code::kUnavailable), {}}, "fails"});
}

bool resendable(const PushState& state) {
  return state.attempt == 1 && state.phase >= Phase::kClean && state.phase <= Phase::kConfirm;
}

/// The verdicts that rank 0's decide() and this rank's own ballot leave open.
void addVerdicts(const Situation& now, List& list) {
  const PushState& state = now.state;
  Verdict good;
  Verdict bad;
  bad.first = failure(Code::kUnavailable);
  if (state.phase == Phase::kVerdict) {
    if (now.ballotOk) {
      list.push_back({Event{EventKind::kVerdict, Status(), good}, "all agree"});
    }
    list.push_back({Event{EventKind::kVerdict, Status(), bad}, "a remark"});
    return;
  }
  if (now.ballotOk) {
    list.push_back({Event{EventKind::kVerdict, Status(), good}, "go"});
    if (state.stage == Stage::kConfigVote || state.stage == Stage::kManifestVote ||
        state.stage == Stage::kMendVote || state.phase == Phase::kStream) {
      good.digestsEqual = false;
      good.differingRank = 1;
      list.push_back({Event{EventKind::kVerdict, Status(), good}, "go, unequal"});
    }
  }
  // Another rank's source may have stopped; this one's own is in the verdict.
  for (const bool stopped : {false, true}) {
    if (now.ballotStopped && !stopped) {
      continue;
    }
    const std::string text = stopped ? ", a source stopped" : "";
    bad.stopped = stopped;
    bad.decision = Decision::kFail;
    list.push_back({Event{EventKind::kVerdict, Status(), bad}, "fail" + text});
    if (resendable(state)) {
      bad.decision = Decision::kResend;
      list.push_back({Event{EventKind::kVerdict, Status(), bad}, "resend" + text});
    }
  }
}

void addGather(const PushState& state, List& list) {
  list.push_back({Event{EventKind::kSourceFailed, failure(Code::kInternal), {}}, "throws"});
  list.push_back(
      {Event{EventKind::kSourceItem, failure(Code::kDataMismatch), {}}, "another tensor"});
  if (state.stage == Stage::kEnd) {
    list.push_back({Event{EventKind::kSourceEnd, Status(), {}}, "end"});
    return;
  }
  list.push_back({Event{EventKind::kSourceItem, Status(), {}}, "tensor"});
  list.push_back({Event{EventKind::kSourceEnd, failure(Code::kDataMismatch), {}}, "early end"});
}

void addOperation(const Situation& now, List& list) {
  switch (now.operation) {
    case ActionKind::kVote:
      addVerdicts(now, list);
      list.push_back({Event{EventKind::kVoteFailed, failure(Code::kUnavailable), {}}, "breaks"});
      return;
    case ActionKind::kShare:
    case ActionKind::kPrepare:
      both(list, EventKind::kLocalDone, EventKind::kLocalDone);
      list.push_back({Event{EventKind::kVoteFailed, failure(Code::kUnavailable), {}}, "breaks"});
      return;
    case ActionKind::kSourceNext:
      addGather(now.state, list);
      return;
    case ActionKind::kPlanePut:
    case ActionKind::kPlaneFlush:
      both(list, EventKind::kPlaneDone, EventKind::kPlaneFailed);
      return;
    default:
      both(list, EventKind::kLocalDone, EventKind::kLocalDone);
      return;
  }
}

List possible(const Situation& now) {
  List list;
  const PushState& state = now.state;
  if (state.phase == Phase::kIdle) {
    list.push_back({Event{EventKind::kBegin, Status(), {}}, "begin"});
  }
  if (state.callerBusy) {
    addOperation(now, list);
  }
  if (state.goalBusy) {
    list.push_back({Event{EventKind::kGoalReached, Status(), {}}, "reached"});
    if (state.leader) {
      list.push_back({Event{EventKind::kGoalFailed, failure(Code::kUnavailable), {}}, "refused"});
    }
  }
  if (now.drainArmed) {
    list.push_back({Event{EventKind::kDrained, failure(Code::kDeadlineExceeded), {}}, "limit"});
  }
  // Of an engine here, or told by another rank that sends.
  list.push_back({Event{EventKind::kEarlyReply, failure(Code::kUnavailable), {}}, "", false});
  list.push_back({Event{EventKind::kPeerStop, failure(Code::kAborted), {}}, "", false});
  list.push_back({Event{EventKind::kPeerLost, failure(Code::kUnavailable), {}}, "", false});
  list.push_back({Event{EventKind::kExpired, failure(Code::kDeadlineExceeded), {}}, "", false});
  list.push_back({Event{EventKind::kCancelled, failure(Code::kCancelled), {}}, "", false});
  return list;
}

bool isCallerOperation(ActionKind kind) {
  switch (kind) {
    case ActionKind::kMeet:
    case ActionKind::kVote:
    case ActionKind::kShare:
    case ActionKind::kSourceManifest:
    case ActionKind::kPrepare:
    case ActionKind::kChannelOpen:
    case ActionKind::kSourceBegin:
    case ActionKind::kSourceNext:
    case ActionKind::kSourceRecover:
    case ActionKind::kPlanePut:
    case ActionKind::kPlaneFlush:
      return true;
    default:
      return false;
  }
}

bool isGather(ActionKind kind) {
  return kind == ActionKind::kSourceManifest || kind == ActionKind::kSourceBegin ||
         kind == ActionKind::kSourceNext || kind == ActionKind::kSourceRecover;
}

char statusKey(const Status& status) {
  if (status.ok()) {
    return '.';
  }
  return status.code() == Code::kCancelled ? 'c' : 'x';
}

std::string keyOf(const Situation& now) {
  const PushState& s = now.state;
  std::string key = std::string(phaseName(s.phase)) + "/" + std::string(stageName(s.stage)) + " a" +
                    std::to_string(s.attempt) + " s" + std::to_string(s.stepIndex) + " t" +
                    std::to_string(s.tensors) + " ";
  for (const bool flag : {s.goalBusy,
                          s.callerBusy,
                          s.passingOn,
                          s.stopPass,
                          s.peerStopped,
                          s.gatherFailed,
                          s.agreementDead,
                          s.failed,
                          now.ballotOk,
                          now.ballotStopped,
                          now.drainArmed,
                          now.finished,
                          s.steps.empty(),
                          s.draft}) {
    key += flag ? '1' : '0';
  }
  key += statusKey(s.local);
  key += statusKey(s.pending);
  key += s.first.ok() ? '.' : 'x';
  return s.callerBusy ? key + " " + std::string(actionName(now.operation)) : key;
}

}  // namespace

TableExplorer::TableExplorer(bool leader, bool stopAtEnd, bool draft) : draft_(draft) {
  Situation first;
  first.state.stopAtEnd = stopAtEnd;
  first.state.leader = leader;
  add(first, 0, "");
}

std::size_t TableExplorer::add(const Situation& situation,
                               std::size_t parent,
                               const std::string& text) {
  const auto [at, fresh] = index_.emplace(keyOf(situation), situations_.size());
  if (fresh) {
    situations_.push_back(situation);
    parents_.emplace_back(parent, text);
  }
  return at->second;
}

std::string TableExplorer::describe(std::size_t index) const {
  return keyOf(situations_[index]);
}

std::string TableExplorer::way(std::size_t index) const {
  std::vector<std::string> steps;
  while (index != 0) {
    steps.push_back(parents_[index].second);
    index = parents_[index].first;
  }
  std::string text;
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    text += (text.empty() ? "" : " > ") + *step;
  }
  return text;
}

void TableExplorer::run() {
  for (std::size_t i = 0; i < situations_.size() && faults_.size() < 5; ++i) {
    expand(i);
  }
}

void TableExplorer::expand(std::size_t index) {
  for (const Possible& next : possible(situations_[index])) {
    const std::string name(eventName(next.event.kind));
    take(index,
         next.event,
         next.text.empty() ? name : name + " (" + next.text + ")",
         next.completion);
  }
}

/// What the driver relies on in every list of actions.
std::string TableExplorer::checkActions(const Situation& before, const StepResult& result) const {
  bool busy = before.state.callerBusy;
  // settle() frees the operation that this event completes; trouble frees nothing.
  if (busy && !result.state.callerBusy) {
    busy = false;
  }
  int operations = 0;
  for (const Action& action : result.actions) {
    operations += isCallerOperation(action.kind) ? 1 : 0;
    if (action.kind == ActionKind::kFinish &&
        (result.state.callerBusy || result.state.goalBusy || before.finished)) {
      return "finishes with something outstanding";
    }
    if (action.kind == ActionKind::kVote && result.state.goalBusy &&
        result.state.phase != Phase::kStream) {
      return "votes outside stream while the engines' answers are outstanding";
    }
  }
  return operations > 1 ? "asks two things of the caller at once" : "";
}

void TableExplorer::take(std::size_t index,
                         const Event& event,
                         const std::string& text,
                         bool completion) {
  const Situation before = situations_[index];
  const StepResult result = step(before.state, event);
  for (const std::string_view row : result.rows) {
    rows_.insert(row);
  }
  std::string fault = result.fault.ok() ? checkActions(before, result) : result.fault.message();
  Situation after = before;
  after.state = result.state;
  if (after.state.phase != before.state.phase) {
    after.drainArmed = false;  // as the driver does on every change of phase
  }
  bool gather = false;
  for (const Action& action : result.actions) {
    gather = gather || isGather(action.kind);
    if (isCallerOperation(action.kind)) {
      if (!completion && before.state.callerBusy) {
        fault = "trouble asks a busy caller for " + std::string(actionName(action.kind));
      }
      if (action.kind == ActionKind::kVote) {
        after.ballotOk = result.state.local.ok();
        after.ballotStopped = result.state.stopPass;
      }
      after.operation = action.kind;
    }
    after.drainArmed = after.drainArmed || action.kind == ActionKind::kArmDrain;
    after.finished = after.finished || action.kind == ActionKind::kFinish;
  }
  if (event.kind == EventKind::kDrained) {
    after.drainArmed = false;
  }
  if (before.operation == ActionKind::kPrepare && before.state.callerBusy &&
      event.kind == EventKind::kLocalDone) {
    after.state.steps = {1, kTensors};
    after.state.draftSteps = draft_ ? std::vector<std::uint64_t>{1} : std::vector<std::uint64_t>();
  }
  if (!fault.empty()) {
    faults_.push_back(fault + " :: " + way(index) + " > " + text);
    return;
  }
  const bool progress = after.state.voteStep != before.state.voteStep ||
                        after.state.stepIndex != before.state.stepIndex ||
                        after.state.tensors != before.state.tensors ||
                        after.state.attempt != before.state.attempt;
  const std::size_t to = add(after, index, text);
  edges_.push_back(Edge{index, to, text, completion, progress, gather});
}

}  // namespace pushrod::orchestrator
