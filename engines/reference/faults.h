// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json/value.hpp>

#include <pushrod/result.h>

namespace pushrod::engines::reference {

enum class Action {
  kStatus,
  kHang,
  kDelay,
  kReset,
  kClose,
  kDie,
  kApplyReset,
  kRaw,
  kTrickle,
  kStopReading,
  kFailAfterChunks,
  kDieAfterChunks,
  kOkWithoutReading,
  kVersion,
  kWorkerFails,
  kFreezeCore,
  kCorrupt,
};

[[nodiscard]] std::string_view actionName(Action action);

/// One planned misbehaviour.
struct FaultRule {
  std::string route;  ///< without the leading slash
  Action action = Action::kHang;
  bool every = false;
  std::vector<std::uint64_t> nth = {1};  ///< which requests of the route, counted from 1
  int status = 500;
  std::optional<std::string> body;
  std::string contentType = "application/json";
  double seconds = 0;
  std::string bytes;
  std::uint32_t afterChunks = 0;
  std::optional<std::string> value;  ///< kVersion; absent: nothing is stored
  int worker = 0;
  int perSecond = 20;
};

/// The engine's faults. Requests are counted per rule, from the moment it was installed.
class FaultTable {
 public:
  /// An array of rules as in `--faults FILE`; invalidArgument names the first wrong one.
  static Result<FaultTable> parse(const boost::json::value& rules);

  /// Counts a request of `route` and returns the first rule that hits it. `chunk`: this update's
  /// place in its session, where each chunk is an update of its own. For rules about receiving the
  /// whole session then counts as one request, and its chunk number `after_chunks` is hit.
  std::optional<FaultRule> match(std::string_view route,
                                 std::optional<std::uint32_t> chunk = std::nullopt);

 private:
  struct Entry {
    FaultRule rule;
    std::uint64_t seen = 0;
  };

  std::vector<Entry> entries_;
};

}  // namespace pushrod::engines::reference
