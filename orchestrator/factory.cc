// SPDX-License-Identifier: Apache-2.0
// The composition root: the only file that names concrete adapters.
#include "orchestrator/factory.h"

#include <utility>

#include "config/support.h"
#include "engines/vllm/factory.h"
#include "ranks/meeting.h"
#include "transports/tcp/plane.h"

namespace pushrod::orchestrator {

namespace {

Result<std::unique_ptr<EngineClient>> makeEngineClient(const Config& config,
                                                       const EngineConfig& engine,
                                                       net::IoExecutor& executor,
                                                       metrics::PushMetrics* metrics,
                                                       LogSink& log) {
  engines::vllm::VllmClientOptions options;
  options.engine = engine;
  options.common = config.engines;
  options.push = config.push;
  options.transport = engine.transport.value_or(config.transport.kind);
  options.answer = config.timeouts.connect;
  Result<std::unique_ptr<EngineClient>> client =
      engines::vllm::makeVllmClient(executor, std::move(options), metrics, &log);
  return client.ok() ? std::move(client) : client.status().prefixed("engine " + engine.name);
}

class ConcreteAdapters final : public Adapters {
 public:
  ConcreteAdapters(net::IoExecutor& executor, metrics::PushMetrics& metrics, LogSink& log)
      : executor_(executor), metrics_(metrics), log_(log) {}

  Agreement& agreement() override { return ranks_->agreement(); }

  RankLink& link() override { return ranks_->link(); }

  DataPlane* plane() override { return plane_.get(); }

  Result<std::unique_ptr<EngineClient>> makeEngine(const Config& config,
                                                   const EngineConfig& engine) override {
    return makeEngineClient(config, engine, executor_, &metrics_, log_);
  }

  void buildSender(const Config& config) {
    plane_ =
        std::make_unique<transports::tcp::TcpPlane>(config.transport, config.timeouts.progress);
  }

  std::unique_ptr<ranks::Ranks> ranks_;

 private:
  net::IoExecutor& executor_;
  metrics::PushMetrics& metrics_;
  LogSink& log_;
  std::unique_ptr<DataPlane> plane_;
};

}  // namespace

Result<std::vector<std::unique_ptr<EngineClient>>> makeEngineClients(const Config& config,
                                                                     net::IoExecutor& executor,
                                                                     metrics::PushMetrics* metrics,
                                                                     LogSink& log) {
  std::vector<std::unique_ptr<EngineClient>> clients;
  for (const EngineConfig& engine : config.engines.list) {
    Result<std::unique_ptr<EngineClient>> client =
        makeEngineClient(config, engine, executor, metrics, log);
    if (!client.ok()) {
      return client.status();
    }
    clients.push_back(std::move(*client));
  }
  return clients;
}

Result<std::unique_ptr<Adapters>> makeAdapters(const Config& config,
                                               const Rank& rank,
                                               const std::string& privateStore,
                                               net::IoExecutor& executor,
                                               metrics::PushMetrics& metrics,
                                               LogSink& log) {
  if (Status supported = config::checkSupported(config); !supported.ok()) {
    return supported;
  }
  auto adapters = std::make_unique<ConcreteAdapters>(executor, metrics, log);
  ranks::RanksOptions options;
  options.rank = rank;
  options.config = config.ranks;
  options.job = config.job;
  options.privateDirectory = privateStore;
  options.connect = config.timeouts.connect;
  options.agreement = config.timeouts.agreement;
  Result<std::unique_ptr<ranks::Ranks>> meeting =
      ranks::Ranks::create(executor, std::move(options), &log);
  if (!meeting.ok()) {
    return meeting.status();
  }
  adapters->ranks_ = std::move(*meeting);
  if (rank.rank == 0) {
    adapters->buildSender(config);
  }
  return std::unique_ptr<Adapters>(std::move(adapters));
}

}  // namespace pushrod::orchestrator
