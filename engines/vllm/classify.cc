// SPDX-License-Identifier: Apache-2.0
#include "engines/vllm/classify.h"

#include "engines/vllm/json.h"
#include "engines/vllm/reply_text.h"

namespace pushrod::engines::vllm {

namespace {

namespace json = boost::json;

bool isSuccess(int status) {
  return status >= 200 && status < 300;
}

/// With the type of an answer that is no JSON: a gateway's page is known by it.
std::string answered(const std::string& where, const http::Response& response) {
  constexpr std::size_t kLongest = 80;
  const std::string type = oneLine(response.contentType.substr(0, kLongest));
  return where + " answered " + std::to_string(response.status) +
         (type.empty() || type.starts_with("application/json") ? "" : " (" + type + ")");
}

std::string_view remedyFor(CallKind kind, int status) {
  switch (status) {
    case 401:
    case 403:
      return "; give the server's key through engines.token_env";
    case 404:
    case 405:
      if (kind == CallKind::kReadVersion || kind == CallKind::kSetVersion) {
        return "; start the server with VLLM_SERVER_DEV_MODE=1, or set engines.profile when it is "
               "older than 0.27";
      }
      return "; start the server with VLLM_SERVER_DEV_MODE=1, or set engines.profile to the "
             "release whose routes it has";
    default:
      return "";
  }
}

Code codeOf4xx(int status) {
  switch (status) {
    case 408:
    case 425:
    case 429:
      return Code::kUnavailable;
    case 400:
    case 413:
    case 415:
    case 422:
      return Code::kInvalidArgument;
    default:
      return Code::kFailedPrecondition;
  }
}

Status oddBody(const std::string& where, const http::Response& response, std::string_view wanted) {
  const std::string body = oneLine(response.body);
  return {Code::kUnavailable,
          answered(where, response) + " without " + std::string(wanted) + " but with " +
              (body.empty() ? "an empty body" : body),
          Outcome::kUnknown};
}

/// {"message": "..."} of init, start, update, finish and shutdown. The text itself is not compared:
/// it is for people, and other frontends may word it differently.
Status messageBody(const std::string& where, const http::Response& response) {
  const auto body = parseJson(response.body);
  if (!body || !stringOf(member(*body, "message"))) {
    return oddBody(where, response, "the JSON message of this route");
  }
  return {};
}

Status statusBody(const std::string& where,
                  const http::Response& response,
                  const std::string& wanted) {
  const auto body = parseJson(response.body);
  if (!body || stringOf(member(*body, "status")) != wanted) {
    return oddBody(where, response, "the status " + quoted(wanted));
  }
  return {};
}

Status refusedBody(const std::string& where, const http::Response& response) {
  return {Code::kFailedPrecondition,
          answered(where, response) + " with " + oneLine(response.body),
          Outcome::kRejected};
}

Status prefixResetBody(const std::string& where,
                       const http::Response& response,
                       const EngineFeatures& features) {
  if (!features.prefixResetAnswers) {
    return {};
  }
  const auto body = parseJson(response.body);
  const auto success = body ? boolOf(member(*body, "success")) : std::nullopt;
  if (!success) {
    return oddBody(where, response, "the JSON success of this route");
  }
  if (!*success) {
    return {Code::kFailedPrecondition,
            answered(where, response) +
                " with success false: requests still hold cached blocks; "
                "use push.clear_cache: true or push.pause: abort",
            Outcome::kRejected};
  }
  return {};
}

Status setVersionBody(const std::string& where,
                      const http::Response& response,
                      const std::string& version) {
  const auto body = parseJson(response.body);
  const auto success = body ? boolOf(member(*body, "success")) : std::nullopt;
  if (!success) {
    return oddBody(where, response, "the JSON success of this route");
  }
  if (!*success) {
    return refusedBody(where, response);
  }
  const json::value* const stored = member(*body, "new_version");
  if (stored != nullptr && stringOf(stored) != version) {
    return oddBody(where, response, "the version that was sent");
  }
  return {};
}

void readPausedBody(const std::string& where, const http::Response& response, Reply& reply) {
  const auto body = parseJson(response.body);
  reply.flag = body ? boolOf(member(*body, "is_paused")) : std::nullopt;
  if (!reply.flag) {
    reply.status = oddBody(where, response, "the JSON boolean is_paused");
  }
}

/// To the letter: a number, null, an object or a missing key is no version, whatever it looks like.
void readVersionBody(const std::string& where, const http::Response& response, Reply& reply) {
  const auto body = parseJson(response.body);
  const auto version = body ? stringOf(member(*body, "weight_version")) : std::nullopt;
  if (!version) {
    reply.status = oddBody(where, response, "the JSON string weight_version");
    return;
  }
  reply.text = *version;
}

/// Open as soon as one worker says so.
void readSessionBody(const std::string& where, const http::Response& response, Reply& reply) {
  const auto body = parseJson(response.body);
  const json::value* const results = body ? member(*body, "results") : nullptr;
  const json::array* const list = results == nullptr ? nullptr : results->if_array();
  bool readable = list != nullptr && !list->empty();
  bool open = false;
  for (std::size_t i = 0; readable && i < list->size(); ++i) {
    const auto entry = stringOf(&(*list)[i]);
    readable = entry == "True" || entry == "False";
    open = open || entry == "True";
  }
  if (!readable) {
    reply.status = oddBody(where, response, "each worker's session flag");
    return;
  }
  reply.flag = open;
}

/// Empty on older releases; else {"status": "awake" or "sleeping", ...}.
Status wakeBody(const std::string& where,
                const http::Response& response,
                const EngineFeatures& features) {
  if (!features.wakeAnswers && response.body.empty()) {
    return {};
  }
  const auto body = parseJson(response.body);
  const auto status = body ? stringOf(member(*body, "status")) : std::nullopt;
  if (status != "awake" && status != "sleeping") {
    return oddBody(where, response, "the status of this route");
  }
  return {};
}

void readChecksumBody(const std::string& where, const http::Response& response, Reply& reply) {
  const auto body = parseJson(response.body);
  const json::value* const sums = body ? member(*body, "checksums") : nullptr;
  if (sums == nullptr || !sums->is_object()) {
    reply.status = oddBody(where, response, "the parameters' checksums");
    return;
  }
  auto digests = std::make_shared<std::map<std::string, std::string>>();
  for (const auto& entry : sums->get_object()) {
    const auto digest = stringOf(&entry.value());
    if (!digest) {
      reply.status = oddBody(where, response, "the parameters' checksums");
      return;
    }
    digests->emplace(std::string(entry.key().data(), entry.key().size()), *digest);
  }
  reply.text = response.body;
  reply.checksums = std::move(digests);
}

void readBody(const Call& call,
              const http::Response& response,
              const EngineFeatures& features,
              const std::string& where,
              Reply& reply) {
  switch (call.kind) {
    case CallKind::kReadPaused:
      readPausedBody(where, response, reply);
      break;
    case CallKind::kReadSession:
      readSessionBody(where, response, reply);
      break;
    case CallKind::kReadVersion:
      readVersionBody(where, response, reply);
      break;
    case CallKind::kPause:
      reply.status = statusBody(where, response, "paused");
      break;
    case CallKind::kResume:
      reply.status = statusBody(where, response, "resumed");
      break;
    case CallKind::kSetVersion:
      reply.status = setVersionBody(where, response, call.version);
      break;
    case CallKind::kShutdown:
    case CallKind::kInit:
    case CallKind::kStart:
    case CallKind::kUpdate:
    case CallKind::kFinish:
      reply.status = messageBody(where, response);
      break;
    case CallKind::kFlush:
      reply.status = prefixResetBody(where, response, features);
      break;
    case CallKind::kWake:
      reply.status = wakeBody(where, response, features);
      break;
    case CallKind::kChecksums:
      readChecksumBody(where, response, reply);
      break;
    case CallKind::kIdentify:
    case CallKind::kMeasureLag:
      break;
  }
}

}  // namespace

Status httpVerdict(CallKind kind,
                   const Result<http::Response>& result,
                   const EngineFeatures& features,
                   const std::string& where) {
  if (!result) {
    Status failed = result.status();
    if (speaksNoHttp(result) && kind != CallKind::kIdentify) {
      // An engine that was known: something came between, which may pass.
      failed = Status(Code::kUnavailable, failed.message(), failed.outcome());
    }
    // The HTTP client names the request itself where it got so far.
    return failed.message().starts_with(where) ? failed : failed.prefixed(where);
  }
  const http::Response& response = *result;
  if (isSuccess(response.status)) {
    return {};
  }
  if (response.status < 300) {
    return {Code::kUnavailable,
            answered(where, response) + ", which is no HTTP status of an answer",
            Outcome::kUnknown};
  }
  if (response.status < 400) {
    return {Code::kUnavailable,
            answered(where, response) +
                ", a redirect, which is never followed; give the engine's final address",
            Outcome::kUnknown};
  }
  const std::string text = errorText(response.body);
  const std::string message = answered(where, response) + ": " + text;
  if (response.status < 500) {
    return {codeOf4xx(response.status),
            message + std::string(remedyFor(kind, response.status)),
            Outcome::kRejected};
  }
  if (response.status == 500 && isRefusal(kind, text, features)) {
    return {Code::kFailedPrecondition, message, Outcome::kRejected};
  }
  return {Code::kUnavailable, message, Outcome::kUnknown};
}

Reply classify(const Call& call,
               const Result<http::Response>& result,
               const EngineFeatures& features,
               const std::string& where) {
  Reply reply;
  reply.kind = call.kind;
  reply.httpStatus = result ? result->status : 0;
  reply.status = httpVerdict(call.kind, result, features, where);
  if (reply.status) {
    readBody(call, *result, features, where, reply);
  }
  return reply;
}

bool isExecutorFailure(const Result<http::Response>& result) {
  return result && result->status == 500 && isExecutorText(errorText(result->body));
}

bool speaksNoHttp(const Result<http::Response>& result) {
  return !result && result.status().code() == Code::kFailedPrecondition;
}

bool isTransient(const Result<http::Response>& result) {
  if (!result) {
    return result.status().code() == Code::kUnavailable || speaksNoHttp(result);
  }
  switch (result->status) {
    case 408:
    case 425:
    case 429:
    case 502:
    case 503:
    case 504:
      return true;
    default:
      return false;
  }
}

}  // namespace pushrod::engines::vllm
