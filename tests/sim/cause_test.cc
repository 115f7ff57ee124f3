// SPDX-License-Identifier: Apache-2.0
// Which of two failures with one reason is told as the first cause.
#include <functional>
#include <utility>

#include <gtest/gtest.h>

#include "tests/sim/world.h"

namespace pushrod::sim {
namespace {

/// Answers a failed update late: after some reads, in which the channel's end is noticed.
class LateAnswers final : public EngineClient {
 public:
  explicit LateAnswers(std::unique_ptr<EngineClient> inner) : inner_(std::move(inner)) {}

  void call(Call call, Deadline deadline, Done done) override {
    inner_->call(call, deadline, [this, call, deadline, done](Reply reply) {
      if (call.kind != CallKind::kUpdate || reply.status.ok()) {
        done(std::move(reply));
        return;
      }
      answerAfter(kReads, deadline, [done, reply] { done(reply); });
    });
  }

  // The answer that is under way has been given already.
  void cancel(const Status& /*reason*/) override {}

  [[nodiscard]] const std::string& name() const override { return inner_->name(); }

  [[nodiscard]] const std::string& url() const override { return inner_->url(); }

 private:
  static constexpr int kReads = 5;

  void answerAfter(int reads, Deadline deadline, const std::function<void()>& then) {
    if (reads == 0) {
      then();
      return;
    }
    Call read;
    read.kind = CallKind::kReadPaused;
    inner_->call(read, deadline, [this, reads, deadline, then](const Reply&) {
      answerAfter(reads - 1, deadline, then);
    });
  }

  std::unique_ptr<EngineClient> inner_;
};

// The connections of an engine that restarts close first; what its update call then answers is the
// cause all the same, and the connection a note on it.
TEST(Cause, AnEnginesAnswerAndNotItsClosedConnection) {
  int noticedFirst = 0;
  bool hit = true;
  for (FaultPlan plan{1, 1, FaultKind::kRestart, 1}; hit && plan.k < 400; ++plan.k) {
    World::Options options;
    options.plan = plan;
    options.second = false;
    options.decorate = [](std::unique_ptr<EngineClient> inner, World&) {
      return std::unique_ptr<EngineClient>(std::make_unique<LateAnswers>(std::move(inner)));
    };
    const Outcome outcome = World(std::move(options)).run();
    hit = outcome.hit;
    if (!hit || outcome.hitIn != Phase::kStream) {
      continue;
    }
    const PushReport& report = outcome.first.front().report;
    EXPECT_EQ(report.firstCause.message(), "connection reset") << plan.replay();
    for (const std::string& note : report.notes) {
      noticedFirst += note.find("the engine closed its connection") != std::string::npos ? 1 : 0;
    }
  }
  EXPECT_GT(noticedFirst, 0);
}

}  // namespace
}  // namespace pushrod::sim
