// SPDX-License-Identifier: Apache-2.0
#include "engines/reference/service.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <boost/json/serialize.hpp>

#include "engines/reference/digest.h"

namespace pushrod::engines::reference {

namespace json = boost::json;

namespace {

/// How long a dead engine's address still answers.
constexpr Duration kDeadPortStays = std::chrono::milliseconds(1000);
constexpr std::size_t kMostHeld = 256;

}  // namespace

Service::Service(Executor& executorIn,
                 WorkerShared& sharedIn,
                 Facts factsIn,
                 std::vector<std::shared_ptr<Core>> coresIn,
                 FaultTable table)
    : executor(executorIn),
      shared(sharedIn),
      profile(sharedIn.profile),
      facts(std::move(factsIn)),
      cores(std::move(coresIn)),
      faults(std::move(table)),
      lastRequest(executorIn.now()) {}

Service::~Service() {
  *alive_ = false;
}

void Service::handle(http::ServerRequest request, std::unique_ptr<http::Responder> responder) {
  lastRequest = executor.now();
  shared.journal->write("request",
                        {{"connection", request.connection},
                         {"method", request.method},
                         {"path", request.path},
                         {"query", request.query},
                         {"content_type", request.contentType},
                         {"bytes", request.body.size()},
                         {"body_sha256", Sha256::of(request.body)}});
  const auto exchange = std::make_shared<Exchange>(
      std::move(request), std::move(responder), profile, *shared.journal);
  std::string_view path = exchange->request().path;
  const std::string begin = facts.prefix + "/";
  const Route* route = nullptr;
  if (path.rfind(begin, 0) == 0) {
    route = findRoute(path.substr(begin.size()));
  }
  if (route == nullptr || route->since > profile.minor) {
    exchange->notFound(404, "Not Found");
  } else if (route->method != exchange->request().method) {
    exchange->notFound(405, "Method Not Allowed");
  } else {
    dispatch(*route, exchange);
  }
}

void Service::dispatch(const Route& route, const ExchangePtr& exchange) {
  if (isRoute(route.name)) {
    exchange->fault = faults.match(route.name, countChunk(route));
  }
  if (exchange->fault) {
    shared.journal->write("fault",
                          {{"route", route.name},
                           {"do", actionName(exchange->fault->action)},
                           {"connection", exchange->request().connection}});
    if (applyFault(route, exchange)) {
      return;
    }
  }
  route.handler(*this, exchange);
}

std::optional<std::uint32_t> Service::countChunk(const Route& route) {
  if (route.name.starts_with("start_")) {
    chunks_ = 0;
  }
  if (shared.backend != Backend::kShm || route.name != "update_weights") {
    return std::nullopt;
  }
  return chunks_++;
}

bool Service::applyFault(const Route& route, const ExchangePtr& exchange) {
  const FaultRule& fault = *exchange->fault;
  switch (fault.action) {
    case Action::kStatus:
      answerStatus(route, exchange);
      return true;
    case Action::kHang:
      hold(exchange);
      return true;
    case Action::kDelay:
      after(std::chrono::ceil<Duration>(std::chrono::duration<double>(fault.seconds)),
            [this, exchange, handler = route.handler] { handler(*this, exchange); });
      return true;
    case Action::kReset:
      exchange->cut(http::Responder::Cut::kReset);
      return true;
    case Action::kClose:
      exchange->cut(http::Responder::Cut::kClose);
      return true;
    case Action::kRaw:
      exchange->raw(fault.bytes);
      return true;
    case Action::kDie:
      hold(exchange);
      shared.die();
      return true;
    case Action::kFreezeCore:
      freeze();
      return false;
    default:
      return false;
  }
}

void Service::answerStatus(const Route& route, const ExchangePtr& exchange) {
  const FaultRule& fault = *exchange->fault;
  if (route.name == "update_weights" && fault.status >= 500) {
    WorkerCall call;
    call.method = Method::kFailUpdate;
    for (const auto& core : cores) {
      for (Worker* worker : core->workers()) {
        worker->submit(call, {});
      }
    }
  }
  http::ServerResponse response;
  response.status = fault.status;
  response.contentType = fault.contentType;
  response.body = fault.body.value_or(json::serialize(json::object{
      {"error",
       json::object{{"message", "injected failure"},
                    {"type", fault.status >= 500 ? "InternalServerError" : "Bad Request"},
                    {"param", nullptr},
                    {"code", fault.status}}}}));
  exchange->answer(response);
}

void Service::collective(const WorkerCall& call, FanDone done) {
  struct Gather {
    FanResult result;
    std::size_t left;
    bool answered = false;
    FanDone done;
  };

  const auto gather = std::make_shared<Gather>();
  gather->left = cores.size();
  gather->result.values.resize(cores.size());
  gather->done = std::move(done);
  for (std::size_t i = 0; i < cores.size(); ++i) {
    cores[i]->collective(call, [gather, i](CollectiveResult result) {
      --gather->left;
      if (!result.ok) {
        gather->result.ok = false;
        gather->result.error = std::move(result.error);
      } else {
        gather->result.values[i] = std::move(result.values);
      }
      if (!gather->answered && (!gather->result.ok || gather->left == 0)) {
        gather->answered = true;
        gather->done(gather->result);
      }
    });
  }
}

void Service::utility(const std::function<void(Core&)>& each, std::function<void()> done) {
  const auto left = std::make_shared<std::size_t>(cores.size());
  const auto shareDone = std::make_shared<std::function<void()>>(std::move(done));
  for (const auto& core : cores) {
    core->utility([each, left, shareDone, raw = core.get()] {
      each(*raw);
      if (--*left == 0) {
        (*shareDone)();
      }
    });
  }
}

void Service::after(Duration delay, std::function<void()> task) {
  executor.postAt(executor.now() + delay,
                  [alive = std::weak_ptr<bool>(alive_), task = std::move(task)] {
                    if (const auto living = alive.lock(); living != nullptr && *living) {
                      task();
                    }
                  });
}

void Service::hold(ExchangePtr exchange) {
  held_.push_back(std::move(exchange));
  if (held_.size() > kMostHeld) {
    held_.pop_front();
  }
}

void Service::freeze() {
  if (dead) {
    return;
  }
  dead = true;
  for (const auto& core : cores) {
    core->freeze();
  }
  after(kDeadPortStays, [this] { closePort(); });
}

void Service::generate(const ExchangePtr& exchange) {
  if (serving.paused) {
    if (profile.refusesWhilePaused && !serving.keeps) {
      http::ServerResponse response;
      response.status = 503;
      response.body = json::serialize(json::object{
          {"error",
           json::object{{"message", "Generation is paused. Please retry after it resumes."},
                        {"type", "ServiceUnavailableError"},
                        {"param", nullptr},
                        {"code", 503}}}});
      exchange->answer(response);
      return;
    }
    serving.parked.push_back(exchange);
    return;
  }
  const auto all = views();
  if (std::any_of(all.begin(), all.end(), [](const WorkerView& v) { return v.placeholders; })) {
    // The step meets placeholder tensors: the core dies, and with it every pending call.
    freeze();
    exchange->failed(profile.minor >= 33
                         ? "The server had an error while processing your request."
                         : "EngineCore encountered an issue. See stack trace (above) for the root "
                           "cause.");
    return;
  }
  Sha256 digest;
  for (const auto& [name, sha] : all.front().weights) {
    digest.add(sha.data(), sha.size());
  }
  exchange->json(json::object{
      {"id", "cmpl-" + std::to_string(exchange->request().connection)},
      {"object", "text_completion"},
      {"model", facts.model},
      {"choices",
       json::array{json::object{
           {"index", 0}, {"text", digest.hex().substr(0, 16)}, {"finish_reason", "length"}}}}});
}

std::vector<WorkerView> Service::views() const {
  std::vector<WorkerView> all;
  for (const auto& core : cores) {
    for (const Worker* worker : core->workers()) {
      all.push_back(worker->view());
    }
  }
  return all;
}

bool Service::torn() const {
  const auto all = views();
  return std::any_of(all.begin(), all.end(), [&](const WorkerView& view) {
    return view.torn || view.weights != all.front().weights;
  });
}

void Service::countOperation(const std::string& name, TimePoint begun) {
  --inFlight[name];
  Operation& operation = operations[name];
  ++operation.count;
  operation.seconds += std::chrono::duration<double>(executor.now() - begun).count();
}

}  // namespace pushrod::engines::reference
