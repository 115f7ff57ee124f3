// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include <pushrod/result.h>

#include "http/server.h"
#include "metrics/push_metrics.h"
#include "orchestrator/status/status_board.h"

namespace pushrod::orchestrator {

/// Serves /metrics, /healthz, /status and, at /, their list; read-only. The board and the metrics
/// outlive it.
class StatusServer {
 public:
  /// `listen` is metrics.listen ("host:port"); `portOffset` is added to a port that is not 0.
  static Result<std::unique_ptr<StatusServer>> start(net::IoExecutor& executor,
                                                     const std::string& listen,
                                                     int portOffset,
                                                     const metrics::PushMetrics& metrics,
                                                     const StatusBoard& board);

  /// "host:port" with the port in use.
  [[nodiscard]] const std::string& address() const { return address_; }

 private:
  StatusServer() = default;
  std::unique_ptr<http::Server> server_;
  std::string address_;
};

}  // namespace pushrod::orchestrator
