// SPDX-License-Identifier: Apache-2.0
// Routes of the weight transfer itself.
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engines/reference/body.h"
#include "engines/reference/service.h"

namespace pushrod::engines::reference::transfer {

namespace json = boost::json;

namespace {

std::string rpcError(const std::string& text) {
  return "Call to collective_rpc method failed: " + text;
}

void applyWorkerFault(const Exchange& exchange, WorkerCall& call) {
  if (!exchange.fault) {
    return;
  }
  const FaultRule& fault = *exchange.fault;
  switch (fault.action) {
    case Action::kWorkerFails:
      call.failWorker = fault.worker;
      break;
    case Action::kStopReading:
      call.receive = {ReceiveFault::Kind::kStopReading, fault.afterChunks};
      break;
    case Action::kFailAfterChunks:
      call.receive = {ReceiveFault::Kind::kFail, fault.afterChunks};
      break;
    case Action::kDieAfterChunks:
      call.receive = {ReceiveFault::Kind::kDie, fault.afterChunks};
      break;
    case Action::kOkWithoutReading:
      call.receive = {ReceiveFault::Kind::kSkip, 0};
      break;
    case Action::kCorrupt:
      call.receive = {ReceiveFault::Kind::kCorrupt, fault.afterChunks};
      break;
    default:
      break;
  }
}

using InfoPtr = std::shared_ptr<const json::value>;

/// A route that is one call to all workers.
struct Step {
  Method method;
  const char* operation;  ///< its name in the load the engine reports
  const char* message;    ///< the answer when it went well
};

/// Asks the workers and ends with `good`, or answers the first failure.
void ask(Service& service,
         const ExchangePtr& exchange,
         const Step& step,
         InfoPtr info,
         std::function<void()> good) {
  WorkerCall call;
  call.method = step.method;
  call.info = std::move(info);
  applyWorkerFault(*exchange, call);
  const std::string operation = step.operation;
  ++service.inFlight[operation];
  const TimePoint begun = service.executor.now();
  service.collective(
      call, [&service, exchange, operation, begun, good = std::move(good)](const FanResult& r) {
        service.countOperation(operation, begun);
        if (r.ok) {
          good();
        } else {
          exchange->failed(rpcError(r.error));
        }
      });
}

std::function<void()> answering(const ExchangePtr& exchange, const Step& step) {
  return [exchange, message = step.message] { exchange->json(json::object{{"message", message}}); };
}

/// Asks the workers and answers that the step was done, or the first failure.
void carryOut(Service& service,
              const ExchangePtr& exchange,
              const Step& step,
              InfoPtr info = nullptr) {
  ask(service, exchange, step, std::move(info), answering(exchange, step));
}

/// What validation says of an info: an object is right, and for updates a list of objects; each of
/// the two choices reports what keeps it from being taken.
std::vector<Invalid> wrongTypes(const json::value& info, const std::string& at, bool update) {
  const auto noObject = [](const json::value& value, const std::string& location) {
    return Invalid{"dict_type", location, "Input should be a valid dictionary", shownInput(&value)};
  };
  if (info.is_object()) {
    return {};
  }
  std::vector<Invalid> all = {noObject(info, at)};
  if (update && !info.is_array()) {
    all.push_back({"list_type", at, "Input should be a valid list", shownInput(&info)});
  } else if (update) {
    const json::array& list = info.get_array();
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (!list[i].is_object()) {
        all.push_back(noObject(list[i], at + "." + std::to_string(i)));
      }
    }
    if (all.size() == 1) {
      return {};
    }
  }
  return all;
}

/// A body of a release that does not check types, which must be a mapping all the same; nullopt:
/// answered already.
std::optional<json::value> readLooseObject(Exchange& exchange) {
  auto body = readLooseBody(exchange);
  if (body && !body->is_object()) {
    exchange.failed(noMapping(*body));
    return std::nullopt;
  }
  return body;
}

/// "init_info" or "update_info" out of a body; null: answered already.
InfoPtr readInfo(const Profile& profile, Exchange& exchange, const std::string& key) {
  auto body = profile.typedBodies ? readTypedBody(exchange) : readLooseObject(exchange);
  if (!body) {
    return nullptr;
  }
  json::value* info = body->is_object() ? body->get_object().if_contains(key) : nullptr;
  if (info == nullptr || info->is_null()) {
    if (profile.typedBodies) {
      exchange.invalid({{"missing", "body." + key, "Field required"}});
    } else {
      exchange.badRequest("Missing '" + key + "' in request body");
    }
    return nullptr;
  }
  if (profile.typedBodies) {
    const auto faults = wrongTypes(*info, "body." + key, key == "update_info");
    if (!faults.empty()) {
      exchange.invalid(faults);
      return nullptr;
    }
  }
  return std::make_shared<const json::value>(std::move(*info));
}

/// The version that a finish carries.
struct FinishBody {
  bool good = false;  ///< false: answered already
  std::optional<std::string> version;
};

FinishBody readFinish(const Profile& profile, Exchange& exchange) {
  FinishBody finish;
  // Without the JSON content type the body is not looked at: 200, and the version is lost.
  if (!profile.parsesFinish || !exchange.hasJsonType()) {
    finish.good = true;
    return finish;
  }
  const auto body = readTypedBody(exchange);
  if (!body) {
    return finish;
  }
  if (!body->is_null() && !body->is_object()) {
    exchange.invalid({{"missing", "body.weight_version", "Field required"}});
    return finish;
  }
  const json::value* version =
      body->is_object() ? body->get_object().if_contains("weight_version") : nullptr;
  if (version != nullptr && !version->is_null()) {
    finish.version = asString(version);
    if (!finish.version) {
      exchange.invalid({{"string_type",
                         "body.weight_version",
                         "Input should be a valid string",
                         shownInput(version)}});
      return finish;
    }
  }
  finish.good = true;
  return finish;
}

/// The second engine call of a finish, or a version route: the label on every core.
void storeVersion(Service& service,
                  const ExchangePtr& exchange,
                  std::optional<std::string> version,
                  std::function<void()> done) {
  if (exchange->fault && exchange->fault->action == Action::kVersion) {
    version = exchange->fault->value;
  }
  service.utility(
      [version](Core& core) {
        if (version) {
          core.version = *version;
        }
      },
      std::move(done));
}

}  // namespace

void init(Service& service, const ExchangePtr& exchange) {
  InfoPtr info = readInfo(service.profile, *exchange, "init_info");
  if (info != nullptr) {
    carryOut(
        service, exchange, {Method::kInit, "init", "Weight transfer initialized"}, std::move(info));
  }
}

void shutdown(Service& service, const ExchangePtr& exchange) {
  carryOut(service, exchange, {Method::kShutdown, "shutdown", "Weight transfer shut down"});
}

void start(Service& service, const ExchangePtr& exchange) {
  if (service.profile.startNeedsBody && !readLooseObject(*exchange)) {
    return;
  }
  carryOut(service, exchange, {Method::kStart, "start", "Weight update started"});
}

void startDraft(Service& service, const ExchangePtr& exchange) {
  carryOut(service, exchange, {Method::kStartDraft, "start_draft", "Draft weight update started"});
}

void update(Service& service, const ExchangePtr& exchange) {
  InfoPtr info = readInfo(service.profile, *exchange, "update_info");
  if (info == nullptr) {
    return;
  }
  if (service.serving.weightsAsleep) {
    // The servers' core crashes here, and the call stays pending.
    service.freeze();
  }
  carryOut(service, exchange, {Method::kUpdate, "update", "Weights updated"}, std::move(info));
}

void finish(Service& service, const ExchangePtr& exchange) {
  const FinishBody body = readFinish(service.profile, *exchange);
  if (!body.good) {
    return;
  }
  const Step step{Method::kFinish, "finish", "Weight update finished"};
  auto answer = answering(exchange, step);
  if (!body.version) {
    ask(service, exchange, step, nullptr, std::move(answer));
    return;
  }
  ask(service, exchange, step, nullptr, [&service, exchange, version = body.version, answer] {
    storeVersion(service, exchange, version, answer);
  });
}

void setVersion(Service& service, const ExchangePtr& exchange) {
  const auto body = readTypedBody(*exchange);
  if (!body) {
    return;
  }
  const json::value* value =
      body->is_object() ? body->get_object().if_contains("new_version") : nullptr;
  const auto version = asString(value);
  if (!version) {
    exchange->invalid({{value == nullptr ? "missing" : "string_type",
                        "body.new_version",
                        value == nullptr ? "Field required" : "Input should be a valid string",
                        shownInput(value)}});
    return;
  }
  storeVersion(service, exchange, version, [exchange, version] {
    exchange->json(json::object{{"success", true}, {"new_version", *version}});
  });
}

void weightInfo(Service& service, const ExchangePtr& exchange) {
  const auto versions = std::make_shared<std::vector<std::string>>();
  service.utility([versions](Core& core) { versions->push_back(core.version); },
                  [&service, exchange, versions] {
                    std::string version = service.version();
                    for (const std::string& other : *versions) {
                      if (service.profile.consensusReads && other != versions->front()) {
                        exchange->failed("Engines returned different weight version results");
                        return;
                      }
                    }
                    if (exchange->fault && exchange->fault->action == Action::kVersion) {
                      version = exchange->fault->value.value_or("default");
                    }
                    exchange->json(json::object{{"weight_version", version}});
                  });
}

}  // namespace pushrod::engines::reference::transfer
