// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/fake_client.h"

#include <algorithm>
#include <memory>
#include <utility>

namespace pushrod::sim {

namespace {

constexpr Duration kLatency{1};
/// How long it takes until a second connection has told twice that the core is dead (P20).
constexpr Duration kProbe{6000};
constexpr Duration kUnseenCrash{3};

Status broken(const std::string& text, Outcome outcome) {
  return Status(Code::kUnavailable, text, outcome);
}

Duration usual(Duration given, Duration otherwise) {
  return given == Duration::zero() ? otherwise : given;
}

}  // namespace

void FakeClient::answer(std::uint64_t id, Reply reply) {
  if (current_ == 0 || (id != current_ && !hooks_.believesLate)) {
    return;  // cancelled or past its deadline
  }
  if (kind_ == CallKind::kIdentify && reply.status.ok() && reply.identity == nullptr) {
    return;  // of another call, and of another shape
  }
  current_ = 0;
  executor_.cancel(timer_);
  reply.kind = kind_;
  reply.lag = engine_.lag();
  if (reply.lag > kMostLag) {
    reply.lost = true;
    reply.status = broken("its workers' replies come too late", Outcome::kUnknown);
  }
  const Done done = std::exchange(done_, nullptr);
  done(std::move(reply));
}

void FakeClient::failLater(const Status& status, int http, Duration after, bool lost) {
  const TimePoint when = executor_.now() + after + pace_.of(kLatency);
  executor_.postAt(when, [this, id = current_, status, http, lost] {
    Reply reply;
    reply.status = status;
    reply.httpStatus = http;
    reply.lost = lost;
    answer(id, std::move(reply));
  });
}

void FakeClient::send(const Call& call, const Change& change, const Fault& fault) {
  // One connection: what is sent later arrives later.
  arrives_ = std::max(arrives_, world_.now() + pace_.of(kLatency));
  world_.postAt(arrives_, [this, id = current_, call, change, fault] {
    if (fault.kind == FaultKind::kResumed) {
      engine_.resumeByOther();
    }
    engine_.submit(
        call,
        [this, id, change, fault](Reply reply) {
          if (fault.kind == FaultKind::kRestartAfter) {
            world_.post([this] { hooks_.crash(false); });
          }
          if (change == nullptr) {
            return;
          }
          change(reply);
          const Duration late = fault.kind == FaultKind::kLateReply
                                    ? usual(fault.lasts, std::chrono::seconds(70))
                                    : Duration::zero();
          executor_.postAt(world_.now() + late + pace_.of(kLatency),
                           [this, id, reply = std::move(reply)] { answer(id, reply); });
        },
        fault.kind);
    if (fault.kind == FaultKind::kTwice) {
      engine_.submit(call, nullptr);
    }
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
    if (id != current_) {
      return;
    }
    Reply reply;
    reply.status = Status(Code::kDeadlineExceeded, "no answer in time", Outcome::kUnknown);
    answer(id, std::move(reply));
  });
  const Fault fault = hooks_.fault(call);
  if (!engine_.alive()) {
    failLater(broken("connection refused", Outcome::kNotSent), 0);
  } else if (engine_.frozen()) {
    failLater(broken("its engine core is dead", Outcome::kUnknown), 0, kProbe);
  } else {
    suffer(call, fault);
  }
}

/// The engine's process ends, before, in or after the call.
void FakeClient::crash(const Call& call, const Fault& fault) {
  switch (fault.kind) {
    case FaultKind::kRestart:
    case FaultKind::kDead:
    case FaultKind::kOtherServer:
      hooks_.crash(fault.kind == FaultKind::kDead);
      if (fault.kind == FaultKind::kOtherServer) {
        engine_.change();
      }
      failLater(broken("connection reset", Outcome::kUnknown), 0);
      return;
    case FaultKind::kRestartAfter:
      send(
          call,
          [](Reply& reply) {
            reply.status = broken("connection reset", Outcome::kUnknown);
            reply.httpStatus = 0;
          },
          fault);
      return;
    case FaultKind::kRestartLater:
      send(call, [this, after = usual(fault.lasts, kUnseenCrash)](Reply&) {
        world_.postAt(world_.now() + after, [this] {
          hooks_.crash(false);
          engine_.surprise();
        });
      });
      return;
    default:
      return;
  }
}

void FakeClient::suffer(const Call& call, const Fault& fault) {
  const auto same = [](Reply&) {};
  switch (fault.kind) {
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
      send(call, [](Reply& reply) {
        reply.status = broken("internal error", Outcome::kUnknown);
        reply.httpStatus = 500;
      });
      return;
    case FaultKind::kLost:
      failLater(broken("its workers' replies cannot be told apart", Outcome::kUnknown),
                500,
                Duration::zero(),
                true);
      return;
    case FaultKind::kLostReply:
      send(call, nullptr);
      return;
    case FaultKind::kLostRequest:
      return;
    case FaultKind::kRestart:
    case FaultKind::kDead:
    case FaultKind::kOtherServer:
    case FaultKind::kRestartAfter:
    case FaultKind::kRestartLater:
      crash(call, fault);
      return;
    case FaultKind::kFrozen:
      engine_.freeze();
      failLater(broken("its engine core is dead", Outcome::kUnknown), 0, kProbe);
      return;
    case FaultKind::kStalls:
      engine_.stall(usual(fault.lasts, std::chrono::milliseconds(1500)));
      send(call, same);
      return;
    default:
      send(call, same, fault);
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
