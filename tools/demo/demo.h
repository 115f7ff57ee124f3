// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "net/io_executor.h"
#include "tools/demo/demo_engine.h"
#include "tools/demo/demo_ranks.h"
#include "tools/demo/metric_page.h"
#include "tools/private_folder.h"
#include "tools/signal_watch.h"

namespace pushrod::tools {

struct DemoOptions {
  std::string checkpoint;  ///< empty: a small one is made
};

/// The whole story: engines and ranks as processes, one push that goes well, one that recovers, one
/// that fails. Everything it makes lies in one folder and ends with it.
class Demo {
 public:
  explicit Demo(DemoOptions options) : options_(std::move(options)) {}

  /// Returns the exit code: 0 when every chapter went as it should.
  int run();

 private:
  struct Chapter {
    std::string title;
    std::string version;
    std::string outcome;  ///< expected on every rank
    int faultyEngine = -1;
    std::string faults;
  };

  Status prepare();
  Status makeCheckpoints();
  Status startEngines();
  Status startRanks();
  Status play(const Chapter& chapter);
  Status check(const Chapter& chapter, const std::vector<RankVerdict>& verdicts);
  Result<MetricPage> scrape();
  [[nodiscard]] std::string folderOf(const std::string& version) const;
  void showTrouble(const Status& trouble) const;

  DemoOptions options_;
  std::uint64_t bytes_ = 0;  ///< of the checkpoint
  SignalWatch watch_;
  net::IoExecutor executor_;
  std::unique_ptr<PrivateFolder> folder_;
  std::vector<std::unique_ptr<DemoEngine>> engines_;
  std::unique_ptr<DemoRanks> ranks_;
};

}  // namespace pushrod::tools
