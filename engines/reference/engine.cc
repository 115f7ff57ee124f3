// SPDX-License-Identifier: Apache-2.0
#include "engines/reference/engine.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <signal.h>
#include <unistd.h>
#include <utility>

#include <boost/json/parse.hpp>

#include "common/host_id.h"
#include "engines/reference/checkpoint.h"
#include "engines/reference/service.h"
#include "http/server.h"
#include "net/run_and_wait.h"

namespace pushrod::engines::reference {

namespace json = boost::json;

namespace {

Result<FaultTable> readFaults(const std::string& path) {
  if (path.empty()) {
    return FaultTable();
  }
  // Reading anything but a file may wait for ever.
  std::error_code unknown;
  if (!std::filesystem::is_regular_file(path, unknown)) {
    return Status(Code::kInvalidArgument, "faults file " + path + " is not a regular file");
  }
  std::ifstream input(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(input)), {});
  json::error_code error;
  const json::value rules = json::parse(text, error);
  if (!input || error) {
    return Status(Code::kInvalidArgument,
                  "faults file " + path + " is not readable JSON; give an array of faults");
  }
  auto table = FaultTable::parse(rules);
  return table.ok() ? table : Result<FaultTable>(table.error().prefixed("faults file " + path));
}

Status checkLayout(const EngineOptions& options) {
  constexpr int kMostWorkers = 64;
  if (options.worldSize < 1 || options.worldSize > kMostWorkers || options.pipelineStages < 1 ||
      options.dataParallel < 1) {
    return {Code::kInvalidArgument,
            "world size, pipeline stages and data parallel size must be positive, with at most 64 "
            "workers"};
  }
  if (options.worldSize % (options.pipelineStages * options.dataParallel) != 0) {
    return {Code::kInvalidArgument,
            "the world size " + std::to_string(options.worldSize) +
                " is not a multiple of pipeline stages times data parallel size"};
  }
  if (!options.prefix.empty() && (options.prefix.front() != '/' || options.prefix.back() == '/')) {
    return {Code::kInvalidArgument, "the prefix must begin with / and not end with it"};
  }
  return {};
}

http::ServerOptions serverOptions(const EngineOptions& options) {
  http::ServerOptions http;
  http.address = options.host;
  http.port = options.port;
  http.maxConnections = 256;
  http.maxHeader = std::size_t{64} << 10U;
  http.maxBody = std::size_t{64} << 20U;
  http.idle = std::chrono::seconds(5);
  return http;
}

}  // namespace

Engine::Engine(net::IoExecutor& executor)
    : executor_(executor), shared_(std::make_unique<WorkerShared>()) {}

Result<std::unique_ptr<Engine>> Engine::create(net::IoExecutor& executor,
                                               const EngineOptions& options) {
  std::unique_ptr<Engine> engine(new Engine(executor));
  if (Status built = engine->build(options); !built.ok()) {
    return built;
  }
  return engine;
}

Status Engine::build(const EngineOptions& options) {
  auto profile = Profile::find(options.profile);
  auto faults = readFaults(options.faults);
  Status sound = checkLayout(options);
  sound.merge(profile.status());
  sound.merge(faults.status());
  if (options.backend != "tcp" && options.backend != "shm") {
    sound.merge(Status(Code::kInvalidArgument,
                       "backend \"" + options.backend + "\" is not in this build; tcp and shm go"));
  }
  if (!sound.ok()) {
    return sound;
  }
  shared_->profile = *profile;
  if (Status filled = fillShared(options); !filled.ok()) {
    return filled;
  }
  Facts facts{options.name,
              options.model,
              shared_->hostId,
              options.prefix,
              options.worldSize,
              options.pipelineStages,
              options.dataParallel};
  service_ = std::make_unique<Service>(
      executor_, *shared_, std::move(facts), makeCores(options), std::move(*faults));
  idle_ = options.idle;
  onIdle_ = options.onIdle;
  return serve(options);
}

Status Engine::fillShared(const EngineOptions& options) {
  shared_->backend = options.backend == "shm" ? Backend::kShm : Backend::kTcp;
  shared_->hostId = options.hostId.empty() ? common::bootId() : options.hostId;
  shared_->die = options.die ? options.die : [] { ::kill(::getpid(), SIGKILL); };
  shared_->journal = std::make_unique<Journal>();
  if (!options.journal.empty()) {
    auto journal = Journal::open(options.journal);
    if (!journal.ok()) {
      return journal.error();
    }
    shared_->journal = std::move(*journal);
  }
  if (!options.checkpoint.empty()) {
    auto content = readCheckpoint(options.checkpoint);
    if (!content.ok()) {
      return content.error();
    }
    shared_->initial = std::move(*content);
  }
  return {};
}

std::vector<std::shared_ptr<Core>> Engine::makeCores(const EngineOptions& options) {
  const int perCore = options.worldSize / options.dataParallel;
  std::vector<std::shared_ptr<Core>> cores;
  for (int core = 0; core < options.dataParallel; ++core) {
    std::vector<Worker*> mine;
    for (int rank = 0; rank < perCore; ++rank) {
      const WorkerPlace place{
          core * perCore + rank, rank, perCore, core, perCore / options.pipelineStages};
      mine.push_back(workers_.emplace_back(std::make_unique<Worker>(*shared_, place)).get());
    }
    cores.push_back(std::make_shared<Core>(executor_, std::move(mine)));
  }
  return cores;
}

Status Engine::serve(const EngineOptions& options) {
  Status listening;
  // On the control thread, so that no request is handled before everything is in place.
  net::runAndWait(executor_, [&] {
    service_->closePort = [this] { server_->close(); };
    service_->connections = [this] { return server_->connections(); };
    auto server = http::Server::listen(
        executor_,
        serverOptions(options),
        [service = service_.get()](http::ServerRequest request,
                                   std::unique_ptr<http::Responder> responder) {
          service->handle(std::move(request), std::move(responder));
        });
    if (!server.ok()) {
      listening = server.error();
      return;
    }
    server_ = std::move(*server);
    port_ = server_->port();
    if (idle_ > Duration::zero()) {
      watchIdle();
    }
  });
  return listening;
}

void Engine::watchIdle() {
  const TimePoint due = service_->lastRequest + idle_;
  const TimePoint now = executor_.now();
  if (now >= due && server_->connections() == 0) {
    onIdle_();
    return;
  }
  constexpr Duration kLookAgain = std::chrono::milliseconds(200);
  service_->after(now >= due ? kLookAgain : std::chrono::ceil<Duration>(due - now),
                  [this] { watchIdle(); });
}

Engine::~Engine() {
  shared_->stop.raise();
  net::runAndWait(executor_, [this] {
    // What was not answered goes first: a responder must find its server or nothing.
    service_.reset();
    server_.reset();
  });
}

}  // namespace pushrod::engines::reference
