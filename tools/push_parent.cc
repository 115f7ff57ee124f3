// SPDX-License-Identifier: Apache-2.0
#include "tools/push_parent.h"

#include <fstream>
#include <iterator>
#include <optional>

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

/// What the ranks themselves cannot tell: who died and who had to be ended.
std::string deaths(const std::vector<ChildEnd>& ends) {
  std::string text;
  for (std::size_t rank = 0; rank < ends.size(); ++rank) {
    const ChildEnd& end = ends[rank];
    if (end.killed) {
      text += " Rank " + std::to_string(rank) + " did not end in time and was killed.";
    } else if (end.signal != 0) {
      text += " Rank " + std::to_string(rank) + " was ended by signal " +
              std::to_string(end.signal) + ".";
    }
  }
  return text;
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
    const Status checkpoint = Checkpoint::open(options.checkpoint).status();
    return checkpoint ? Result<DrillPlan>(DrillPlan()) : checkpoint;
  }
  Result<DrillPlan> plan = loadDrillPlan(options.plan, options.ranks);
  const Status overrides =
      plan ? checkOverrides(options.config, *plan, options.plan) : plan.status();
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

void leaveRefusal(const PushOptions& options, const Status& why) {
  // Where the report itself is what was refused, nothing can be written.
  if (!options.report.empty() && checkReportPath(options.report).ok()) {
    const std::string text =
        reportText(options, refusedReport(options.version, options.ranks, why).toJson()) + "\n";
    const Status written = writeReportFile(options.report, text);
    if (!written) {
      printError(written.message());
    }
  }
}

void tell(const PushOptions& options,
          const PrivateFolder& folder,
          const SuperviseResult& result,
          int code) {
  const auto summary = lowest(folder, options.ranks, &summaryFileName);
  const std::string text = told(summary.value_or("No rank left a result."), deaths(result.ends));
  if (code == kExitDone) {
    print(text + "\n");
  } else {
    printError(text);
  }
  const auto report = lowest(folder, options.ranks, &reportFileName);
  if (!options.report.empty() && report) {
    const Status written = writeReportFile(options.report, *report + "\n");
    if (!written) {
      printError(written.message());
    }
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
  const Result<std::unique_ptr<PrivateFolder>> folder = PrivateFolder::create();
  if (!folder) {
    printError(folder.status().message() + "; no engine was contacted");
    return kExitRefused;
  }
  SuperviseOptions supervision;
  supervision.ranks = options.ranks;
  supervision.command = [&](int rank) { return rankCommand(options, (*folder)->path(), rank); };
  supervision.straggler = config->timeouts.shutdown + config->metrics.linger;
  const TimeoutsConfig& limits = config->timeouts;
  supervision.limit = limits.startup + limits.push + supervision.straggler + limits.shutdown +
                      extraTime(*plan, limits);
  if (!options.plan.empty()) {
    supervision.wakeAfter = [&](int rank) { return plannedStop((*folder)->path(), rank); };
  }
  const Result<SuperviseResult> result = supervise(supervision);
  if (!result) {
    printError(result.status().message());
    return kExitInternal;
  }
  const int code = combineExits(result->ends, result->signal);
  tell(options, **folder, *result, code);
  return code;
}

}  // namespace pushrod::tools
