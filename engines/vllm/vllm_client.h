// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include <pushrod/engine_client.h>
#include <pushrod/executor.h>
#include <pushrod/log_sink.h>

#include "engines/vllm/engine_state.h"
#include "engines/vllm/flow.h"
#include "engines/vllm/wire.h"

namespace pushrod::engines::vllm {

/// EngineClient for a vLLM server. Around each HTTP request, from the inside out: its answer is
/// classified, a liveness probe runs beside it (P20), late replies are settled (P16), and what is
/// safe to repeat is repeated. The first call should be kIdentify: until then the newest release's
/// dialect and one worker are assumed. Control thread only; see EngineClient for the rest.
class VllmClient final : public EngineClient {
 public:
  /// `calls` carries the requests, `probes` the liveness probes beside them. `executor` and `log`
  /// (may be null) must outlive the client; `observer` may be empty.
  VllmClient(Executor& executor,
             std::unique_ptr<http::Client> calls,
             std::unique_ptr<http::Client> probes,
             VllmClientOptions options,
             RequestObserver observer,
             LogSink* log);
  ~VllmClient() override;

  /// Precondition: no call is outstanding.
  void call(Call call, Deadline deadline, Done done) override;
  void cancel(const Status& reason) override;

  [[nodiscard]] const std::string& name() const override { return options_.engine.name; }

  [[nodiscard]] const std::string& url() const override { return options_.engine.url; }

 private:
  [[nodiscard]] std::unique_ptr<Flow> flowFor(Call call, Deadline deadline);
  void complete(Reply reply);

  Executor& executor_;
  VllmClientOptions options_;
  Wire wire_;
  EngineState state_;
  CallKind kind_ = CallKind::kIdentify;
  Done done_;
  Executor::TimerId completion_ = 0;
  std::unique_ptr<Flow> flow_;
};

}  // namespace pushrod::engines::vllm
