// SPDX-License-Identifier: Apache-2.0
#include "tools/push_parent.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <system_error>

#include <pushrod/config.h>

#include "tools/console.h"
#include "tools/drill/config_overrides.h"
#include "tools/drill/process_faults.h"
#include "tools/exit_code.h"
#include "tools/private_folder.h"
#include "tools/report_file.h"
#include "tools/sources/checkpoint.h"
#include "tools/sources/drill_plan.h"
#include "tools/supervisor.h"
#include "tools/unheard_ranks.h"
#include "tools/versions.h"

namespace pushrod::tools {
namespace {

std::optional<std::string> readWhole(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return std::nullopt;
  }
  return std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
}

/// The first of the ranks' files of that kind, by rank.
std::optional<std::string> lowest(const PrivateFolder& folder,
                                  int ranks,
                                  std::string (*nameOf)(int)) {
  for (int rank = 0; rank < ranks; ++rank) {
    if (auto text = readWhole(folder.file(nameOf(rank)))) {
      return text;
    }
  }
  return std::nullopt;
}

/// The ranks' own word, then what only their parent knows.
std::string told(std::string summary, const std::string& ends) {
  if (!ends.empty() && !summary.ends_with('.')) {
    summary += '.';
  }
  return summary + ends;
}

/// Refusals are told once, by the parent, before any rank exists.
Result<DrillPlan> refuseEarly(const PushOptions& options) {
  const Status report = options.report.empty() ? Status() : checkReportPath(options.report);
  if (!report) {
    return report;
  }
  if (options.plan.empty()) {
    const Status version = checkVersions(options, {});
    if (!version) {
      return version;
    }
    const Status checkpoint = Checkpoint::open(options.checkpoint).status();
    return checkpoint ? Result<DrillPlan>(DrillPlan()) : checkpoint;
  }
  Result<DrillPlan> plan = loadDrillPlan(options.plan, options.ranks);
  Status overrides = plan ? checkVersions(options, *plan) : plan.status();
  if (overrides) {
    overrides = checkOverrides(options.config, *plan, options.plan);
  }
  return overrides ? std::move(plan) : overrides;
}

/// What the pushes of a plan may take beyond one push's own limits.
Duration extraTime(const DrillPlan& plan, const TimeoutsConfig& limits) {
  Duration extra = Duration::zero();
  for (const DrillPush& push : plan.pushes) {
    extra += push.wait + limits.push + limits.gather;
  }
  return extra;
}

void leaveReport(const PushOptions& options, const std::string& report) {
  if (options.report.empty()) {
    return;
  }
  const Status written = writeReportFile(options.report, report + "\n");
  if (!written) {
    printError(written.message());
  }
}

void leaveRefusal(const PushOptions& options, const Status& why) {
  // Where the report itself is what was refused, nothing can be written.
  if (!options.report.empty() && checkReportPath(options.report).ok()) {
    leaveReport(options,
                reportText(options, refusedReport(options.version, options.ranks, why).toJson()));
  }
}

/// One run of all ranks, as their supervisor sees it.
struct Run {
  const PushOptions& options;
  const Config& config;
  std::string version;  ///< of the first push
  std::chrono::system_clock::time_point started = std::chrono::system_clock::now();

  /// Nothing is known of a push whose ranks all ended well and left no result: no report then.
  void leaveOwnReport(const std::string& why, int code) const {
    if (code != kExitDone) {
      leaveReport(options,
                  reportText(options,
                             unheardReport(version, config, options.ranks, started, why).toJson()));
    }
  }
};

void tell(const Run& run, const PrivateFolder& folder, const SuperviseResult& result, int code) {
  const int ranks = run.options.ranks;
  const auto summary = lowest(folder, ranks, &summaryFileName);
  const std::string unheard = unheardText(result.ends, folder.path());
  const std::string text = summary ? told(*summary, deathsText(result.ends)) : unheard;
  if (const auto report = lowest(folder, ranks, &reportFileName)) {
    leaveReport(run.options, *report);
  } else {
    run.leaveOwnReport(unheard, code);
  }
  if (code == kExitDone && summary) {
    print(text + "\n");
  } else {
    printError(text);
  }
}

void tellRefusal(const PushOptions& options, const Status& refused) {
  const bool faults = !options.plan.empty() && refused.message().starts_with(options.plan + ":");
  if (faults) {
    printFaults(refused.message());
  } else {
    printError(refused.message() + "; no engine was contacted");
  }
}

int superviseRanks(const Run& run, const PrivateFolder& folder, Duration extra) {
  const TimeoutsConfig& limits = run.config.timeouts;
  SuperviseOptions supervision;
  supervision.ranks = run.options.ranks;
  supervision.command = [&](int rank) { return rankCommand(run.options, folder.path(), rank); };
  // However little a push may take to shut down, a process takes a moment to end.
  constexpr Duration kEnd = std::chrono::seconds(2);
  supervision.straggler = std::max(limits.shutdown, kEnd) + run.config.metrics.linger;
  // A rank that waits for the others to come has that limit yet, and then tells who did not come.
  supervision.stragglerMore = [&](int rank) {
    std::error_code ignored;
    const bool met = std::filesystem::exists(folder.file(meetingFileName(rank)), ignored);
    return met ? Duration::zero() : limits.connect;
  };
  supervision.limit =
      limits.startup + limits.push + supervision.straggler + limits.shutdown + extra;
  if (!run.options.plan.empty()) {
    supervision.wakeAfter = [&](int rank) { return plannedStop(folder.path(), rank); };
  }
  const Result<SuperviseResult> result = supervise(supervision);
  if (!result) {
    printError(result.status().message());
    run.leaveOwnReport(result.status().message(), kExitInternal);
    return kExitInternal;
  }
  const int code = combineExits(result->ends, result->signal);
  tell(run, folder, *result, code);
  return code;
}

}  // namespace

std::vector<std::string> rankCommand(const PushOptions& options,
                                     const std::string& folder,
                                     int rank) {
  std::vector<std::string> command = {ownProgram(),
                                      options.plan.empty() ? "push" : "drill",
                                      "--config",
                                      options.config,
                                      "--rank",
                                      std::to_string(rank),
                                      "--world-size",
                                      std::to_string(options.ranks),
                                      "--flight-record",
                                      flightFolder(options),
                                      "--supervised",
                                      folder};
  if (options.orders) {
    command.emplace_back("--orders");
    return command;
  }
  if (!options.plan.empty()) {
    command.insert(command.end(), {"--plan", options.plan});
    return command;
  }
  command.insert(command.end(),
                 {"--checkpoint", options.checkpoint, "--version=" + options.version});
  return command;
}

int runPushParent(const PushOptions& options) {
  const Result<Config> config = Config::load(options.config);
  if (!config) {
    printFaults(config.status().message());
    leaveRefusal(options, config.status());
    return kExitRefused;
  }
  const Result<DrillPlan> plan = refuseEarly(options);
  if (!plan) {
    const Status refused = plan.status();
    tellRefusal(options, refused);
    leaveRefusal(options, refused);
    return refused.code() == Code::kInternal ? kExitInternal : kExitRefused;
  }
  // From here on something is left behind by a sudden end.
  holdSignals();
  const Result<std::unique_ptr<PrivateFolder>> folder = PrivateFolder::create();
  if (!folder) {
    printError(folder.status().message() + "; no engine was contacted");
    leaveRefusal(options, folder.status());
    return kExitRefused;
  }
  // Whatever happens, an earlier push's report is not taken for this one's.
  if (!options.report.empty()) {
    removeOldReport(options.report);
  }
  const std::string version = options.plan.empty() ? options.version : plan->pushes.front().version;
  return superviseRanks({.options = options, .config = *config, .version = version},
                        **folder,
                        extraTime(*plan, config->timeouts));
}

}  // namespace pushrod::tools
