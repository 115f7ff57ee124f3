// SPDX-License-Identifier: Apache-2.0
#include "python/src/receiver_chunk.h"

#include <cstdlib>
#include <cstring>
#include <string>
#include <sys/mman.h>
#include <utility>

namespace pushrod::python {

namespace {

/// No element and no cache line lies across the beginning of a tensor.
constexpr std::size_t kTensorAlignment = 64;
/// Large chunks take large pages where the system gives them: a fault for each small one costs more
/// than the copy into it.
constexpr std::size_t kLargePage = std::size_t{2} << 20U;

std::size_t roundUp(std::size_t size, std::size_t unit) {
  return (size + unit - 1) / unit * unit;
}

std::uint8_t* allocate(std::size_t size) {
  const bool large = size >= 2 * kLargePage;
  const std::size_t unit = large ? kLargePage : kTensorAlignment;
  const std::size_t whole = roundUp(size, unit);
  void* const memory = whole < size ? nullptr : std::aligned_alloc(unit, whole);
  if (memory != nullptr && large) {
    // A wish: without it the pages are small.
    (void)::madvise(memory, whole, MADV_HUGEPAGE);
  }
  return static_cast<std::uint8_t*>(memory);
}

}  // namespace

void Chunk::Free::operator()(std::uint8_t* memory) const {
  std::free(memory);
}

std::shared_ptr<Chunk> Chunk::create(std::span<const TensorSpec> tensors) {
  auto chunk = std::make_shared<Chunk>();
  chunk->tensors_.reserve(tensors.size());
  for (const TensorSpec& spec : tensors) {
    chunk->tensors_.push_back({spec, chunk->size_});
    chunk->size_ += roundUp(static_cast<std::size_t>(spec.bytes()), kTensorAlignment);
  }
  if (chunk->size_ > 0) {
    chunk->memory_.reset(allocate(chunk->size_));
    if (chunk->memory_ == nullptr) {
      return nullptr;
    }
  }
  return chunk;
}

Status ChunkSink::beginChunk(std::span<const TensorSpec> tensors) {
  if (Status open = gate_(); !open.ok()) {
    return open;
  }
  chunk_ = Chunk::create(tensors);
  if (chunk_ == nullptr) {
    return {Code::kUnavailable, "no memory for the bytes of its tensors"};
  }
  begun_ = 0;
  return {};
}

void ChunkSink::beginTensor(const TensorSpec& /*tensor*/) {
  place_ = chunk_->data() + chunk_->tensors()[begun_].offset;
  ++begun_;
}

std::span<std::uint8_t> ChunkSink::room(std::uint64_t left) {
  return {place_, static_cast<std::size_t>(left)};
}

void ChunkSink::took(std::span<const std::uint8_t> bytes) {
  if (bytes.data() != place_) {
    std::memcpy(place_, bytes.data(), bytes.size());
  }
  place_ += bytes.size();
}

Status ChunkSink::endChunk(std::uint32_t /*index*/, std::uint64_t /*bytes*/) {
  deliver_(std::move(chunk_));
  return {};
}

Status ChunkSink::rest(std::span<const TensorSpec> tensors) {
  if (tensors.empty()) {
    return {};
  }
  if (Status begun = beginChunk(tensors); !begun.ok()) {
    return begun;
  }
  deliver_(std::move(chunk_));
  return {};
}

}  // namespace pushrod::python
