// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

namespace pushrod::tools {

/// The arguments of `pushrod push` and `pushrod drill`.
struct PushOptions {
  std::string config;
  std::string checkpoint;
  std::string plan;  ///< of a drill; then there is neither checkpoint nor version
  std::string version;
  std::string report;  ///< empty: none
  std::string flight;  ///< folder of flight records; empty: the report's, else the working folder
  std::optional<int> rank, worldSize;
  int ranks = 0;       ///< 0: this process is a rank; else it supervises so many
  std::string folder;  ///< set by a supervisor: its private folder; results go there
  /// Set by a supervisor: pushes are ordered on standard input, one JSON line {"version",
  /// "checkpoint"} each, and their results printed as JSON lines.
  bool orders = false;
};

/// The report file's text for one push, or for pushes that already are a list's members: a drill's
/// is a list.
[[nodiscard]] inline std::string reportText(const PushOptions& options, const std::string& pushes) {
  return options.plan.empty() ? pushes : "[" + pushes + "]";
}

/// Where flight records go.
[[nodiscard]] inline std::string flightFolder(const PushOptions& options) {
  if (!options.flight.empty()) {
    return options.flight;
  }
  const std::size_t slash = options.report.rfind('/');
  return slash == std::string::npos ? "." : options.report.substr(0, slash + 1);
}

/// Names of a rank's result files in a supervisor's folder.
[[nodiscard]] inline std::string reportFileName(int rank) {
  return "rank-" + std::to_string(rank) + ".report.json";
}

[[nodiscard]] inline std::string summaryFileName(int rank) {
  return "rank-" + std::to_string(rank) + ".summary.txt";
}

/// Made there by a rank once it has met all the others.
[[nodiscard]] inline std::string meetingFileName(int rank) {
  return "rank-" + std::to_string(rank) + ".met";
}

}  // namespace pushrod::tools
