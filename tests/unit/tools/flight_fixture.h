// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "orchestrator/flight/lines.h"
#include "orchestrator/flight/recorder.h"
#include "tests/support/virtual_executor.h"

namespace pushrod::tools::testing {

/// One rank of a made-up push: the push table is run, and what a driver would tell an observer is
/// told to a recorder.
class RecordedRun {
 public:
  explicit RecordedRun(int rank, pushrod::testing::VirtualExecutor& clock)
      : clock_(clock), recorder_(clock, rank, nobody_) {
    state_.leader = rank == 0;
    recorder_.begin(state_,
                    rank == 0 ? std::vector<std::string>{"e0", "e1"} : std::vector<std::string>(),
                    [](std::size_t) { return std::uint64_t{64}; });
  }

  /// Feeds one event, a millisecond later.
  void feed(orchestrator::EventKind kind, const Status& status = {}, const Verdict& verdict = {}) {
    clock_.runFor(Duration(1));
    const orchestrator::Event event{kind, status, verdict};
    orchestrator::StepResult result = orchestrator::step(state_, event);
    state_ = result.state;
    recorder_.onStep(event, result);
  }

  void go() { feed(orchestrator::EventKind::kVerdict); }

  void vote(Decision decision, const Status& first) {
    Verdict verdict;
    verdict.decision = decision;
    verdict.first = first;
    feed(orchestrator::EventKind::kVerdict, {}, verdict);
  }

  /// Up to the first gather of the target's stream, with a vote after `step` tensors. `draft`: what
  /// follows it, in one step.
  void toStream(const std::shared_ptr<const Manifest>& manifest,
                std::uint64_t step,
                const std::shared_ptr<const Manifest>& draft = nullptr) {
    using E = orchestrator::EventKind;
    feed(E::kBegin);
    feed(E::kLocalDone);
    go();
    recorder_.onDeclared(manifest, draft);
    feed(E::kLocalDone);
    go();
    for (const E event : {E::kGoalReached, E::kLocalDone}) {
      if (event == E::kLocalDone) {
        for (std::uint64_t at = step; at < manifest->tensors.size(); at += step) {
          state_.steps.push_back(at);
        }
        state_.steps.push_back(manifest->tensors.size());
        if (draft != nullptr) {
          state_.draftSteps = {draft->tensors.size()};
        }
        recorder_.onPlan(state_.steps, state_.draftSteps, false);
      }
      feed(event);
      go();
    }
    for (int phase = 0; phase < 2; ++phase) {  // pause, clean
      feed(E::kGoalReached);
      go();
    }
    feed(E::kLocalDone);  // channel
    feed(E::kGoalReached);
    go();
    beginPass();
  }

  /// After the last gather of the target's stream: up to the first one of the draft's.
  void toDraft() {
    using E = orchestrator::EventKind;
    beginGather();
    recorder_.onOperationEnd(orchestrator::ActionKind::kSourceNext, {});
    feed(E::kSourceEnd);
    if (state_.stage == orchestrator::Stage::kFlush) {
      feed(E::kPlaneDone);
    }
    feed(E::kGoalReached);  // the engines' answers
    go();                   // agree
    feed(E::kGoalReached);  // finish
    go();
    beginPass();
  }

  void beginPass() {
    feed(orchestrator::EventKind::kGoalReached);  // start
    go();
    feed(orchestrator::EventKind::kLocalDone);  // the pass begins
  }

  void beginGather() {
    recorder_.onOperation(orchestrator::ActionKind::kSourceNext, std::chrono::seconds(60));
  }

  /// One tensor, and the vote where a step ends.
  void gather() {
    beginGather();
    recorder_.onOperationEnd(orchestrator::ActionKind::kSourceNext, {});
    feed(orchestrator::EventKind::kSourceItem);
    if (state_.stage == orchestrator::Stage::kPut) {
      feed(orchestrator::EventKind::kPlaneDone);
    }
    if (state_.stage == orchestrator::Stage::kVote) {
      go();
    }
  }

  void failGather(const Status& raw, const Status& told) {
    recorder_.onOperationEnd(orchestrator::ActionKind::kSourceNext, raw);
    feed(orchestrator::EventKind::kSourceFailed, told);
  }

  [[nodiscard]] std::string encode(std::size_t budget = std::size_t{1} << 20) const {
    return recorder_.encode(budget);
  }

  orchestrator::FlightRecorder& recorder() { return recorder_; }

  [[nodiscard]] const orchestrator::PushState& state() const { return state_; }

 private:
  pushrod::testing::VirtualExecutor& clock_;
  orchestrator::PushObserver nobody_;
  orchestrator::PushState state_;
  orchestrator::FlightRecorder recorder_;
};

inline std::shared_ptr<const Manifest> manifestOf(std::size_t tensors) {
  auto manifest = std::make_shared<Manifest>();
  for (std::size_t i = 0; i < tensors; ++i) {
    manifest->tensors.push_back(
        {"model.layers." + std::to_string(i) + ".w", DType::kFloat32, {2, 4}});
  }
  return manifest;
}

/// A whole record of some ranks' lines.
inline std::string recordOf(const std::map<int, std::string>& ranks,
                            const Status& firstCause,
                            int size,
                            const std::map<int, std::string>& missing = {}) {
  orchestrator::FlightHeader header;
  header.job = "test";
  header.push = 3;
  header.version = "7";
  header.outcome = "failed";
  header.startedAt = "2026-01-31T12:00:00.000Z";
  header.ranks = size;
  header.firstCause = firstCause;
  header.engines = {"e0", "e1"};
  header.missing = missing;
  std::string text;
  for (const auto& [rank, lines] : ranks) {
    header.lines += static_cast<std::uint64_t>(std::count(lines.begin(), lines.end(), '\n'));
    text += lines;
  }
  return orchestrator::headerLine(header) + text;
}

}  // namespace pushrod::tools::testing
