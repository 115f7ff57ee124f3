// SPDX-License-Identifier: Apache-2.0
#include "engines/vllm/identify_flow.h"

#include <algorithm>
#include <utility>

#include "engines/vllm/classify.h"
#include "engines/vllm/json.h"
#include "engines/vllm/profiles.h"
#include "engines/vllm/reply_text.h"

namespace pushrod::engines::vllm {

namespace {

constexpr Duration kFirstPause = std::chrono::milliseconds(100);
constexpr Duration kLongestPause = std::chrono::milliseconds(800);
/// After so many tries somebody may wonder what is waited for.
constexpr int kTriesInSilence = 6;
/// The first /server_info of a server process takes up to 20 s.
constexpr Duration kOptionalLimit = std::chrono::seconds(30);

bool isMissing(int status) {
  return status == 404 || status == 405;
}

}  // namespace

void IdentifyFlow::start() {
  askVersion();
}

std::string IdentifyFlow::at(const std::string& target) const {
  return state_.where(getRequest("", target));
}

void IdentifyFlow::run(const Step& step) {
  const Duration limit = step.need == Need::kOptional ? kOptionalLimit : state_.options.answer;
  send(getRequest(step.label, step.target),
       deadline_.earliest(Deadline::after(state_.executor, limit)),
       [this, step](const Result<http::Response>& result) { onResult(step, result); });
}

void IdentifyFlow::onResult(const Step& step, const Result<http::Response>& result) {
  if (result && result->status >= 200 && result->status < 300) {
    tries_ = 0;
    (this->*step.read)(*result);
    return;
  }
  if (step.need == Need::kOptional) {
    (this->*step.next)();
    return;
  }
  // An engine that starts refuses connections or answers 503; in another protocol it never speaks.
  const bool noEngine = speaksNoHttp(result) && step.read == &IdentifyFlow::readVersion;
  if (isTransient(result) && !noEngine) {
    tryLater(step, result);
    return;
  }
  if (result && step.need == Need::kRoute) {
    weightInfoMissing_ = isMissing(result->status);
    (this->*step.next)();
    return;
  }
  if (result && isMissing(result->status)) {
    refuseMissingRoute(step, result->status);
    return;
  }
  finishWith(httpVerdict(CallKind::kIdentify, result, state_.features, at(step.target)));
}

void IdentifyFlow::tryLater(const Step& step, const Result<http::Response>& result) {
  const Duration left = deadline_.remaining(state_.executor);
  Duration pause = kFirstPause;
  for (int i = 0; i < tries_ && pause < kLongestPause; ++i) {
    pause *= 2;
  }
  ++tries_;
  if (tries_ == kTriesInSilence) {
    const Status why = httpVerdict(CallKind::kIdentify, result, state_.features, at(step.target));
    state_.warn(
        "it is not ready yet and is asked again until timeouts.startup, or "
        "timeouts.connect for one that was seen before: " +
        why.message());
  }
  if (pause < left) {
    later(pause, [this, step] { run(step); });
    return;
  }
  const Status last = httpVerdict(CallKind::kIdentify, result, state_.features, at(step.target));
  later(left, [this, last] {
    finishWith(Status(Code::kDeadlineExceeded,
                      "the engine was not ready within the limit (timeouts.startup, "
                      "timeouts.connect): " +
                          last.message(),
                      last.outcome()));
  });
}

void IdentifyFlow::askVersion() {
  run({"version", "/version", Need::kRequired, &IdentifyFlow::readVersion, nullptr});
}

void IdentifyFlow::readVersion(const http::Response& response) {
  const auto body = parseJson(response.body);
  const auto version = body ? stringOf(member(*body, "version")) : std::nullopt;
  if (!version) {
    refuseBody("/version", response);
    return;
  }
  const CommonOptions& common = state_.options.common;
  Result<ProfileChoice> choice = chooseProfile(*version, common.profile, common.unknownProfile);
  if (!choice) {
    finishWith(choice.status());
    return;
  }
  if (!choice->warning.empty()) {
    state_.warn(choice->warning);
  }
  identity_.release = *version;
  identity_.features = choice->features;
  if (identity_.features.hasVersion) {
    askWeightInfo();
  } else {
    askSleeping();
  }
}

void IdentifyFlow::askWeightInfo() {
  run({"weight_info",
       "/weight_info",
       Need::kRoute,
       &IdentifyFlow::onWeightInfo,
       &IdentifyFlow::askSleeping});
}

void IdentifyFlow::onWeightInfo(const http::Response&) {
  askSleeping();
}

void IdentifyFlow::askSleeping() {
  run({"is_sleeping", "/is_sleeping", Need::kRequired, &IdentifyFlow::readSleeping, nullptr});
}

void IdentifyFlow::readSleeping(const http::Response& response) {
  if (weightInfoMissing_) {
    refuse("the server reports release " + quoted(identity_.release) + " (profile " +
           identity_.features.profile + "), but has no " + at("/weight_info") +
           ", which exists from 0.27 on; set engines.profile to the release whose routes it has");
    return;
  }
  const auto body = parseJson(response.body);
  const auto sleeping = body ? boolOf(member(*body, "is_sleeping")) : std::nullopt;
  if (!sleeping) {
    refuseBody("/is_sleeping", response);
    return;
  }
  askWorldSize();
}

void IdentifyFlow::askWorldSize() {
  run({"get_world_size",
       "/get_world_size",
       Need::kRequired,
       &IdentifyFlow::readWorldSize,
       nullptr});
}

void IdentifyFlow::readWorldSize(const http::Response& response) {
  const auto body = parseJson(response.body);
  const auto size = body ? intOf(member(*body, "world_size")) : std::nullopt;
  if (!size || *size < 1) {
    refuseBody("/get_world_size", response);
    return;
  }
  identity_.worldSize = *size;
  if (*size > 1) {
    askCoreSize();
  } else {
    coreSize_ = 1;
    askModels();
  }
}

void IdentifyFlow::askCoreSize() {
  run({"get_world_size",
       "/get_world_size?include_dp=false",
       Need::kOptional,
       &IdentifyFlow::readCoreSize,
       &IdentifyFlow::askModels});
}

void IdentifyFlow::readCoreSize(const http::Response& response) {
  const auto body = parseJson(response.body);
  const auto size = body ? intOf(member(*body, "world_size")) : std::nullopt;
  if (size && *size >= 1 && identity_.worldSize % *size == 0) {
    coreSize_ = *size;
  }
  askModels();
}

void IdentifyFlow::askModels() {
  run({"models",
       "/v1/models",
       Need::kOptional,
       &IdentifyFlow::readModelList,
       &IdentifyFlow::askServerInfo});
}

void IdentifyFlow::readModelList(const http::Response& response) {
  models_ = readModels(response.body);
  if (!models_.empty()) {
    identity_.model = models_.front();
  }
  askServerInfo();
}

void IdentifyFlow::askServerInfo() {
  run({"server_info",
       "/server_info?config_format=json",
       Need::kOptional,
       &IdentifyFlow::readInfo,
       &IdentifyFlow::askMetrics});
}

void IdentifyFlow::readInfo(const http::Response& response) {
  const ServerInfo info = readServerInfo(response.body);
  backend_ = info.backend;
  identity_.backend = info.backend.value_or("");
  identity_.dtype = info.dtype;
  identity_.quantization = info.quantization;
  identity_.executor = info.executor;
  identity_.pipelineStages = info.pipelineParallel.value_or(0);
  identity_.dataParallel = info.dataParallel.value_or(0);
  externalCache_ = info.externalCache ? ExternalCache::kThere : ExternalCache::kNone;
  if (info.externalCache && state_.options.push.flush && !state_.options.push.flushExternal) {
    state_.warn("it has an external cache, which push.flush_external: false leaves as it is");
  }
  askMetrics();
}

void IdentifyFlow::askMetrics() {
  // Not only when the scheduler stands still: releases up to 0.23 resume it while the weights are
  // still away.
  run({"metrics",
       "/metrics",
       Need::kOptional,
       &IdentifyFlow::readMetrics,
       &IdentifyFlow::conclude});
}

void IdentifyFlow::readMetrics(const http::Response& response) {
  identity_.asleep = readAsleep(response.body);
  conclude();
}

void IdentifyFlow::conclude() {
  if (coreSize_ && identity_.dataParallel == 0) {
    identity_.dataParallel = identity_.worldSize / *coreSize_;
  }
  const Status verdict = checkIdentity(identity_, backend_, models_, state_.options);
  if (!verdict) {
    refuse(verdict.message());
    return;
  }
  if (identity_.pipelineStages == 0) {
    identity_.pipelineStages = state_.options.engine.expect.pipelineStages.value_or(0);
  }
  const int cores = std::max(identity_.dataParallel, 1);
  const auto identity = std::make_shared<const EngineIdentity>(identity_);
  state_.identity = identity;
  state_.features = identity_.features;
  state_.externalCache = externalCache_;
  state_.workers = coreSize_.value_or(std::max(identity_.worldSize / cores, 1));
  // It may have been restarted, or others may have called it, since it was last measured.
  state_.lost = Status();
  state_.lagDoubtful = state_.canLag();
  if (!state_.canLag()) {
    state_.lag = 0;
  }
  Reply reply;
  reply.httpStatus = 200;
  reply.identity = identity;
  finish(std::move(reply));
}

void IdentifyFlow::refuse(const std::string& text) {
  finishWith(Status(
      Code::kFailedPrecondition, state_.options.engine.url + ": " + text, Outcome::kRejected));
}

void IdentifyFlow::refuseMissingRoute(const Step& step, int status) {
  if (step.label == "version") {
    refuse("GET /version answered " + std::to_string(status) +
           ", so that this is no vLLM server; correct the engine's url");
    return;
  }
  refuse("GET " + step.target + " answered " + std::to_string(status) +
         ", so that its weight-update routes are switched off; start the server with "
         "VLLM_SERVER_DEV_MODE=1");
}

void IdentifyFlow::refuseBody(const std::string& target, const http::Response& response) {
  const std::string body = oneLine(response.body);
  finishWith(Status(Code::kUnavailable,
                    at(target) + " answered " + std::to_string(response.status) +
                        " without the JSON of this route but with " +
                        (body.empty() ? "an empty body" : body),
                    Outcome::kUnknown));
}

}  // namespace pushrod::engines::vllm
