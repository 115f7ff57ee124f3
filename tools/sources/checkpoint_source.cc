// SPDX-License-Identifier: Apache-2.0
#include "tools/sources/checkpoint_source.h"

#include <new>
#include <span>

namespace pushrod::tools {

CheckpointSource::CheckpointSource(const Checkpoint& checkpoint, ShareGather& gather)
    : checkpoint_(checkpoint), gather_(gather) {}

Result<Manifest> CheckpointSource::manifest() {
  const Status same = checkpoint_.checkUnchanged();
  if (!same) {
    return same;
  }
  return checkpoint_.manifest();
}

Status CheckpointSource::begin() {
  position_ = 0;
  Status same = checkpoint_.checkUnchanged();
  if (!same || buffer_) {
    return same;
  }
  const std::uint64_t largest = checkpoint_.manifest().largest();
  // Not initialised: every byte is read before it is shown, and large pages are touched once.
  buffer_.reset(new (std::nothrow) std::byte[largest > 0 ? largest : 1]);
  if (!buffer_) {
    return {Code::kUnavailable,
            "no memory for the largest tensor of " + std::to_string(largest) + " bytes"};
  }
  return {};
}

Result<std::optional<TensorView>> CheckpointSource::next() {
  if (!buffer_) {
    return Status(Code::kInternal, "next() before begin()");
  }
  if (position_ == checkpoint_.tensors().size()) {
    // The files must be what they were when the pass began, or the pass is worth nothing (P43).
    const Status same = checkpoint_.checkUnchanged();
    return same ? Result<std::optional<TensorView>>(std::optional<TensorView>()) : same;
  }
  const Checkpoint::Tensor& tensor = checkpoint_.tensors()[position_];
  const StoredTensor& stored = *tensor.stored;
  const std::span<std::byte> whole(buffer_.get(), stored.bytes);
  const Share mine = shareOf(stored.bytes, gather_.rank(), gather_.size());
  const Status read =
      tensor.file->read(stored, mine.offset, whole.subspan(mine.offset, mine.bytes));
  if (!read) {
    return read;
  }
  if (!whole.empty()) {
    const Status gathered = gather_.gather(whole);
    if (!gathered) {
      return gathered.prefixed("tensor " + stored.name);
    }
  }
  ++position_;
  TensorView view;
  view.name = stored.name;
  view.dtype = stored.dtype;
  view.shape = stored.shape;
  view.data = whole.data();
  return std::optional<TensorView>(std::move(view));
}

bool CheckpointSource::abort() noexcept {
  return gather_.abort();
}

bool CheckpointSource::recover() {
  return gather_.recover();
}

}  // namespace pushrod::tools
