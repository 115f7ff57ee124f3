// SPDX-License-Identifier: Apache-2.0
// Routes that only tell something.
#include <string>
#include <utility>

#include <boost/json/serialize.hpp>

#include "engines/reference/body.h"
#include "engines/reference/service.h"

namespace pushrod::engines::reference::info {

namespace json = boost::json;

namespace {

int tensorParallel(const Facts& facts) {
  return facts.worldSize / (facts.pipelineStages * facts.dataParallel);
}

std::string operationLines(const Service& service) {
  const std::string base = "vllm:rl_weight_update_operation";
  std::string text = "# TYPE " + base + "_duration_seconds histogram\n";
  for (const auto& [name, operation] : service.operations) {
    const std::string label = "operation=\"" + name + "\"";
    const std::string count = std::to_string(operation.count);
    text += base + "_duration_seconds_bucket{" + label + ",le=\"+Inf\"} " + count + "\n";
    text += base + "_duration_seconds_count{" + label + "} " + count + "\n";
    text +=
        base + "_duration_seconds_sum{" + label + "} " + std::to_string(operation.seconds) + "\n";
  }
  text += "# TYPE " + base + "s_in_flight gauge\n";
  for (const auto& [name, count] : service.inFlight) {
    text += base + "s_in_flight{operation=\"" + name + "\"} " + std::to_string(count) + "\n";
  }
  return text;
}

/// A worker's answer as the route shows it: what is not null, a mapping or a list becomes a text.
json::value shown(const json::value& value) {
  if (value.is_null() || value.is_object() || value.is_array() || value.is_string()) {
    return value;
  }
  return json::value(json::serialize(value));
}

json::object mapOf(const std::map<std::string, std::string>& entries) {
  json::object object;
  for (const auto& [key, value] : entries) {
    object[key] = value;
  }
  return object;
}

Status applySet(Service& service, const json::value& set) {
  if (!set.is_object()) {
    return {Code::kInvalidArgument, "set must be an object"};
  }
  for (const auto& entry : set.get_object()) {
    const std::string key(entry.key().data(), entry.key().size());
    const json::value& value = entry.value();
    if (key == "version" && value.is_string()) {
      for (const auto& core : service.cores) {
        core->version = *asString(&value);
      }
    } else if (key == "paused" && value.is_bool()) {
      service.serving.paused = value.get_bool();
    } else if (key == "draft_model" && value.is_bool()) {
      service.shared.hasDraft = value.get_bool();
    } else if (key == "asleep" && value.is_bool()) {
      service.serving.weightsAsleep = value.get_bool();
      service.serving.cacheAsleep = value.get_bool();
      service.serving.sleepLevel = value.get_bool() ? 1 : 0;
    } else {
      return {Code::kInvalidArgument,
              "set." + key +
                  " is unknown or has the wrong type; version, paused, draft_model and "
                  "asleep go"};
    }
  }
  return {};
}

}  // namespace

void health(Service& service, const ExchangePtr& exchange) {
  if (service.dead) {
    http::ServerResponse response;
    response.status = 503;
    response.contentType.clear();
    exchange->answer(response);
  } else {
    exchange->empty();
  }
}

void version(Service& service, const ExchangePtr& exchange) {
  exchange->json(json::object{{"version", service.profile.release}});
}

void models(Service& service, const ExchangePtr& exchange) {
  constexpr int kCreated = 1700000000;  // any time of start
  const json::object permission = {{"id", "modelperm-0"},
                                   {"object", "model_permission"},
                                   {"created", kCreated},
                                   {"allow_create_engine", false},
                                   {"allow_sampling", true},
                                   {"allow_logprobs", true},
                                   {"allow_search_indices", false},
                                   {"allow_view", true},
                                   {"allow_fine_tuning", false},
                                   {"organization", "*"},
                                   {"group", nullptr},
                                   {"is_blocking", false}};
  const json::object model = {{"id", service.facts.model},
                              {"object", "model"},
                              {"created", kCreated},
                              {"owned_by", "vllm"},
                              {"root", service.facts.model},
                              {"parent", nullptr},
                              {"max_model_len", 4096},
                              {"permission", json::array{permission}}};
  exchange->json(json::object{{"object", "list"}, {"data", json::array{model}}});
}

void worldSize(Service& service, const ExchangePtr& exchange) {
  const auto all = readQueryFlag(*exchange, "include_dp", true);
  if (all) {
    const int size = service.facts.worldSize / (*all ? 1 : service.facts.dataParallel);
    exchange->json(json::object{{"world_size", size}});
  }
}

void serverInfo(Service& service, const ExchangePtr& exchange) {
  const Facts& facts = service.facts;
  const std::string format = exchange->query("config_format").value_or("text");
  if (format != "text" && format != "json") {
    exchange->invalid({{"literal_error",
                        "query.config_format",
                        "Input should be 'text' or 'json'",
                        format,
                        "'expected': \"'text' or 'json'\""}});
    return;
  }
  json::object config = {
      {"model_config", json::object{{"model", facts.model}, {"dtype", "torch.bfloat16"}}},
      {"parallel_config",
       json::object{{"tensor_parallel_size", tensorParallel(facts)},
                    {"pipeline_parallel_size", facts.pipelineStages},
                    {"data_parallel_size", facts.dataParallel},
                    {"distributed_executor_backend", "mp"}}},
      {"weight_transfer_config",
       json::object{
           {"backend", service.shared.backend == Backend::kShm ? "pushrod_shm" : "pushrod_tcp"}}}};
  json::value shownConfig = config;
  if (format == "text") {
    shownConfig = json::value(json::serialize(config));
  }
  exchange->json(json::object{{"vllm_config", std::move(shownConfig)},
                              {"vllm_env", json::object()},
                              {"system_env", json::object()}});
}

void metrics(Service& service, const ExchangePtr& exchange) {
  const Serving& state = service.serving;
  const bool asleep = state.weightsAsleep || state.cacheAsleep;
  const auto line = [&service](std::string_view name, bool on) {
    return "vllm:engine_sleep_state{engine=\"0\",model_name=\"" + service.facts.model +
           "\",sleep_state=\"" + std::string(name) + "\"} " + (on ? "1.0" : "0.0") + "\n";
  };
  std::string text = "# TYPE vllm:engine_sleep_state gauge\n";
  text += line("awake", !asleep);
  text += line("weights_offloaded", asleep && state.sleepLevel == 1);
  text += line("discard_all", asleep && state.sleepLevel >= 2);
  if (service.profile.operationMetrics) {
    text += operationLines(service);
  }
  exchange->text(std::move(text), "text/plain; version=1.0.0; charset=utf-8");
}

void collectiveRpc(Service& service, const ExchangePtr& exchange) {
  const bool typed = service.profile.typedBodies;
  const auto body =
      typed
          ? readLooseBody(*exchange, "JSON decode error: Expecting value: line 1 column 1 (char 0)")
          : readLooseBody(*exchange);
  if (!body) {
    return;
  }
  if (!body->is_object()) {
    if (typed) {
      exchange->badRequest("Request body must be a JSON object");
    } else {
      exchange->failed(noMapping(*body));
    }
    return;
  }
  const auto method = asString(body->get_object().if_contains("method"));
  if (!method) {
    exchange->badRequest("Missing 'method' in request body");
    return;
  }
  WorkerCall call;
  call.method = Method::kUnknown;
  call.name = *method;
  if (*method == "check_health") {
    call.method = Method::kCheckHealth;
  } else if (*method == "__getattr__") {
    call.method = Method::kAttribute;
    const json::value* args = body->get_object().if_contains("args");
    if (args != nullptr && args->is_array() && !args->get_array().empty()) {
      call.name = asString(&args->get_array().front()).value_or("");
    }
  }
  if (exchange->fault && exchange->fault->action == Action::kWorkerFails) {
    call.failWorker = exchange->fault->worker;
  }
  service.collective(call, [exchange](const FanResult& result) {
    if (!result.ok) {
      exchange->failed("Call to collective_rpc method failed: " + result.error);
      return;
    }
    json::array results;
    for (const json::value& value : result.values.front()) {
      results.push_back(shown(value));
    }
    exchange->json(json::object{{"results", results}});
  });
}

void state(Service& service, const ExchangePtr& exchange) {
  const auto views = service.views();
  json::array lags;
  for (const auto& core : service.cores) {
    for (const int lag : core->lag()) {
      lags.emplace_back(lag);
    }
  }
  json::array resumes;
  for (const Service::Resume& resume : service.resumes) {
    resumes.push_back(json::object{{"version", resume.version}, {"torn", resume.torn}});
  }
  bool open = false;
  int connections = 0;
  for (const WorkerView& view : views) {
    open = open || view.active;
    connections += view.connections;
  }
  exchange->json(json::object{{"name", service.facts.name},
                              {"version", service.version()},
                              {"paused", service.serving.paused},
                              {"session", open ? "open" : "closed"},
                              {"torn", service.torn()},
                              {"resumes", std::move(resumes)},
                              {"lag", std::move(lags)},
                              {"weights", mapOf(views.front().weights)},
                              {"layers", mapOf(views.front().layers)},
                              {"draft_weights", mapOf(views.front().draftWeights)},
                              {"connections", connections},
                              {"http_connections", service.connections()},
                              {"host_id", service.facts.hostId},
                              {"dead", service.dead}});
}

void control(Service& service, const ExchangePtr& exchange) {
  const auto body = readLooseBody(*exchange);
  if (!body) {
    return;
  }
  const json::object request = body->is_object() ? body->get_object() : json::object();
  std::size_t known = 0;
  if (const json::value* rules = request.if_contains("faults")) {
    ++known;
    auto table = FaultTable::parse(*rules);
    if (!table.ok()) {
      exchange->badRequest(table.error().message());
      return;
    }
    service.faults = std::move(*table);
  }
  if (const json::value* set = request.if_contains("set")) {
    ++known;
    if (Status applied = applySet(service, *set); !applied.ok()) {
      exchange->badRequest(applied.message());
      return;
    }
  }
  if (known == 0 || known != request.size()) {
    exchange->badRequest("the body must have faults, set or both, and nothing else");
    return;
  }
  exchange->json(json::object{{"status", "ok"}});
}

}  // namespace pushrod::engines::reference::info
