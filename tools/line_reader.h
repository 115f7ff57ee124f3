// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include <pushrod/deadline.h>

namespace pushrod::tools {

/// Reads lines from a descriptor that it does not own.
class LineReader {
 public:
  explicit LineReader(int fd) : fd_(fd) {}

  /// The next line without its end; nullopt at the end of the input, at `deadline`, or when `stop`
  /// (a descriptor, -1: none) becomes readable. A line above 64 MiB counts as the end.
  std::optional<std::string> next(Deadline deadline, int stop = -1);

 private:
  int fd_;
  std::string buffer_;
};

}  // namespace pushrod::tools
