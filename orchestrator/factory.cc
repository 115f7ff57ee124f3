// SPDX-License-Identifier: Apache-2.0
// The composition root: the only file that names concrete adapters.
#include "orchestrator/factory.h"

#include <algorithm>
#include <set>
#include <utility>

#include "config/support.h"
#include "engines/vllm/factory.h"
#include "ranks/identity.h"
#include "ranks/meeting.h"
#include "transports/mixed_plane.h"
#include "transports/shm/plane.h"
#include "transports/tcp/owned_plane.h"
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
  const EnginesConfig& all = config.engines;
  options.common = {all.profile, all.unknownProfile, all.tokenEnv, all.tls, all.proxy};
  options.push = config.push;
  options.transport = engine.transport.value_or(config.transport.kind);
  options.answer = config.timeouts.connect;
  Result<std::unique_ptr<EngineClient>> client =
      engines::vllm::makeVllmClient(executor, std::move(options), metrics, &log);
  return client.ok() ? std::move(client) : client.status().prefixed("engine " + engine.name);
}

/// Whether some engine may use `transport`; a list in a file may say anything.
bool mayUse(const Config& config, TransportKind transport) {
  const auto& list = config.engines.list;
  return !config.engines.file.empty() ||
         std::any_of(list.begin(), list.end(), [&](const EngineConfig& engine) {
           return engine.transport.value_or(config.transport.kind) == transport;
         });
}

class ConcreteAdapters final : public Adapters {
 public:
  ConcreteAdapters(net::IoExecutor& executor, metrics::PushMetrics& metrics, LogSink& log)
      : executor_(executor), metrics_(metrics), log_(log) {}

  Agreement& agreement() override { return ranks_->agreement(); }

  RankLink& link() override { return ranks_->link(); }

  ranks::RecordExchange& records() override { return ranks_->records(); }

  DataPlane* plane() override { return plane_.get(); }

  transports::ChunkUpdates* chunks() override { return chunks_; }

  transports::OwnedStreams* owned() override { return owned_; }

  Result<std::unique_ptr<EngineClient>> makeEngine(const Config& config,
                                                   const EngineConfig& engine) override {
    if (engine.transport.value_or(config.transport.kind) == TransportKind::kShm) {
      sharing_.insert(engine.name);
    } else {
      sharing_.erase(engine.name);
    }
    return makeEngineClient(config, engine, executor_, &metrics_, log_);
  }

  void buildSender(const Config& config) {
    std::unique_ptr<DataPlane> streamed;
    if (mayUse(config, TransportKind::kTcp) || !mayUse(config, TransportKind::kShm)) {
      streamed =
          std::make_unique<transports::tcp::TcpPlane>(config.transport, config.timeouts.progress);
    }
    if (!mayUse(config, TransportKind::kShm)) {
      plane_ = std::move(streamed);
      return;
    }
    keepChunks(config, 0);
    if (streamed != nullptr) {
      plane_ = std::make_unique<transports::MixedPlane>(
          std::move(streamed), std::move(plane_), *chunks_);
    }
  }

  /// Every rank may be a source; whether it is, the manifest says.
  void buildSource(const Config& config, int rank) {
    auto plane = std::make_unique<transports::tcp::OwnedPlane>(
        rank, config.transport, config.timeouts.progress);
    owned_ = plane.get();
    plane_ = std::move(plane);
  }

  /// Another rank sends only where it packs its host's chunks; whether it does, rank 0 tells it.
  void buildPacker(const Config& config, int rank) {
    if (mayUse(config, TransportKind::kShm)) {
      keepChunks(config, rank);
    }
  }

  std::unique_ptr<ranks::Ranks> ranks_;

 private:
  /// Makes the shm plane and keeps its other half too.
  void keepChunks(const Config& config, int rank) {
    auto plane = std::make_unique<transports::shm::ShmPlane>(transports::shm::ShmOptions{
        config.job,
        rank,
        config.transport,
        [this](const std::string& engine) { return sharing_.contains(engine); },
        [this] { return ranks_->hostIds(); }});
    chunks_ = plane.get();
    plane_ = std::move(plane);
  }

  net::IoExecutor& executor_;
  metrics::PushMetrics& metrics_;
  LogSink& log_;
  std::unique_ptr<DataPlane> plane_;
  transports::ChunkUpdates* chunks_ = nullptr;  ///< inside plane_
  transports::OwnedStreams* owned_ = nullptr;   ///< inside plane_
  std::set<std::string> sharing_;               ///< names of the engines that use shm
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
  Result<std::string> host = ranks::hostIdFromEnvironment(ranks::processEnvironment());
  if (!host.ok()) {
    return host.status();
  }
  if (const std::size_t removed = transports::shm::removeDeadSegments(); removed != 0) {
    log.log(LogLevel::kInfo,
            "removed " + std::to_string(removed) + " shared memory segments of dead runs");
  }
  auto adapters = std::make_unique<ConcreteAdapters>(executor, metrics, log);
  ranks::RanksOptions options;
  options.rank = rank;
  options.config = config.ranks;
  options.job = config.job;
  options.privateDirectory = privateStore;
  options.hostId = std::move(*host);
  options.connect = config.timeouts.connect;
  options.agreement = config.timeouts.agreement;
  Result<std::unique_ptr<ranks::Ranks>> meeting =
      ranks::Ranks::create(executor, std::move(options), &log);
  if (!meeting.ok()) {
    return meeting.status();
  }
  adapters->ranks_ = std::move(*meeting);
  if (config.transport.owners) {
    adapters->buildSource(config, rank.rank);
  } else if (rank.rank == 0) {
    adapters->buildSender(config);
  } else {
    adapters->buildPacker(config, rank.rank);
  }
  return std::unique_ptr<Adapters>(std::move(adapters));
}

}  // namespace pushrod::orchestrator
