// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace pushrod::tools {

/// What `pushrod engine` was asked for.
struct EngineFlags {
  std::string name = "reference";
  std::string host = "127.0.0.1";
  int port = 0;
  std::string prefix;
  std::string backend = "tcp";
  std::string profile = "0.33";
  std::string model = "reference";
  std::string hostId;
  std::string checkpoint;
  std::string faults;
  std::string journal;
  int worldSize = 1;
  int pipelineStages = 1;
  int dataParallel = 1;
  double idleSeconds = 0;
};

/// Runs the reference engine until SIGTERM, SIGINT or its idle limit; the exit code. Blocks those
/// two signals for the calling thread meanwhile.
int engineCommand(const EngineFlags& flags);

/// Registers `engine`; its callback runs the engine and sets `exitCode`, which must outlive `root`.
CLI::App* addEngineCommand(CLI::App& root, int& exitCode);

}  // namespace pushrod::tools
