// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include <pushrod/coordinator.h>

#include "common/log.h"
#include "orchestrator/push_session.h"

namespace pushrod {

struct PushCoordinator::Impl {
  // The session refers to the sink.
  std::unique_ptr<common::StderrLogSink> ownSink;
  std::unique_ptr<orchestrator::PushSession> session;
};

PushCoordinator::PushCoordinator(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

PushCoordinator::~PushCoordinator() {
  impl_->session->cancel(Status(Code::kCancelled, "the coordinator is destroyed"));
}

Result<std::unique_ptr<PushCoordinator>> PushCoordinator::create(
    const Config& config, const Result<Rank>& rank, const CoordinatorOptions& options) {
  if (!rank.ok()) {
    return rank.status();
  }
  auto impl = std::make_unique<Impl>();
  LogSink* sink = options.logSink;
  if (sink == nullptr) {
    common::LogOptions log;
    log.job = config.job;
    log.rank = rank->rank;
    log.level = config.log.level;
    if (config.log.ranks == LogRanks::kFirst && rank->rank != 0 && log.level < LogLevel::kWarning) {
      log.level = LogLevel::kWarning;
    }
    log.style =
        config.log.format == LogFormat::kJson ? common::LogStyle::kJson : common::LogStyle::kText;
    impl->ownSink = std::make_unique<common::StderrLogSink>(log);
    sink = impl->ownSink.get();
  }
  for (const std::string& warning : config.warnings) {
    if (rank->rank == 0) {
      sink->log(LogLevel::kWarning, warning);
    }
  }
  impl->session =
      std::make_unique<orchestrator::PushSession>(config, *rank, *sink, options.flightRecord);
  if (Status status = impl->session->compose(options.privateStore); !status.ok()) {
    return status;
  }
  return std::unique_ptr<PushCoordinator>(new PushCoordinator(std::move(impl)));
}

Status PushCoordinator::connect() {
  return impl_->session->connect();
}

Status PushCoordinator::setEngines(const std::vector<EngineConfig>& engines) {
  return impl_->session->setEngines(engines);
}

Result<PushReport> PushCoordinator::push(const PushRequest& request) {
  return impl_->session->push(request);
}

void PushCoordinator::cancel(const std::string& reason) {
  impl_->session->cancel(Status(Code::kCancelled, reason));
}

void PushCoordinator::logState() {
  impl_->session->logState();
}

std::string PushCoordinator::metricsAddress() const {
  return impl_->session->metricsAddress();
}

}  // namespace pushrod
