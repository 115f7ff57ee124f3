// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

#include <pushrod/result.h>

#include "tools/exit_code.h"

namespace pushrod::tools {

/// What to start. Descriptors of -1 are inherited.
struct ChildSpec {
  std::vector<std::string> command;  ///< program path and arguments
  int input = -1;
  int output = -1;
  int errors = -1;
};

/// A child process in a process group of its own. It dies with the thread that started it (the
/// kernel kills it when that thread ends), and with this object. One thread uses the object.
class ChildProcess {
 public:
  /// The failure says why the program could not be run.
  static Result<std::unique_ptr<ChildProcess>> start(const ChildSpec& spec);
  /// Kills the group and reaps, if it has not ended.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  [[nodiscard]] pid_t pid() const { return pid_; }

  /// Reaps without waiting; nullopt while it runs.
  std::optional<ChildEnd> poll();
  /// Whether it was stopped by a signal since the last time this was asked.
  bool stopped();
  /// To the process alone; nothing when it has ended.
  void send(int signal);
  /// Wakes a stopped one and kills its whole group; poll() then reports it as killed.
  void kill();

 private:
  explicit ChildProcess(pid_t pid) : pid_(pid) {}

  pid_t pid_;
  bool killed_ = false;
  std::optional<ChildEnd> end_;
};

/// The path of the running program, for starting it again.
[[nodiscard]] std::string ownProgram();

}  // namespace pushrod::tools
