// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include <pushrod/result.h>

#include "tools/child_process.h"
#include "tools/descriptor.h"
#include "tools/line_reader.h"
#include "tools/push_options.h"

namespace pushrod::tools {

/// One engine in a push report.
struct ReportedEngine {
  std::string name, outcome, error, remedy;
};

/// What one rank said about one push.
struct RankVerdict {
  int exit = 0;
  std::string outcome;
  std::string summary;
  std::string causeEngine;  ///< of the first cause, empty: none or no engine
  std::string cause;        ///< its message
  double durationSeconds = 0;
  double pausedSeconds = 0;
  std::map<std::string, double> phases;
  std::vector<ReportedEngine> engines;
};

/// The line that a rank prints per push.
Result<RankVerdict> parseRankVerdict(const std::string& line);

/// Trainer ranks in processes of their own that push on order.
class DemoRanks {
 public:
  /// Starts `options.ranks` ranks and waits until all are ready. `folder` is theirs to meet in, and
  /// their logs go there. `stop`: a descriptor that ends waits.
  static Result<std::unique_ptr<DemoRanks>> start(const PushOptions& options,
                                                  const std::string& folder,
                                                  int stop);

  /// "http://host:port" of rank 0's exporter.
  [[nodiscard]] const std::string& metrics() const { return metrics_; }

  /// One push; every rank's verdict.
  Result<std::vector<RankVerdict>> push(const std::string& version, const std::string& checkpoint);

 private:
  struct Member {
    Descriptor input;
    Descriptor output;
    std::unique_ptr<LineReader> lines;
    std::unique_ptr<ChildProcess> process;
  };

  explicit DemoRanks(int stop) : stop_(stop) {}

  Status startOne(const PushOptions& options, const std::string& folder, int rank);
  Result<std::string> line(std::size_t rank, Duration limit);

  int stop_;
  std::string metrics_;
  std::vector<Member> members_;
};

}  // namespace pushrod::tools
