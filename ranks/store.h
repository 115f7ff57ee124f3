// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <pushrod/deadline.h>
#include <pushrod/result.h>

#include "ranks/interrupt.h"

namespace pushrod::ranks {

/// Where ranks find each other: small values under text keys, shared by all ranks of a job. Used
/// from one thread at a time (the caller's). Every call ends by its deadline; a failure is
/// unavailable or deadlineExceeded and leaves the store usable for a later try.
///
/// Gloo's own stores are not used: their set refuses a second value, their get waits 30 s whatever
/// the limit, and their Redis connect has no limit at all.
class Store {
 public:
  static constexpr std::size_t kMaxKey = 512;
  static constexpr std::size_t kMaxValue = std::size_t{64} << 10;

  Store() = default;
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;
  virtual ~Store() = default;

  /// Sets or replaces a value.
  virtual Status set(const std::string& key, const std::string& value, Deadline deadline) = 0;
  /// The present values, nullopt for a key that is not there. Does not wait for keys.
  virtual Result<std::vector<std::optional<std::string>>> get(const std::vector<std::string>& keys,
                                                              Deadline deadline) = 0;
  /// Removes keys, also those that are not there.
  virtual Status erase(const std::vector<std::string>& keys, Deadline deadline) = 0;
  /// Removes every key that begins with "prefix/", where the store outlives the job and can.
  virtual Status eraseBelow(const std::string& prefix, Deadline deadline) = 0;
  /// "tcp://10.0.0.1:29501", for texts.
  [[nodiscard]] virtual std::string describe() const = 0;
};

/// Pauses between two looks at a store: short at first, then longer.
class PollPause {
 public:
  /// Waits; the interrupt's reason, deadlineExceeded, or ok after the pause.
  Status wait(Interrupt& interrupt, Deadline deadline);

 private:
  Duration pause_{2};
};

/// Waits until `key` is there.
Result<std::string> awaitKey(Store& store,
                             const std::string& key,
                             Interrupt& interrupt,
                             Deadline deadline);

}  // namespace pushrod::ranks
