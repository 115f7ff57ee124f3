// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/known_bad/rank_decorators.h"

#include <functional>
#include <utility>

namespace pushrod::sim::known_bad {

using orchestrator::ActionKind;
using orchestrator::Caller;
using orchestrator::CallerRequest;
using orchestrator::CallerResult;

namespace {

/// Passes operations on, changing requests and results; some are answered at once instead, and may
/// still be done.
class Decorator final : public Caller {
 public:
  enum class Instead { kNo, kSkipped, kDoneLater };

  struct Rules {
    std::function<Instead(const CallerRequest&)> instead = nullptr;
    std::function<void(CallerRequest&)> alter = nullptr;
    std::function<void(const CallerRequest&, CallerResult&)> change = nullptr;
  };

  Decorator(CallerPtr inner, Executor& executor, Rules rules)
      : inner_(std::move(inner)), executor_(executor), rules_(std::move(rules)) {}

  void perform(CallerRequest request, Done done) override {
    if (rules_.alter) {
      rules_.alter(request);
    }
    const Instead instead = rules_.instead ? rules_.instead(request) : Instead::kNo;
    if (instead != Instead::kNo) {
      executor_.post([done] { done(CallerResult()); });
      if (instead == Instead::kDoneLater) {
        inner_->perform(std::move(request), [](const CallerResult&) {});
      }
      return;
    }
    inner_->perform(request, [this, request, done](CallerResult result) {
      if (rules_.change) {
        rules_.change(request, result);
      }
      done(std::move(result));
    });
  }

  bool abortSource() override { return inner_->abortSource(); }

  void interruptPlane(const Status& reason) override { inner_->interruptPlane(reason); }

  void interruptVote(const Status& reason) override { inner_->interruptVote(reason); }

 private:
  CallerPtr inner_;
  Executor& executor_;
  Rules rules_;
};

CallerPtr decorated(CallerPtr inner, Executor& executor, Decorator::Rules rules) {
  return std::make_unique<Decorator>(std::move(inner), executor, std::move(rules));
}

}  // namespace

CallerPtr votesBeforeBytesLeft(CallerPtr inner, int /*rank*/, Executor& executor) {
  return decorated(std::move(inner), executor, {.instead = [](const CallerRequest& request) {
                     const bool sends = request.kind == ActionKind::kPlanePut ||
                                        request.kind == ActionKind::kPlaneFlush;
                     return sends ? Decorator::Instead::kDoneLater : Decorator::Instead::kNo;
                   }});
}

CallerPtr retriesTwice(CallerPtr inner, int /*rank*/, Executor& executor) {
  return decorated(std::move(inner), executor, {.alter = [](CallerRequest& request) {
                     const Phase phase = request.key.phase;
                     if (request.kind != ActionKind::kVote || request.key.attempt != 2 ||
                         phase < Phase::kClean || phase > Phase::kConfirm) {
                       return;
                     }
                     request.ballot.decide = [](const Status& first) {
                       return first.ok() ? Decision::kGo : Decision::kResend;
                     };
                   }});
}

CallerPtr takesLostVerdictForDone(CallerPtr inner, int /*rank*/, Executor& executor) {
  return decorated(std::move(inner),
                   executor,
                   {.change = [](const CallerRequest& request, CallerResult& result) {
                     if (request.kind == ActionKind::kVote &&
                         request.key.phase == Phase::kVerdict && !result.status.ok()) {
                       result = CallerResult();
                     }
                   }});
}

CallerPtr skipsAVote(CallerPtr inner, int rank, Executor& executor) {
  return decorated(std::move(inner), executor, {.instead = [rank](const CallerRequest& request) {
                     const bool skips = rank != 0 && request.kind == ActionKind::kVote &&
                                        request.key.phase == Phase::kConfirm;
                     return skips ? Decorator::Instead::kSkipped : Decorator::Instead::kNo;
                   }});
}

CallerPtr keepsItsOwnCause(CallerPtr inner, int rank, Executor& executor) {
  return decorated(
      std::move(inner),
      executor,
      {.change = [rank](const CallerRequest& request, CallerResult& result) {
        if (rank != 0 && request.kind == ActionKind::kVote && !result.verdict.first.ok()) {
          result.verdict.first = Status(Code::kInternal, "something failed");
        }
      }});
}

}  // namespace pushrod::sim::known_bad
