// SPDX-License-Identifier: Apache-2.0
#include "engines/vllm/vllm_client.h"

#include <utility>

#include "common/check.h"
#include "engines/vllm/call_flow.h"
#include "engines/vllm/identify_flow.h"
#include "engines/vllm/lag_flow.h"
#include "engines/vllm/profiles.h"
#include "engines/vllm/session_flow.h"

namespace pushrod::engines::vllm {

namespace {

EngineFeatures newestFeatures() {
  const auto all = profiles();
  return all[all.size() - 2].features();
}

}  // namespace

VllmClient::VllmClient(Executor& executor,
                       std::unique_ptr<http::Client> calls,
                       std::unique_ptr<http::Client> probes,
                       VllmClientOptions options,
                       RequestObserver observer,
                       LogSink* log)
    : executor_(executor),
      options_(std::move(options)),
      wire_(executor, std::move(calls), std::move(probes), std::move(observer)),
      state_{.executor = executor,
             .wire = wire_,
             .options = options_,
             .log = log,
             .features = newestFeatures(),
             .identity = nullptr,
             .lost = Status()} {}

VllmClient::~VllmClient() {
  executor_.cancel(completion_);
}

void VllmClient::call(Call call, Deadline deadline, Done done) {
  PUSHROD_CHECK(!done_);
  done_ = std::move(done);
  kind_ = call.kind;
  flow_ = flowFor(std::move(call), deadline);
  flow_->start();
}

std::unique_ptr<Flow> VllmClient::flowFor(Call call, Deadline deadline) {
  const auto finished = [this](Reply reply) { complete(std::move(reply)); };
  switch (call.kind) {
    case CallKind::kIdentify:
      return std::make_unique<IdentifyFlow>(state_, std::move(call), deadline, finished);
    case CallKind::kMeasureLag:
      return std::make_unique<LagFlow>(state_, std::move(call), deadline, finished);
    case CallKind::kReadSession:
      return std::make_unique<SessionFlow>(state_, std::move(call), deadline, finished);
    default:
      return std::make_unique<CallFlow>(state_, std::move(call), deadline, finished);
  }
}

void VllmClient::cancel(const Status& reason) {
  if (!done_ || completion_ != 0) {
    return;
  }
  const bool sent = wire_.abandon(reason);
  flow_.reset();
  if (sent && state_.canLag() && reachesWorkers(kind_)) {
    state_.lagDoubtful = true;
  }
  Reply reply;
  reply.kind = kind_;
  reply.status = reason.with(sent ? Outcome::kUnknown : Outcome::kNotSent);
  reply.lag = state_.lag;
  reply.lost = !state_.lost.ok();
  complete(std::move(reply));
}

void VllmClient::complete(Reply reply) {
  reply.status = reply.status.at({.engine = options_.engine.name});
  // By way of the executor: the caller is never called back inside its own call, and the flow is
  // not destroyed inside one of its functions.
  completion_ = executor_.postAt(executor_.now(), [this, reply = std::move(reply)] {
    completion_ = 0;
    flow_.reset();
    std::exchange(done_, nullptr)(reply);
  });
}

}  // namespace pushrod::engines::vllm
