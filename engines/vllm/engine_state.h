// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include <pushrod/config.h>
#include <pushrod/engine_client.h>
#include <pushrod/executor.h>
#include <pushrod/log_sink.h>

#include "engines/vllm/routes.h"
#include "engines/vllm/wire.h"

namespace pushrod::engines::vllm {

/// The keys of `engines` that a client needs. Not all of them: each client would have a copy of the
/// whole list.
struct CommonOptions {
  std::string profile = EnginesConfig().profile;
  UnknownProfile unknownProfile = EnginesConfig().unknownProfile;
  std::string tokenEnv = {};
  TlsConfig tls = {};
  std::string proxy = {};
};

struct VllmClientOptions {
  EngineConfig engine;
  CommonOptions common = {};
  PushConfig push;
  TransportKind transport = TransportKind::kNccl;  ///< what this engine must be able to receive
  Duration answer = TimeoutsConfig().connect;      ///< one request of an identification
  std::string token = {};                          ///< taken out of whatever the engine says
};

/// What is known about one engine, shared by the flows of its calls.
struct EngineState {
  Executor& executor;
  Wire& wire;
  const VllmClientOptions& options;
  LogSink* log = nullptr;

  EngineFeatures features;  ///< the newest release's until identified
  std::shared_ptr<const EngineIdentity> identity;
  ExternalCache externalCache = ExternalCache::kNone;
  int workers = 1;  ///< behind one engine core: TP x PP x PCP
  int lag = 0;
  bool lagDoubtful = false;  ///< measure before the next call that reaches the workers
  Status lost;               ///< not ok: why the engine cannot be used until it is restarted

  /// Whether replies of later workers can come late at all: several workers behind a multi-process
  /// executor, or one that is not known.
  [[nodiscard]] bool canLag() const {
    return workers > 1 &&
           (identity == nullptr || identity->executor.empty() || identity->executor == "mp");
  }

  [[nodiscard]] std::string where(const EngineRequest& request) const {
    return request.http.method + " " + options.engine.url + request.http.target;
  }

  void warn(const std::string& text) const {
    if (log != nullptr) {
      log->log(LogLevel::kWarning, "engine " + options.engine.name + ": " + text);
    }
  }
};

}  // namespace pushrod::engines::vllm
