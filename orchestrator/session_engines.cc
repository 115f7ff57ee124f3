// SPDX-License-Identifier: Apache-2.0
// Between pushes: the ranks meet, and the list of engines changes.
#include <algorithm>
#include <utility>

#include "config/loader.h"
#include "config/support.h"
#include "net/run_and_wait.h"
#include "orchestrator/fsm/decide.h"
#include "orchestrator/push_session.h"

namespace pushrod::orchestrator {

namespace {

TransportKind transportOf(const EngineConfig& engine, const Config& config) {
  return engine.transport.value_or(config.transport.kind);
}

}  // namespace

Status PushSession::connect() {
  std::uint64_t epoch = 0;
  Status cancelled;
  net::runAndWait(executor_, [&] {
    // A number of its own: what ends this meeting cannot end the push after it.
    epoch = ++epoch_;
    meeting_ = true;
    cancelled = std::exchange(cancelled_, Status());
    if (!cancelled.ok()) {
      adapters_->agreement().interrupt(epoch, cancelled);
    }
  });
  const Status met =
      adapters_->agreement().open(epoch, Deadline::after(executor_, config_.timeouts.connect));
  net::runAndWait(executor_, [this] { meeting_ = false; });
  return cancelled.ok() ? met : cancelled;
}

Status PushSession::setEngines(const std::vector<EngineConfig>& list) {
  if (rank_.rank != 0) {
    return Status();
  }
  if (!config_.engines.file.empty()) {
    return Status(Code::kFailedPrecondition,
                  "engines.file names the list of engines, which is read before each push; change "
                  "that file instead");
  }
  Status status;
  net::runAndWait(executor_, [&] {
    status = driver_ != nullptr ? Status(Code::kFailedPrecondition,
                                         "a push is under way; change the list of engines between "
                                         "two pushes")
                                : takeEngines(list, "the new list of engines");
    if (status.ok()) {
      refusal_ = Status();
    }
  });
  return status;
}

/// engines.file as it stands now. A file that cannot be taken refuses this push, and the engines
/// known so far stay for the next.
Status PushSession::readEngines() {
  const std::string& file = config_.engines.file;
  if (rank_.rank != 0 || file.empty()) {
    return refusal_;
  }
  Result<std::vector<EngineConfig>> list = config::loadEngines(file);
  if (!list.ok()) {
    // A ballot has room for some faults only; here all of them are told.
    std::string faults = list.status().message();
    log_.log(LogLevel::kError, "engines.file:\n" + faults);
    for (std::size_t at = 0; (at = faults.find('\n', at)) != std::string::npos;) {
      faults.replace(at, 1, "; ");
    }
    return Status(list.status().code(), "engines.file: " + faults);
  }
  return takeEngines(*list, "engines.file " + file);
}

/// `source` is who says so, for messages.
Status PushSession::takeEngines(const std::vector<EngineConfig>& list, const std::string& source) {
  if (list.empty()) {
    return Status(Code::kInvalidArgument, source + " is empty; list at least one engine");
  }
  Config next = config_;
  next.engines.list = list;
  if (Status supported = config::checkSupported(next); !supported.ok()) {
    return supported.prefixed(source);
  }
  const EnginesConfig& engines = config_.engines;
  const std::size_t needed = healthyNeeded(engines.minHealthy, list.size());
  if (engines.onLoss == OnLoss::kQuarantine && needed > list.size()) {
    return Status(Code::kInvalidArgument,
                  "engines.min_healthy: " + std::to_string(needed) + " is more than the " +
                      std::to_string(list.size()) + " engines of " + source);
  }
  for (const EngineConfig& engine : list) {
    const TransportKind kind = transportOf(engine, config_);
    if (!senders_.empty() && !senders_.contains(kind)) {
      return Status(Code::kInvalidArgument,
                    source + ": engine " + engine.name + " uses transport " +
                        std::string(transportName(kind)) +
                        ", which no engine of the configuration does; make a new coordinator");
    }
  }
  const Status set = useEngines(list);
  return set.ok() ? set : set.prefixed(source);
}

Status PushSession::useEngines(const std::vector<EngineConfig>& list) {
  const bool first = roster_.names().empty();
  const Result<EngineRoster::Change> change = roster_.set(
      list, [this](const EngineConfig& engine) { return adapters_->makeEngine(config_, engine); });
  if (!change.ok()) {
    return change.status();
  }
  config_.engines.list = list;
  if (!change->changed) {
    return Status();
  }
  // The channel has a place for each engine of the old list.
  adapters_->plane()->abort(Status(Code::kAborted, "the list of engines changed"));
  roster_.channelEnded();
  metrics_.setEngines(roster_.names());
  if (!first) {
    for (const std::string& name : change->added) {
      log_.log(LogLevel::kInfo, "engine " + name + " is new in the list of engines");
    }
    for (const std::string& name : change->removed) {
      log_.log(LogLevel::kInfo,
               "engine " + name + " is not in the list of engines any more and is left as it is");
    }
  }
  return Status();
}

}  // namespace pushrod::orchestrator
