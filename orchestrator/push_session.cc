// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/push_session.h"

#include <utility>

#include "common/ids.h"
#include "config/agreement_text.h"
#include "config/loader.h"
#include "config/support.h"
#include "config/text_check.h"
#include "net/run_and_wait.h"

namespace pushrod::orchestrator {

namespace {

std::vector<std::string> engineNames(const Config& config, const Rank& rank) {
  std::vector<std::string> names;
  if (rank.rank == 0) {
    for (const EngineConfig& engine : config.engines.list) {
      names.push_back(engine.name);
    }
  }
  return names;
}

TransportKind pushTransport(const Config& config) {
  TransportKind kind = config.transport.kind;
  bool first = true;
  for (const EngineConfig& engine : config.engines.list) {
    const TransportKind own = engine.transport.value_or(config.transport.kind);
    kind = first || own == kind ? own : TransportKind::kMixed;
    first = false;
  }
  return kind;
}

}  // namespace

PushSession::PushSession(Config config, Rank rank, LogSink& log)
    : config_(std::move(config)),
      rank_(std::move(rank)),
      log_(log),
      metrics_(pushTransport(config_), engineNames(config_, rank_)),
      board_(config_.job, rank_.rank, rank_.size) {}

PushSession::~PushSession() {
  net::runAndWait(executor_, [this] {
    driver_.reset();
    server_.reset();
    if (adapters_ != nullptr) {
      if (DataPlane* plane = adapters_->plane(); plane != nullptr) {
        plane->abort(Status(Code::kAborted, "the sender ends"));
      }
    }
    roster_.clear();
  });
  // The meeting point joins threads of its own; it must not do so on the control thread.
  adapters_.reset();
}

Status PushSession::compose(const std::string& privateStore) {
  Status status;
  net::runAndWait(executor_, [&] {
    Result<std::unique_ptr<Adapters>> adapters =
        makeAdapters(config_, rank_, privateStore, executor_, metrics_, log_);
    if (!adapters.ok()) {
      status = adapters.status();
      return;
    }
    adapters_ = std::move(*adapters);
    if (rank_.rank == 0 && config_.engines.file.empty()) {
      refusal_ = setEngines(config_.engines.list);
    }
    monitor_ = std::make_unique<PushMonitor>(
        MonitorParts{executor_, log_, metrics_, board_, rank_.rank == 0, adapters_->plane()});
    serve();
  });
  return status;
}

void PushSession::serve() {
  const bool mine = rank_.rank == 0 || config_.metrics.ranks == MetricsRanks::kAll;
  if (config_.metrics.listen.empty() || !mine) {
    return;
  }
  const int offset = config_.metrics.ranks == MetricsRanks::kAll ? rank_.localRank : 0;
  Result<std::unique_ptr<StatusServer>> server =
      StatusServer::start(executor_, config_.metrics.listen, offset, metrics_, board_);
  if (!server.ok()) {
    // A push does not fail for want of a page about it.
    log_.log(LogLevel::kWarning, "metrics are not served: " + server.status().message());
    return;
  }
  server_ = std::move(*server);
  address_ = server_->address();
}

std::string PushSession::metricsAddress() const {
  return address_;
}

std::vector<EngineSlot> PushSession::makeSlots(const std::string& version,
                                               const std::string& marker) {
  PushFacts facts;
  facts.version = version;
  facts.marker = marker;
  facts.markerMode = config_.push.versionMarker;
  facts.verify = config_.push.verify != Verify::kNone;
  facts.flush = config_.push.flush;
  facts.wake = config_.engines.wake;
  return roster_.slots(facts);
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
  Config next = config_;
  next.engines.list = *list;
  if (Status supported = config::checkSupported(next); !supported.ok()) {
    return supported.prefixed("engines.file " + file);
  }
  const EnginesConfig& engines = config_.engines;
  const std::size_t needed = healthyNeeded(engines.minHealthy, list->size());
  if (engines.onLoss == OnLoss::kQuarantine && needed > list->size()) {
    return Status(Code::kInvalidArgument,
                  "engines.min_healthy: " + std::to_string(needed) + " is more than the " +
                      std::to_string(list->size()) + " engines of " + file);
  }
  const Status set = setEngines(*list);
  return set.ok() ? set : set.prefixed("engines.file " + file);
}

Status PushSession::setEngines(const std::vector<EngineConfig>& list) {
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
  if (epoch_ > 1) {
    for (const std::string& name : change->added) {
      log_.log(LogLevel::kInfo, "engine " + name + " is new in engines.file");
    }
    for (const std::string& name : change->removed) {
      log_.log(LogLevel::kInfo,
               "engine " + name + " is not in engines.file any more and is left as it is");
    }
  }
  return Status();
}

std::vector<EngineStatus> PushSession::statusOf(const std::vector<EngineSlot>& slots) const {
  std::vector<EngineStatus> list;
  for (const EngineSlot& slot : slots) {
    EngineStatus status;
    status.name = slot.client->name();
    status.url = slot.client->url();
    list.push_back(std::move(status));
  }
  return list;
}

void PushSession::addNames(Names& names, const Manifest& manifest) {
  std::set<std::string> all;
  if (names != nullptr) {
    all = *names;
  }
  for (const TensorSpec& tensor : manifest.tensors) {
    all.insert(tensor.name);
  }
  names = std::make_shared<const std::set<std::string>>(std::move(all));
}

void PushSession::keep(PushDriver::Ending& ending, bool good) {
  roster_.keep(ending.engines, good);
  if (good) {
    addNames(earlierNames_, *ending.manifest);
    if (ending.draftManifest != nullptr) {
      addNames(earlierDraftNames_, *ending.draftManifest);
    }
  }
}

void PushSession::begin(const PushRequest& request, ThreadCaller& caller, Ended& ended) {
  ++epoch_;
  DriverPush push;
  push.epoch = epoch_;
  push.version = request.version;
  push.marker = "pushrod-" + config_.job + "-" + common::toHex(common::randomId());
  push.agreement = config::agreementText(config_) + "version: " + request.version + "\n" +
                   "draft weights: " + (request.draftWeights != nullptr ? "yes" : "no") + "\n";
  push.draft = request.draftWeights != nullptr;
  push.earlierDraftNames = earlierDraftNames_;
  push.compareAgreement = [](std::string_view mine, std::string_view rank0) {
    return config::firstDifference(mine, rank0);
  };
  push.earlierNames = earlierNames_;
  push.refusal = readEngines();
  push.onPhase = request.onPhase;
  push.engines = makeSlots(push.version, push.marker);
  monitor_->begin(epoch_, request.version, statusOf(push.engines), request.progress);
  DriverParts parts{executor_,
                    caller,
                    adapters_->link(),
                    *monitor_,
                    config_,
                    rank_,
                    adapters_->plane(),
                    adapters_->chunks(),
                    adapters_->owned()};
  driver_ = std::make_unique<PushDriver>(
      parts, std::move(push), [this, &caller, &ended](PushDriver::Ending ending) {
        const bool good = ending.report.outcome == PushOutcome::kDone ||
                          ending.report.outcome == PushOutcome::kRecovered;
        keep(ending, good);
        driver_.reset();
        ended = Ended{std::move(ending.report), ending.verdictKnown};
        caller.stop();
      });
  driver_->start();
  if (!cancelled_.ok()) {
    driver_->cancel(std::exchange(cancelled_, Status()));
  }
}

Result<PushReport> PushSession::push(const PushRequest& request) {
  if (request.version.empty()) {
    return Status(Code::kInvalidArgument, "the version to push is empty");
  }
  if (!config::isPrintable(request.version)) {
    // JSON cannot carry it: engines would refuse it with the last call, their weights half way.
    return Status(Code::kInvalidArgument,
                  "the version to push is not UTF-8 text without control characters; give "
                  "another; no engine was contacted");
  }
  if (request.weights == nullptr) {
    return Status(Code::kInvalidArgument, "there is no weight source");
  }
  ThreadCaller caller(CallerParts{executor_,
                                  adapters_->agreement(),
                                  adapters_->plane(),
                                  *request.weights,
                                  request.draftWeights,
                                  config_.push,
                                  rank_.rank,
                                  adapters_->chunks(),
                                  adapters_->owned()});
  Ended result;
  executor_.post([&] { begin(request, caller, result); });
  // Until the driver's end stops it: the mutex inside orders `result` before the return.
  caller.run();
  if (!result.known) {
    return result.report.firstCause.prefixed(
        "the outcome of this push could not be learnt on this rank");
  }
  return std::move(result.report);
}

void PushSession::cancel(const Status& reason) {
  executor_.post([this, reason] {
    if (driver_ != nullptr) {
      driver_->cancel(reason);
    } else {
      cancelled_.merge(reason);
    }
  });
}

}  // namespace pushrod::orchestrator
