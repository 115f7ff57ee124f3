// SPDX-License-Identifier: Apache-2.0
#include "engines/vllm/session_flow.h"

#include <utility>

#include "engines/vllm/classify.h"

namespace pushrod::engines::vllm {

void SessionFlow::start() {
  prepareWorkers([this](const Status& status) {
    if (!status) {
      finishWith(status);
      return;
    }
    readsLeft_ = 1 + (state_.canLag() ? state_.lag : 0);
    readFlag();
  });
}

void SessionFlow::readFlag() {
  --readsLeft_;
  sendRepeatedly(probeRequest(Probe::kSessionFlag),
                 [this](const Result<http::Response>& result) { onFlag(result); });
}

void SessionFlow::onFlag(const Result<http::Response>& result) {
  if (readsLeft_ > 0 && result && result->status < 300) {
    readFlag();
    return;
  }
  Reply reply =
      classify(call_, result, state_.features, state_.where(probeRequest(Probe::kSessionFlag)));
  if (reply.status || isTransient(result) || !result) {
    finish(std::move(reply));
    return;
  }
  onUnreadable(reply.status);
}

void SessionFlow::onUnreadable(const Status& why) {
  if (state_.workers > 1) {
    lose(Status(Code::kFailedPrecondition,
                "whether a session is open cannot be read (" + why.message() +
                    "), and with several workers it must not be tried out; restart the engine",
                Outcome::kNotSent));
    return;
  }
  Call close;
  close.kind = CallKind::kFinish;
  const EngineRequest request = requestFor(close, state_.options.push, state_.externalCache);
  sendRepeatedly(request, [this, close, request](const Result<http::Response>& result) {
    Reply reply = classify(close, result, state_.features, state_.where(request));
    const bool noSession =
        reply.httpStatus == 500 && reply.status.code() == Code::kFailedPrecondition;
    if (noSession) {
      reply.status = Status();
    }
    if (reply.status) {
      reply.flag = false;
    }
    finish(std::move(reply));
  });
}

}  // namespace pushrod::engines::vllm
