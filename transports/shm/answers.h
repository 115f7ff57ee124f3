// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstddef>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include <pushrod/deadline.h>
#include <pushrod/status.h>

namespace pushrod::transports::shm {

/// How many chunks of the pass each engine has answered: the control thread counts, the caller's
/// thread waits. Thread-safe.
class Answers {
 public:
  /// A new pass: these engines, nothing answered.
  void expect(const std::vector<std::string>& engines);
  /// An engine that is not expected is ignored.
  void answered(const std::string& engine, std::size_t chunks);
  /// Ends the present and every later await with `reason`, until clearInterrupt().
  void interrupt(const Status& reason);
  void clearInterrupt();

  /// Waits until every engine has answered `chunks` chunks. Ends with the interrupt's reason, or at
  /// the deadline with deadlineExceeded, naming the slowest engine. timeouts.progress is no limit
  /// here: an engine may be loading what it has read, and its call has a limit and a liveness probe
  /// of its own.
  Status await(std::size_t chunks, Deadline deadline);

  [[nodiscard]] std::size_t of(const std::string& engine) const;
  /// What every engine has answered; 0 when none is expected.
  [[nodiscard]] std::size_t least() const;

 private:
  [[nodiscard]] bool allHave(std::size_t chunks) const;
  [[nodiscard]] Status late(std::size_t chunks) const;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::size_t> answered_;
  Status interrupted_;
};

}  // namespace pushrod::transports::shm
