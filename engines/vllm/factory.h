// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include <pushrod/engine_client.h>
#include <pushrod/log_sink.h>
#include <pushrod/result.h>

#include "engines/vllm/engine_state.h"
#include "metrics/push_metrics.h"
#include "net/io_executor.h"

namespace pushrod::engines::vllm {

/// A client for the engine at `options.engine.url`; contacts nobody. Reads the bearer token from
/// the environment variable that `options.common.tokenEnv` names. Failures (a bad URL, an unset
/// variable, certificates that cannot be read) are invalidArgument or the HTTP client's.
/// `executor`, `metrics` and `log` must outlive the client; the last two may be null.
Result<std::unique_ptr<EngineClient>> makeVllmClient(net::IoExecutor& executor,
                                                     VllmClientOptions options,
                                                     metrics::PushMetrics* metrics,
                                                     LogSink* log);

}  // namespace pushrod::engines::vllm
