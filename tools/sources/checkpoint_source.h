// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <optional>

#include <pushrod/weight_source.h>

#include "tools/sources/checkpoint.h"
#include "tools/sources/share_gather.h"

namespace pushrod::tools {

/// A checkpoint as a trainer would yield it: each rank reads its share of every tensor and the
/// ranks gather them together, so that a pass is a real collective. Holds one tensor at a time, in
/// a buffer of the largest one's size. Both references must outlive it.
class CheckpointSource final : public WeightSource {
 public:
  CheckpointSource(const Checkpoint& checkpoint, ShareGather& gather);

  Result<Manifest> manifest() override;
  Status begin() override;
  Result<std::optional<TensorView>> next() override;
  bool abort() noexcept override;
  bool recover() override;

 private:
  const Checkpoint& checkpoint_;
  ShareGather& gather_;
  std::size_t position_ = 0;
  std::unique_ptr<std::byte[]> buffer_;
};

}  // namespace pushrod::tools
