// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <pushrod/config.h>
#include <pushrod/engine_client.h>

#include "http/client.h"

namespace pushrod::engines::vllm {

/// One HTTP request to an engine and the label under which it is counted: the route's last path
/// element.
struct EngineRequest {
  std::string_view label;
  http::Request http;

  /// "POST /pause", for messages.
  [[nodiscard]] std::string describe() const { return http.method + " " + http.target; }
};

/// Whether an engine has a KV connector, which keeps blocks outside of it.
enum class ExternalCache : std::uint8_t { kNone, kThere };

/// The one request of a call. Not for kIdentify and kMeasureLag, which are several.
[[nodiscard]] EngineRequest requestFor(const Call& call,
                                       const PushConfig& push,
                                       ExternalCache external);

/// A GET without a body, which may be repeated.
[[nodiscard]] EngineRequest getRequest(std::string_view label, std::string target);
/// A POST without a body of a cache reset, which may be repeated.
[[nodiscard]] EngineRequest resetRequest(std::string_view label);

/// What the harmless calls of rulings P16 read or do in every worker.
enum class Probe : std::uint8_t { kRank, kSessionFlag, kCheckHealth };
[[nodiscard]] EngineRequest probeRequest(Probe probe);

/// Whether the route's work is done by the engine's workers, so that their replies may come late.
[[nodiscard]] bool reachesWorkers(CallKind kind);
/// Whether the request may be sent again although the first may have been acted on, on any engine.
[[nodiscard]] bool isRepeatable(CallKind kind);

}  // namespace pushrod::engines::vllm
