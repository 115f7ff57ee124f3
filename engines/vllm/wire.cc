// SPDX-License-Identifier: Apache-2.0
#include "engines/vllm/wire.h"

#include <utility>

#include "common/check.h"

namespace pushrod::engines::vllm {

namespace {

metrics::RequestResult resultOf(const Result<http::Response>& result) {
  if (!result) {
    return result.status().code() == Code::kDeadlineExceeded ? metrics::RequestResult::kTimeout
                                                             : metrics::RequestResult::kUnreachable;
  }
  if (result->status >= 200 && result->status < 300) {
    return metrics::RequestResult::kOk;
  }
  return result->status >= 400 && result->status < 500 ? metrics::RequestResult::kRejected
                                                       : metrics::RequestResult::kError;
}

/// Whether a probe's result speaks against the engine: nothing listens, or it says itself that its
/// core is dead.
bool isStrike(const Result<http::Response>& result) {
  if (result) {
    return result->status == 503;
  }
  return result.status().code() == Code::kUnavailable &&
         result.status().outcome() == Outcome::kNotSent;
}

}  // namespace

Wire::Wire(Executor& executor,
           std::unique_ptr<http::Client> calls,
           std::unique_ptr<http::Client> probes,
           RequestObserver observer)
    : executor_(executor),
      observer_(std::move(observer)),
      calls_(std::move(calls)),
      probes_(std::move(probes)) {}

Wire::~Wire() {
  executor_.cancel(refusal_);
  executor_.cancel(timer_);
}

void Wire::send(const EngineRequest& request, Deadline deadline, Done done) {
  PUSHROD_CHECK(!done_);
  done_ = std::move(done);
  const TimePoint sentAt = executor_.now();
  foundDead_ = false;
  strikes_ = 0;
  if (deadline.passed(executor_)) {
    refusal_ = executor_.postAt(sentAt, [this] {
      refusal_ = 0;
      onAnswer(Status(Code::kDeadlineExceeded, "no time was left for the request"));
    });
    return;
  }
  const std::uint64_t serial = ++serial_;
  const auto answered =
      [this, serial, label = request.label, sentAt](Result<http::Response> result) {
        observe(label, result, sentAt);
        if (serial == serial_) {
          onAnswer(std::move(result));
        }
      };
  id_ = calls_->send(request.http, deadline, answered);
  armProbe(sentAt + kProbeEvery);
}

bool Wire::abandon(const Status& reason) {
  if (!done_) {
    return false;
  }
  done_ = nullptr;
  stopProbing();
  if (refusal_ != 0) {
    executor_.cancel(refusal_);
    refusal_ = 0;
    return false;
  }
  ++serial_;
  calls_->cancel(id_, reason);
  return true;
}

void Wire::onAnswer(Result<http::Response> result) {
  if (!done_) {
    return;
  }
  stopProbing();
  std::exchange(done_, nullptr)(std::move(result));
}

void Wire::armProbe(TimePoint when) {
  timer_ = executor_.postAt(when, [this] {
    timer_ = 0;
    probe();
  });
}

void Wire::probe() {
  const TimePoint sentAt = executor_.now();
  armProbe(sentAt + kProbeEvery);
  if (probeOut_) {
    return;
  }
  probeOut_ = true;
  const std::uint64_t serial = ++probeSerial_;
  const Deadline limit = Deadline::after(executor_, kProbeLimit);
  probeId_ = probes_->send(getRequest("health", "/health").http,
                           limit,
                           [this, serial, sentAt](const Result<http::Response>& result) {
                             if (serial == probeSerial_) {
                               onProbe(result, sentAt);
                             }
                           });
}

void Wire::onProbe(const Result<http::Response>& result, TimePoint sentAt) {
  probeOut_ = false;
  observe("health", result, sentAt);
  if (isStrike(result)) {
    ++strikes_;
    lastProbe_ = result ? "says 503" : "cannot be asked (" + result.status().message() + ")";
  } else if (result) {
    strikes_ = 0;
  }
  if (strikes_ >= kStrikes && done_) {
    foundDead_ = true;
    const Status gone(Code::kUnavailable,
                      "the engine died while the request was out: its /health " + lastProbe_,
                      Outcome::kUnknown);
    stopProbing();
    calls_->cancel(id_, gone);
  }
}

void Wire::stopProbing() {
  executor_.cancel(timer_);
  timer_ = 0;
  ++probeSerial_;
  if (probeOut_) {
    probeOut_ = false;
    probes_->cancel(probeId_, Status(Code::kCancelled, "the watched request has ended"));
  }
}

void Wire::observe(std::string_view label, const Result<http::Response>& result, TimePoint since) {
  if (observer_) {
    observer_(
        label, resultOf(result), std::chrono::duration<double>(executor_.now() - since).count());
  }
}

}  // namespace pushrod::engines::vllm
