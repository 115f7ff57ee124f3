// SPDX-License-Identifier: Apache-2.0
#include "engines/vllm/call_flow.h"

#include <array>
#include <utility>

#include "engines/vllm/classify.h"

namespace pushrod::engines::vllm {

namespace {

constexpr std::array<std::string_view, 2> kMoreCaches = {"reset_mm_cache", "reset_encoder_cache"};

}  // namespace

void CallFlow::start() {
  if (!reachesWorkers(call_.kind)) {
    sendReal();
    return;
  }
  prepareWorkers([this](const Status& status) {
    if (!status) {
      finishWith(status);
      return;
    }
    sendReal();
  });
}

bool CallFlow::mayRepeat() const {
  const bool plainClose =
      call_.kind == CallKind::kFinish && !call_.hasVersion && state_.workers == 1;
  return isRepeatable(call_.kind) || plainClose;
}

void CallFlow::sendReal() {
  const EngineRequest request = requestFor(call_, state_.options.push, state_.externalCache);
  const auto answered = [this](const Result<http::Response>& result) { onReal(result); };
  if (mayRepeat()) {
    sendRepeatedly(request, answered);
  } else {
    send(request, deadline_, answered);
  }
}

void CallFlow::onReal(const Result<http::Response>& result) {
  const EngineRequest request = requestFor(call_, state_.options.push, state_.externalCache);
  reply_ = classify(call_, result, state_.features, state_.where(request));
  const bool workersRaised = isExecutorFailure(result);
  const bool unanswered = !result && reply_.status.outcome() == Outcome::kUnknown;
  if (state_.canLag() && (workersRaised || (unanswered && reachesWorkers(call_.kind)))) {
    // Measured before the next call and not now: a worker may still be blocked in this one, and end
    // only when the sender has heard of the failure.
    state_.lagDoubtful = true;
  }
  if (call_.kind == CallKind::kFinish && repeats() > 0 &&
      reply_.status.outcome() == Outcome::kRejected &&
      reply_.status.code() == Code::kFailedPrecondition && reply_.httpStatus == 500) {
    // The first try closed the session and its answer was lost.
    reply_.status = Status();
  }
  if (!reply_.status) {
    finish(reply_);
  } else if (call_.kind == CallKind::kFlush) {
    flushMore(0);
  } else {
    settleAndFinish();
  }
}

void CallFlow::flushMore(std::size_t index) {
  if (index == kMoreCaches.size()) {
    settleAndFinish();
    return;
  }
  const EngineRequest request = resetRequest(kMoreCaches[index]);
  sendRepeatedly(request, [this, index, request](const Result<http::Response>& result) {
    const bool absent = result && (result->status == 404 || result->status == 405);
    const Status verdict =
        httpVerdict(CallKind::kFlush, result, state_.features, state_.where(request));
    if (verdict || absent) {
      flushMore(index + 1);
      return;
    }
    state_.lagDoubtful = state_.lagDoubtful || (state_.canLag() && isExecutorFailure(result));
    reply_.status = verdict;
    reply_.httpStatus = result ? result->status : 0;
    finish(reply_);
  });
}

void CallFlow::settleAndFinish() {
  if (!reachesWorkers(call_.kind) || !state_.canLag() || state_.lag == 0) {
    finish(reply_);
    return;
  }
  settle([this](const Result<http::Response>& result) {
    const EngineRequest request = requestFor(call_, state_.options.push, state_.externalCache);
    const Status late = httpVerdict(
        call_.kind, result, state_.features, "a late reply to " + state_.where(request));
    if (!late) {
      state_.lagDoubtful = true;
      reply_.status = late.with(Outcome::kUnknown);
      reply_.httpStatus = result ? result->status : 0;
    }
    finish(reply_);
  });
}

}  // namespace pushrod::engines::vllm
