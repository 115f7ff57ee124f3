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

class ConcreteAdapters final : public Adapters {
 public:
  Agreement& agreement() override { return ranks_->agreement(); }

  RankLink& link() override { return ranks_->link(); }

  DataPlane* plane() override { return plane_.get(); }

  std::vector<std::unique_ptr<EngineClient>>& engines() override { return engines_; }

  [[nodiscard]] const Status& refusal() const override { return refusal_; }

  Status buildSender(const Config& config,
                     net::IoExecutor& executor,
                     metrics::PushMetrics& metrics,
                     LogSink& log) {
    plane_ =
        std::make_unique<transports::tcp::TcpPlane>(config.transport, config.timeouts.progress);
    Result<std::vector<std::unique_ptr<EngineClient>>> clients =
        makeEngineClients(config, executor, &metrics, log);
    if (!clients.ok()) {
      return clients.status();
    }
    engines_ = std::move(*clients);
    return Status();
  }

  std::unique_ptr<ranks::Ranks> ranks_;
  Status refusal_;

 private:
  std::unique_ptr<DataPlane> plane_;
  std::vector<std::unique_ptr<EngineClient>> engines_;
};

}  // namespace

Result<std::vector<std::unique_ptr<EngineClient>>> makeEngineClients(const Config& config,
                                                                     net::IoExecutor& executor,
                                                                     metrics::PushMetrics* metrics,
                                                                     LogSink& log) {
  std::vector<std::unique_ptr<EngineClient>> clients;
  for (const EngineConfig& engine : config.engines.list) {
    engines::vllm::VllmClientOptions options;
    options.engine = engine;
    options.common = config.engines;
    options.push = config.push;
    options.transport = engine.transport.value_or(config.transport.kind);
    options.answer = config.timeouts.connect;
    Result<std::unique_ptr<EngineClient>> client =
        engines::vllm::makeVllmClient(executor, std::move(options), metrics, &log);
    if (!client.ok()) {
      return client.status().prefixed("engine " + engine.name);
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
  auto adapters = std::make_unique<ConcreteAdapters>();
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
    adapters->refusal_ = adapters->buildSender(config, executor, metrics, log);
  }
  return std::unique_ptr<Adapters>(std::move(adapters));
}

}  // namespace pushrod::orchestrator
