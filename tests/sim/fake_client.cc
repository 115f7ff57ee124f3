// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/fake_client.h"

#include <memory>
#include <utility>

namespace pushrod::sim {

namespace {

constexpr Duration kLatency{1};

Status broken(const std::string& text, Outcome outcome) {
  return Status(Code::kUnavailable, text, outcome);
}

}  // namespace

void FakeClient::answer(std::uint64_t id, Reply reply) {
  if (id != current_ || id == 0) {
    return;  // cancelled or past its deadline
  }
  current_ = 0;
  executor_.cancel(timer_);
  reply.kind = kind_;
  const Done done = std::exchange(done_, nullptr);
  done(std::move(reply));
}

void FakeClient::failLater(const Status& status, int http) {
  executor_.postAt(executor_.now() + kLatency, [this, id = current_, status, http] {
    Reply reply;
    reply.status = status;
    reply.httpStatus = http;
    answer(id, std::move(reply));
  });
}

void FakeClient::send(const Call& call, const std::function<Reply(Reply)>& change) {
  // The request travels and is served on the world's time, whatever becomes of this rank.
  executor_.postAt(executor_.now() + kLatency, [this, id = current_, call, change] {
    engine_.submit(call, [this, id, change](Reply reply) {
      if (change == nullptr) {
        return;
      }
      executor_.postAt(executor_.now() + kLatency,
                       [this, id, changed = change(std::move(reply))]() mutable {
                         answer(id, std::move(changed));
                       });
    });
  });
}

void FakeClient::call(Call call, Deadline deadline, Done done) {
  if (current_ != 0) {
    hooks_.complain("two calls at once to " + name());
  }
  if (deadline.passed(executor_)) {
    hooks_.complain("a call after its deadline: " + std::string(callName(call.kind)));
  }
  current_ = ++last_;
  kind_ = call.kind;
  done_ = std::move(done);
  timer_ = executor_.postAt(deadline.when(), [this, id = current_] {
    Reply reply;
    reply.status = Status(Code::kDeadlineExceeded, "no answer in time", Outcome::kUnknown);
    answer(id, std::move(reply));
  });
  const FaultKind fault = hooks_.fault(call);
  const auto same = [](Reply reply) { return reply; };
  if (!engine_.alive()) {
    failLater(broken("connection refused", Outcome::kNotSent), 0);
    return;
  }
  switch (fault) {
    case FaultKind::kRefused:
      failLater(broken("connection refused", Outcome::kNotSent), 0);
      return;
    case FaultKind::k4xx:
      failLater(Status(Code::kInvalidArgument, "bad request", Outcome::kRejected), 400);
      return;
    case FaultKind::k5xxBefore:
      failLater(broken("internal error", Outcome::kUnknown), 500);
      return;
    case FaultKind::k5xxAfter:
      send(call, [](Reply reply) {
        reply.status = broken("internal error", Outcome::kUnknown);
        reply.httpStatus = 500;
        return reply;
      });
      return;
    case FaultKind::kLostReply:
      send(call, nullptr);
      return;
    case FaultKind::kLostRequest:
      return;
    case FaultKind::kRestart:
    case FaultKind::kDead:
      hooks_.crash(fault == FaultKind::kDead);
      failLater(broken("connection reset", Outcome::kUnknown), 0);
      return;
    default:
      send(call, same);
      return;
  }
}

void FakeClient::cancel(const Status& reason) {
  if (current_ != 0) {
    executor_.post([this, id = current_, reason] {
      Reply reply;
      reply.status = reason.with(Outcome::kUnknown);
      answer(id, std::move(reply));
    });
  }
}

}  // namespace pushrod::sim
