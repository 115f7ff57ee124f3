// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <pushrod/engine_client.h>

#include "engines/vllm/engine_state.h"

namespace pushrod::engines::vllm {

/// What /server_info?config_format=json tells that a push needs. Unset members were not told.
struct ServerInfo {
  std::optional<int> tensorParallel, pipelineParallel, dataParallel;
  std::optional<std::string> backend;  ///< "" when the server has no weight transfer at all
  std::string executor, dtype, quantization;
  bool externalCache = false;  ///< a KV connector is configured
};

[[nodiscard]] ServerInfo readServerInfo(std::string_view body);

/// The served model ids of /v1/models, in order; empty when they cannot be read.
[[nodiscard]] std::vector<std::string> readModels(std::string_view body);

/// Whether vllm:engine_sleep_state in a page of /metrics says that some engine core sleeps. Absent
/// means awake.
[[nodiscard]] bool readAsleep(std::string_view metricsPage);

/// Refuses an engine that is not the one the configuration expects or that cannot receive by this
/// transport (ruling P5), with what to do.
[[nodiscard]] Status checkIdentity(const EngineIdentity& identity,
                                   const std::optional<std::string>& backend,
                                   const std::vector<std::string>& models,
                                   const VllmClientOptions& options);

/// Why a measured lag makes the engine unusable (ruling P16 c); ok when it does not.
[[nodiscard]] Status lagVerdict(const EngineState& state);
[[nodiscard]] Status lagUnmeasurable(const std::string& why);

}  // namespace pushrod::engines::vllm
