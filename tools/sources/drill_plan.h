// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <pushrod/deadline.h>
#include <pushrod/phase.h>
#include <pushrod/result.h>
#include <pushrod/tensor.h>

namespace pushrod::tools {

/// How a drill's tensor lies in memory.
enum class DrillLayout : std::uint8_t {
  kContiguous,
  kTransposed,  ///< the last two dimensions swapped
  kStrided,     ///< every second row of the first dimension
  kExpanded,    ///< the first dimension repeats one row: stride 0
};

struct DrillTensor {
  TensorSpec spec;                  ///< as the manifest declares it
  DType stream = DType::kBfloat16;  ///< as the source yields it
  DrillLayout layout = DrillLayout::kContiguous;
  std::optional<std::size_t> aliasOf;  ///< an earlier tensor whose memory this one is
  std::uint64_t seed = 0;
};

enum class FaultKind : std::uint8_t {
  kThrow,
  kHang,
  kExit,
  kStop,
  kMissing,
  kExtra,
  kReorder,
  kWrongShape,
  kOtherValues,
};

inline constexpr std::size_t kFaultKindCount = 9;
/// "throw", "wrong_shape".
[[nodiscard]] std::string_view faultKindName(FaultKind kind);

/// One planned fault of one rank. Exactly one of `tensor`, `afterLast` and `phase` says where.
struct DrillFault {
  int rank = 0;
  FaultKind kind = FaultKind::kThrow;
  std::optional<std::size_t> tensor;
  bool afterLast = false;
  std::optional<Phase> phase;
  Duration length = Duration::zero();  ///< kHang; kStop: zero is for ever
  int times = 1;                       ///< passes that it hits
  bool draft = false;                  ///< in passes of the draft model

  /// "throw at tensor 5".
  [[nodiscard]] std::string describe() const;

  /// Whether its rank takes no part in the pushes that follow.
  [[nodiscard]] bool endsRank() const {
    return kind == FaultKind::kExit || (kind == FaultKind::kStop && length == Duration::zero());
  }
};

struct DrillPush {
  std::string version;
  bool draft = false;                ///< carries the same tensors as a draft model as well
  Duration wait = Duration::zero();  ///< before it
  std::vector<DrillFault> faults;
};

/// A configuration key that one rank plays differently.
struct DrillOverride {
  std::string key;    ///< "transport.buffer"
  std::string value;  ///< as it would stand in the file
};

/// docs/drill.md. A plain value.
struct DrillPlan {
  std::vector<DrillTensor> tensors;
  std::vector<DrillPush> pushes;
  std::map<int, std::vector<DrillOverride>> overrides;  ///< by rank

  [[nodiscard]] Manifest manifest() const;
};

/// Reads and checks a plan for a job of `ranks` ranks. On failure (invalidArgument) the message
/// holds every fault, one per line, each as NAME: PLACE: text, place being a path such as
/// `pushes[0].faults[1].at`.
Result<DrillPlan> parseDrillPlan(std::string_view text, const std::string& name, int ranks);
/// As parseDrillPlan, from a regular file.
Result<DrillPlan> loadDrillPlan(const std::string& path, int ranks);

}  // namespace pushrod::tools
