// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/push_session.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "common/ids.h"
#include "config/agreement_text.h"
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

/// What engines of the configuration may use; empty: anything, as they stand in a file.
std::set<TransportKind> transportsOf(const Config& config) {
  std::set<TransportKind> kinds;
  if (config.engines.file.empty()) {
    for (const EngineConfig& engine : config.engines.list) {
      kinds.insert(engine.transport.value_or(config.transport.kind));
    }
  }
  return kinds;
}

/// Whether both are decimal numbers and the first is the smaller one, whatever their lengths.
bool isOlder(std::string_view version, std::string_view last) {
  const auto number = [](std::string_view text) {
    return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
  };
  if (!number(version) || !number(last)) {
    return false;
  }
  version.remove_prefix(std::min(version.find_first_not_of('0'), version.size()));
  last.remove_prefix(std::min(last.find_first_not_of('0'), last.size()));
  return version.size() != last.size() ? version.size() < last.size() : version < last;
}

}  // namespace

PushSession::PushSession(Config config, Rank rank, LogSink& log, std::string flightFolder)
    : config_(std::move(config)),
      rank_(std::move(rank)),
      log_(log),
      flightFolder_(std::move(flightFolder)),
      senders_(transportsOf(config_)),
      metrics_(pushTransport(config_), engineNames(config_, rank_)),
      board_(config_.job, rank_.rank, rank_.size) {}

PushSession::~PushSession() {
  net::runAndWait(executor_, [this] {
    watch_.reset();
    collector_.reset();
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
      refusal_ = useEngines(config_.engines.list);
    }
    monitor_ = std::make_unique<PushMonitor>(
        MonitorParts{executor_, log_, metrics_, board_, rank_.rank == 0, adapters_->plane()});
    recorder_ = std::make_unique<FlightRecorder>(executor_, rank_.rank, *monitor_);
    collector_ = std::make_unique<FlightCollector>(
        executor_, adapters_->records(), rank_, [this](std::size_t budget) {
          return recorder_->encode(budget);
        });
    watch_ = std::make_unique<StallWatch>(StallWatchParts{
        executor_, log_, board_, *recorder_, adapters_->records(), config_, rank_.rank});
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

/// Versions are opaque and may go back (P8); where both are numbers it is said, in case it was not
/// meant.
void PushSession::noteOlderVersion(const std::string& version) {
  if (rank_.rank == 0 && isOlder(version, lastVersion_)) {
    log_.log(LogLevel::kInfo,
             "version " + version + " is older than " + lastVersion_ + ", the last one pushed");
  }
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
    lastVersion_ = ending.report.version;
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
  noteOlderVersion(push.version);
  monitor_->begin(epoch_, request.version, statusOf(push.engines), request.progress);
  std::vector<std::string> names;
  for (const EngineSlot& slot : push.engines) {
    names.push_back(slot.client->name());
  }
  collector_->begin(epoch_);
  watch_->begin(epoch_, request.version);
  DriverParts parts{executor_,
                    caller,
                    adapters_->link(),
                    *recorder_,
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
        ended = Ended{std::move(ending.report), ending.verdictKnown, {}};
        settle(caller, ended);
      });
  recorder_->begin(driver_->state(), names, [this](std::size_t engine) {
    return driver_ == nullptr ? 0 : driver_->bytesSent(engine);
  });
  driver_->start();
  if (!cancelled_.ok()) {
    driver_->cancel(std::exchange(cancelled_, Status()));
  }
}

Result<PushReport> PushSession::push(const PushRequest& request) {
  if (const Status version = config::checkVersion(request.version); !version.ok()) {
    return Status(version.code(), version.message() + "; no engine was contacted");
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
  if (!result.flight.empty()) {
    leaveFlight(result.flight);
  }
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
    } else if (settling_) {
      // The push has its outcome; whoever orders the stop does not wait for a record.
      collector_->cut();
    } else if (meeting_) {
      adapters_->agreement().interrupt(epoch_, reason);
    } else {
      cancelled_.merge(reason);
    }
  });
}

}  // namespace pushrod::orchestrator
