// SPDX-License-Identifier: Apache-2.0
#include "engines/vllm/routes.h"

#include <utility>

#include <boost/json/serialize.hpp>

namespace pushrod::engines::vllm {

namespace {

std::string jsonString(const std::string& text) {
  return boost::json::serialize(boost::json::string_view(text.data(), text.size()));
}

EngineRequest post(std::string_view label, const std::string& query = "") {
  EngineRequest request;
  request.label = label;
  request.http.method = "POST";
  request.http.target = "/" + std::string(label) + query;
  return request;
}

EngineRequest postBody(std::string_view label, std::string body) {
  EngineRequest request = post(label);
  request.http.body = std::make_shared<const std::string>(std::move(body));
  return request;
}

/// {"init_info": ...}: the caller's text is JSON already and is not read again.
EngineRequest postWrapped(std::string_view label, std::string_view key, const Call& call) {
  std::string body;
  const std::string_view inner = call.body == nullptr ? std::string_view("{}") : *call.body;
  body.reserve(inner.size() + key.size() + 8);
  body.append("{\"").append(key).append("\":").append(inner).append("}");
  return postBody(label, std::move(body));
}

std::string pauseQuery(const PushConfig& push) {
  std::string query = "?mode=";
  switch (push.pause) {
    case PauseMode::kKeep:
      query += "keep";
      break;
    case PauseMode::kWait:
      query += "wait";
      break;
    case PauseMode::kAbort:
      query += "abort";
      break;
  }
  return query + (push.clearCache ? "&clear_cache=true" : "&clear_cache=false");
}

EngineRequest finishRequest(const Call& call) {
  if (!call.hasVersion) {
    return postBody(callName(CallKind::kFinish), "{}");
  }
  return postBody(callName(CallKind::kFinish),
                  "{\"weight_version\":" + jsonString(call.version) + "}");
}

EngineRequest repeatable(EngineRequest request) {
  request.http.repeat = http::Repeat::kSafe;
  return request;
}

}  // namespace

EngineRequest getRequest(std::string_view label, std::string target) {
  EngineRequest request;
  request.label = label;
  request.http.target = std::move(target);
  return repeatable(std::move(request));
}

EngineRequest resetRequest(std::string_view label) {
  return repeatable(post(label));
}

EngineRequest probeRequest(Probe probe) {
  constexpr std::string_view kLabel = "collective_rpc";
  switch (probe) {
    case Probe::kRank:
      return postBody(kLabel, R"({"method":"__getattr__","args":["rank"]})");
    case Probe::kSessionFlag:
      return postBody(kLabel, R"({"method":"__getattr__","args":["_weight_update_active"]})");
    case Probe::kCheckHealth:
      break;
  }
  return postBody(kLabel, R"({"method":"check_health"})");
}

EngineRequest requestFor(const Call& call, const PushConfig& push, ExternalCache external) {
  const std::string_view name = callName(call.kind);
  switch (call.kind) {
    case CallKind::kReadPaused:
    case CallKind::kReadVersion:
      return getRequest(name, "/" + std::string(name));
    case CallKind::kReadSession:
      return probeRequest(Probe::kSessionFlag);
    case CallKind::kPause:
      return repeatable(post(name, pauseQuery(push)));
    case CallKind::kSetVersion:
      return postBody(name, "{\"new_version\":" + jsonString(call.version) + "}");
    case CallKind::kInit:
      return postWrapped(name, "init_info", call);
    case CallKind::kStart:
      // 0.22 to 0.24 refuse an empty body, later releases do not read it.
      return postBody(call.draft ? "start_draft_weight_update" : name, "{}");
    case CallKind::kUpdate:
      return postWrapped(name, "update_info", call);
    case CallKind::kFinish:
      return finishRequest(call);
    case CallKind::kFlush: {
      // An engine without a connector answers that this reset failed.
      const bool asked = push.flushExternal && external == ExternalCache::kThere;
      return repeatable(post(name, asked ? "?reset_external=true" : ""));
    }
    case CallKind::kWake:
      // Never without a tag: that would wake the scheduling as well.
      return post(name, "?tags=" + call.tag);
    case CallKind::kChecksums:
      return postBody(name, R"({"action":"checksum"})");
    case CallKind::kResume:
    case CallKind::kShutdown:
    case CallKind::kIdentify:
    case CallKind::kMeasureLag:
      break;
  }
  return post(name);
}

bool reachesWorkers(CallKind kind) {
  switch (kind) {
    case CallKind::kPause:  // clears the workers' caches
    case CallKind::kShutdown:
    case CallKind::kInit:
    case CallKind::kStart:
    case CallKind::kUpdate:
    case CallKind::kFinish:
    case CallKind::kFlush:
    case CallKind::kReadSession:
    case CallKind::kMeasureLag:
    case CallKind::kWake:
    case CallKind::kChecksums:
      return true;
    case CallKind::kIdentify:
    case CallKind::kReadPaused:
    case CallKind::kReadVersion:
    case CallKind::kResume:
    case CallKind::kSetVersion:
      break;
  }
  return false;
}

bool isRepeatable(CallKind kind) {
  return kind == CallKind::kReadPaused || kind == CallKind::kReadVersion ||
         kind == CallKind::kPause || kind == CallKind::kFlush;
}

}  // namespace pushrod::engines::vllm
