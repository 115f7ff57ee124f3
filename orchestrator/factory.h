// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <pushrod/agreement.h>
#include <pushrod/config.h>
#include <pushrod/data_plane.h>
#include <pushrod/engine_client.h>
#include <pushrod/log_sink.h>
#include <pushrod/rank.h>
#include <pushrod/rank_link.h>

#include "metrics/push_metrics.h"
#include "net/io_executor.h"
#include "ranks/record_exchange.h"
#include "transports/chunk_updates.h"
#include "transports/owned_streams.h"

namespace pushrod::orchestrator {

/// The concrete adapters of one rank, behind their seams.
class Adapters {
 public:
  Adapters() = default;
  Adapters(const Adapters&) = delete;
  Adapters& operator=(const Adapters&) = delete;
  virtual ~Adapters() = default;

  virtual Agreement& agreement() = 0;
  virtual RankLink& link() = 0;
  virtual ranks::RecordExchange& records() = 0;
  /// Null on ranks that never send.
  virtual DataPlane* plane() = 0;
  /// The plane's other half, where engines are told of each chunk by itself; null where none is.
  virtual transports::ChunkUpdates* chunks() = 0;
  /// The plane's other half, where ranks send what they own; null: rank 0 alone sends a stream.
  virtual transports::OwnedStreams* owned() = 0;
  /// What speaks to one engine. Contacts nobody.
  virtual Result<std::unique_ptr<EngineClient>> makeEngine(const Config& config,
                                                           const EngineConfig& engine) = 0;
};

/// A client for each configured engine, in order; contacts nobody. On the control thread, as all
/// that is then done with them. `metrics` may be null; everything referred to must outlive them.
[[nodiscard]] Result<std::vector<std::unique_ptr<EngineClient>>> makeEngineClients(
    const Config& config, net::IoExecutor& executor, metrics::PushMetrics* metrics, LogSink& log);

/// Composes them. Contacts nobody; refuses what configuration asks for and this build has not.
/// Everything referred to must outlive the result.
[[nodiscard]] Result<std::unique_ptr<Adapters>> makeAdapters(const Config& config,
                                                             const Rank& rank,
                                                             const std::string& privateStore,
                                                             net::IoExecutor& executor,
                                                             metrics::PushMetrics& metrics,
                                                             LogSink& log);

}  // namespace pushrod::orchestrator
