// SPDX-License-Identifier: Apache-2.0
#include "tools/rank_runner.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <poll.h>
#include <unistd.h>
#include <utility>

#include "common/log.h"
#include "tools/console.h"
#include "tools/drill/config_overrides.h"
#include "tools/exit_code.h"
#include "tools/line_reader.h"
#include "tools/progress_line.h"
#include "tools/rank_gather.h"
#include "tools/rank_result.h"
#include "tools/report_file.h"
#include "tools/sources/checkpoint_source.h"
#include "tools/sources/refused_source.h"
#include "tools/sources/strict_json.h"
#include "tools/versions.h"

namespace pushrod::tools {
namespace {

Result<Rank> rankOf(const PushOptions& options) {
  if (options.rank || options.worldSize) {
    Result<Rank> rank = Rank::of(options.rank.value_or(0), options.worldSize.value_or(1));
    if (rank && !options.folder.empty()) {
      rank->localRank = rank->rank;  // A supervisor's ranks are all on this host.
    }
    return rank;
  }
  return Rank::fromEnvironment();
}

/// Where ranks of one supervisor meet; empty for others.
Result<std::string> makeStore(const std::string& folder) {
  if (folder.empty()) {
    return std::string();
  }
  std::string store = folder + "/store";
  std::error_code error;
  // Not the folder itself: its supervisor may have ended and taken it away.
  std::filesystem::create_directory(store, error);
  if (error) {
    return Status(Code::kUnavailable, store + ": cannot be made: " + error.message());
  }
  return store;
}

common::LogOptions logOptions(const Config& config, const Rank& rank) {
  common::LogOptions options;
  options.job = config.job;
  options.rank = rank.rank;
  options.level = config.log.level;
  if (config.log.ranks == LogRanks::kFirst && rank.rank != 0) {
    options.level = std::max(options.level, LogLevel::kWarning);
  }
  options.style =
      config.log.format == LogFormat::kJson ? common::LogStyle::kJson : common::LogStyle::kText;
  return options;
}

struct Order {
  std::string version, checkpoint;
};

Result<Order> parseOrder(const std::string& line) {
  constexpr std::size_t kMaxValues = 8;
  const Result<JsonNode> node = parseStrictJson(line, kMaxValues);
  if (!node) {
    return node.status();
  }
  const JsonNode* version = node->find("version");
  const JsonNode* checkpoint = node->find("checkpoint");
  if (version == nullptr || checkpoint == nullptr) {
    return Status(Code::kInvalidArgument, "an order lacks version or checkpoint");
  }
  return Order{version->text, checkpoint->text};
}

}  // namespace

int RankRunner::run() {
  Result<Config> config = Config::load(options_.config);
  if (!config) {
    printFaults(config.status().message());
    const Result<Rank> rank = rankOf(options_);
    if (rank && rank->rank == 0) {
      leaveReport(reportText(
          options_, refusedReport(options_.version, rank->size, config.status()).toJson()));
    }
    return exitCode(kExitRefused);
  }
  config_ = std::move(*config);
  Status ready = prepare();
  if (ready) {
    forgetOldReport();
    ready = connect();
  }
  if (!ready) {
    RankResult result = resultOfRefusal(ready, options_.version, rank_.size);
    result.report = reportText(options_, result.report);
    publish(result);
    return exitCode(result.exit);
  }
  int code = kExitDone;
  if (options_.orders) {
    code = pushOrders();
  } else if (!options_.plan.empty()) {
    const RankResult result = drill();
    publish(result);
    code = result.exit;
  } else {
    const RankResult result =
        refused_.ok() ? push(*checkpoint_, options_.version) : refuseTogether();
    publish(result);
    code = result.exit;
  }
  linger();
  watch_.onStop(nullptr);
  watch_.onReport(nullptr);
  gather_.reset();  // Its store may be served by the coordinator.
  coordinator_.reset();
  return exitCode(code);
}

Status RankRunner::prepare() {
  Result<Rank> rank = rankOf(options_);
  if (!rank) {
    return rank.status();
  }
  rank_ = std::move(*rank);
  if (!options_.plan.empty()) {
    const Status opened = openPlan();
    if (!opened) {
      return opened;
    }
  }
  const Status versions = checkVersions(options_, plan_);
  if (!versions) {
    return versions;
  }
  log_ = std::make_unique<common::StderrLogSink>(logOptions(config_, rank_));
  log_->log(LogLevel::kInfo,
            "rank " + std::to_string(rank_.rank) + " of " + std::to_string(rank_.size) +
                ", as told by: " + rank_.source);
  if (options_.orders || !options_.plan.empty()) {
    return {};
  }
  refused_ = openFiles();
  // Other ranks may have what this one lacks; they would wait for it.
  return rank_.size > 1 ? Status() : refused_;
}

/// A plan is the same on all ranks: one that is refused, is refused by each of them.
Status RankRunner::openPlan() {
  Status report = options_.report.empty() ? Status() : checkReportPath(options_.report);
  if (!report) {
    return report;
  }
  Result<DrillPlan> plan = loadDrillPlan(options_.plan, rank_.size);
  if (!plan) {
    return plan.status();
  }
  const Status overrides = checkOverrides(options_.config, *plan, options_.plan);
  if (!overrides) {
    return overrides;
  }
  Result<Config> config = overriddenConfig(options_.config, *plan, rank_.rank);
  if (!config) {
    return config.status();
  }
  plan_ = std::move(*plan);
  config_ = std::move(*config);
  return {};
}

Status RankRunner::openFiles() {
  Status report = options_.report.empty() ? Status() : checkReportPath(options_.report);
  if (!report) {
    return report;
  }
  Result<std::unique_ptr<Checkpoint>> checkpoint = Checkpoint::open(options_.checkpoint);
  if (!checkpoint) {
    return checkpoint.status();
  }
  checkpoint_ = std::move(*checkpoint);
  return {};
}

Status RankRunner::connect() {
  const Result<std::string> store = makeStore(options_.folder);
  if (!store) {
    return store.status();
  }
  if (rank_.size > 1) {
    Result<std::unique_ptr<ShareGather>> gather = makeRankGather(config_, rank_, *store);
    if (!gather) {
      return gather.status();
    }
    gather_ = std::move(*gather);
  } else {
    gather_ = std::make_unique<SoloGather>();
  }
  Result<std::unique_ptr<PushCoordinator>> coordinator = PushCoordinator::create(
      config_,
      rank_,
      {.logSink = log_.get(), .privateStore = *store, .flightRecord = flightFolder(options_)});
  if (!coordinator) {
    return coordinator.status();
  }
  coordinator_ = std::move(*coordinator);
  watch_.onStop([this](int signal) {
    coordinator_->cancel(std::string("stopped by ") + signalName(signal));
  });
  watch_.onReport([this] { coordinator_->logState(); });
  const std::string address = coordinator_->metricsAddress();
  if (options_.orders) {
    print("{\"event\":\"ready\",\"rank\":" + std::to_string(rank_.rank) +
          ",\"metrics\":" + common::jsonQuoted(address) + "}\n");
  } else if (!address.empty()) {
    print("metrics: http://" + address + "\n");
  }
  return {};
}

int RankRunner::pushOrders() {
  LineReader orders(STDIN_FILENO);
  int code = kExitDone;
  // Orders come when the supervisor's plan says so; its end, or a signal, ends the wait.
  while (const auto line = orders.next(Deadline::never(), watch_.descriptor())) {
    const Result<Order> order = parseOrder(*line);
    const Result<std::unique_ptr<Checkpoint>> checkpoint =
        order ? Checkpoint::open(order->checkpoint) : order.status();
    const RankResult result =
        checkpoint ? push(**checkpoint, order->version)
                   : resultOfRefusal(checkpoint.status(), order ? order->version : "", rank_.size);
    code = std::max(code, result.exit);
    print("{\"event\":\"result\",\"rank\":" + std::to_string(rank_.rank) + ",\"exit\":" +
          std::to_string(result.exit) + ",\"outcome\":" + common::jsonQuoted(result.outcome) +
          ",\"summary\":" + common::jsonQuoted(result.summary) +
          ",\"report\":" + (result.report.empty() ? "null" : result.report) + "}\n");
  }
  return code;
}

RankResult RankRunner::push(const Checkpoint& checkpoint, const std::string& version) {
  if (!checkpoint.warning().empty() && rank_.rank == 0) {
    log_->log(LogLevel::kWarning, checkpoint.warning());
  }
  mendGather();
  CheckpointSource source(checkpoint, *gather_);
  std::optional<ProgressLine> line;
  if (rank_.rank == 0 && !options_.orders && ProgressLine::wanted()) {
    line.emplace();
  }
  PushRequest request;
  request.version = version;
  request.weights = &source;
  request.progress = [this, &line](const PushProgress& progress) {
    if (progress.phase != Phase::kIdle && progress.phase != Phase::kCheck) {
      noteMeeting();
    }
    if (line) {
      line->update(progress);
    }
  };
  RankResult result = resultOf(coordinator_->push(request));
  lastFailed_ = result.exit != 0;
  return result;
}

void RankRunner::mendGather() {
  if (lastFailed_) {
    // A failed push may have ended a gather.
    gather_->renew();
  }
}

RankResult RankRunner::refuseTogether() {
  RefusedSource source(refused_);
  PushRequest request;
  request.version = options_.version;
  request.weights = &source;
  return resultOf(coordinator_->push(request));
}

/// Rank 0's alone: another rank's may be the same file, with a refusal of rank 0 in it already.
void RankRunner::forgetOldReport() const {
  const bool mine = rank_.rank == 0 && options_.folder.empty() && !options_.report.empty();
  if (mine && checkReportPath(options_.report).ok()) {
    removeOldReport(options_.report);
  }
}

void RankRunner::noteMeeting() {
  if (!met_ && !options_.folder.empty()) {
    met_ = true;
    std::ofstream(options_.folder + "/" + meetingFileName(rank_.rank)).put('\n');
  }
}

void RankRunner::publish(const RankResult& result) const {
  if (!options_.folder.empty()) {
    // The supervisor picks the lowest rank's results and speaks for all.
    const auto leave = [this](const std::string& name, const std::string& text) {
      const Status written = writeReportFile(options_.folder + "/" + name, text);
      if (!written) {
        printError(written.toString());
      }
      return written.ok();
    };
    if (!leave(summaryFileName(rank_.rank), result.summary)) {
      printError("rank " + std::to_string(rank_.rank) + ": " + result.summary);
    }
    if (!result.report.empty()) {
      leave(reportFileName(rank_.rank), result.report);
    }
    return;
  }
  // The lowest rank known to live.
  const bool mine = rank_.rank == 0 || (rank_.rank == 1 && result.rankZeroLost);
  if (!result.report.empty() && mine) {
    leaveReport(result.report);
  }
  // Each rank's error may be the only one that somebody sees; a success is told once.
  if (result.exit != kExitDone) {
    printError(result.summary);
  } else if (rank_.rank == 0) {
    print(result.summary + "\n");
  }
}

void RankRunner::leaveReport(const std::string& report) const {
  if (options_.report.empty() || !options_.folder.empty()) {
    return;
  }
  const Status written = writeReportFile(options_.report, report + "\n");
  if (!written) {
    printError(written.toString());
  }
}

void RankRunner::linger() const {
  if (coordinator_->metricsAddress().empty() || watch_.received() != 0) {
    return;
  }
  pollfd entry{watch_.descriptor(), POLLIN, 0};
  constexpr Duration kLongest = std::chrono::hours(24);
  ::poll(&entry, 1, static_cast<int>(std::min(config_.metrics.linger, kLongest).count()));
}

int RankRunner::exitCode(int code) const {
  return watch_.received() != 0 ? exitOfSignal(watch_.received()) : code;
}

}  // namespace pushrod::tools
