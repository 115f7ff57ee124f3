// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include <pushrod/result.h>

#include "net/io_executor.h"
#include "tools/child_process.h"
#include "tools/demo/content_digest.h"
#include "tools/descriptor.h"

namespace pushrod::tools {

/// What a reference engine says of itself.
struct EngineState {
  std::string version;
  bool paused = false;
  bool torn = false;
  TensorDigests weights;
};

/// A reference engine in a process of its own.
class DemoEngine {
 public:
  struct Options {
    std::string name;
    int workers = 2;
    std::string logFile;
  };

  /// Starts it and waits until it listens.
  static Result<std::unique_ptr<DemoEngine>> start(net::IoExecutor& executor,
                                                   const Options& options);

  [[nodiscard]] const std::string& name() const { return name_; }

  [[nodiscard]] const std::string& url() const { return url_; }

  /// Unavailable when it does not answer, as when it died.
  Result<EngineState> state();
  /// Replaces its faults; `faults` is a JSON array.
  Status plan(const std::string& faults);

 private:
  explicit DemoEngine(net::IoExecutor& executor) : executor_(executor) {}

  net::IoExecutor& executor_;
  std::string name_;
  std::string url_;
  Descriptor output_;
  std::unique_ptr<ChildProcess> process_;
};

/// The answer of GET /__state.
Result<EngineState> parseEngineState(const std::string& text);

}  // namespace pushrod::tools
