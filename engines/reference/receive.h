// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "engines/reference/model.h"

namespace pushrod::engines::reference {

/// A planned misbehaviour of one receive. kStopReading ends when the source's close or reset is
/// seen, which unread bytes in front of a plain close can delay; for shm, when the segment is gone.
struct ReceiveFault {
  enum class Kind { kNone, kStopReading, kFail, kDie, kSkip, kCorrupt };
  Kind kind = Kind::kNone;
  std::uint32_t afterChunks = 0;
};

/// What happens to received bytes. Called on the worker's thread.
struct ReceiveHooks {
  std::function<void(std::uint32_t index, std::uint64_t bytes)> chunk;
  /// Takes tensors whose chunk is whole and sound; a text refuses them.
  std::function<std::optional<std::string>(LoadedTensor tensor)> tensor;
  std::function<void()> die;
};

}  // namespace pushrod::engines::reference
