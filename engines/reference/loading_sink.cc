// SPDX-License-Identifier: Apache-2.0
#include "engines/reference/loading_sink.h"

#include <algorithm>
#include <string>
#include <utility>

#include "engines/reference/names.h"

namespace pushrod::engines::reference {

namespace {

constexpr std::size_t kPiece = std::size_t{256} << 10U;

}  // namespace

void spoil(LoadedTensor& tensor, ByteBudget& budget) {
  if (tensor.bytes == nullptr) {
    tensor.sha256 = Sha256::of(tensor.sha256);
    return;
  }
  std::vector<std::uint8_t> bytes(tensor.bytes->data().begin(), tensor.bytes->data().end());
  bytes.front() ^= 1U;
  Sha256 digest;
  digest.add(bytes.data(), bytes.size());
  tensor.sha256 = digest.hex();
  tensor.bytes = nullptr;
  const auto kept = KeptBytes::create(budget, bytes.size());
  if (kept != nullptr) {
    kept->add(bytes.data(), bytes.size());
  }
  tensor.bytes = kept;
}

Status LoadingSink::reached(std::uint32_t index, bool last, const WaitGone& gone) {
  // What is planned for behind the last chunk happens before the end.
  if (last ? fault_.afterChunks < index : fault_.afterChunks != index) {
    return {};
  }
  switch (fault_.kind) {
    case ReceiveFault::Kind::kStopReading:
      return gone();
    case ReceiveFault::Kind::kFail:
      return {Code::kInternal,
              "injected failure after " + std::to_string(fault_.afterChunks) + " chunks"};
    case ReceiveFault::Kind::kDie:
      hooks_.die();
      return {Code::kInternal, "the engine died"};
    case ReceiveFault::Kind::kSkip:
    case ReceiveFault::Kind::kCorrupt:
    case ReceiveFault::Kind::kNone:
      break;
  }
  return {};
}

Status LoadingSink::beginChunk(std::span<const TensorSpec> /*tensors*/) {
  chunk_.clear();
  return {};
}

void LoadingSink::beginTensor(const TensorSpec& tensor) {
  const std::uint64_t bytes = tensor.bytes();
  const bool keeps = bytes > 0 && splitName(tensor.name).fused;
  chunk_.push_back({tensor, Sha256(), keeps ? KeptBytes::create(budget_, bytes) : nullptr});
}

std::span<std::uint8_t> LoadingSink::room(std::uint64_t left) {
  piece_.resize(kPiece);
  return std::span(piece_).first(static_cast<std::size_t>(std::min<std::uint64_t>(left, kPiece)));
}

void LoadingSink::took(std::span<const std::uint8_t> bytes) {
  Tensor& tensor = chunk_.back();
  tensor.digest.add(bytes.data(), bytes.size());
  if (tensor.kept != nullptr) {
    tensor.kept->add(bytes.data(), bytes.size());
  }
}

Status LoadingSink::endChunk(std::uint32_t index, std::uint64_t bytes) {
  hooks_.chunk(index, bytes);
  return handOn();
}

Status LoadingSink::rest(std::span<const TensorSpec> tensors) {
  chunk_.clear();
  for (const TensorSpec& tensor : tensors) {
    beginTensor(tensor);
  }
  return handOn();
}

Status LoadingSink::handOn() {
  for (Tensor& tensor : chunk_) {
    LoadedTensor loaded{std::move(tensor.spec), tensor.digest.hex(), std::move(tensor.kept)};
    if (auto refused = hooks_.tensor(std::move(loaded))) {
      return {Code::kDataMismatch, std::move(*refused)};
    }
  }
  chunk_.clear();
  return {};
}

}  // namespace pushrod::engines::reference
