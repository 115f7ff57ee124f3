// SPDX-License-Identifier: Apache-2.0
#include "transports/chunk_plan.h"

#include <string>

namespace pushrod::transports {

std::vector<std::size_t> stepEnds(const Manifest& manifest, std::uint64_t buffer) {
  std::vector<std::size_t> ends;
  PackedRule rule(buffer);
  for (std::size_t i = 0; i < manifest.tensors.size(); ++i) {
    if (rule.add(manifest.tensors[i].bytes())) {
      ends.push_back(i + 1);
    }
  }
  const std::size_t count = manifest.tensors.size();
  if (rule.open() != 0 || (ends.empty() && count != 0)) {
    ends.push_back(count);
  } else if (!ends.empty()) {
    ends.back() = count;
  }
  return ends;
}

std::vector<std::uint64_t> chunkBytes(const Manifest& manifest, std::uint64_t buffer) {
  std::vector<std::uint64_t> chunks;
  PackedRule rule(buffer);
  for (const TensorSpec& tensor : manifest.tensors) {
    const std::uint64_t bytes = tensor.bytes();
    const std::uint64_t before = rule.open();
    if (rule.add(bytes)) {
      chunks.push_back(before + bytes);
    }
  }
  if (rule.open() != 0) {
    chunks.push_back(rule.open());
  }
  return chunks;
}

Result<std::vector<Chunk>> chunksWithin(const Manifest& manifest, std::uint64_t buffer) {
  std::vector<Chunk> chunks;
  for (std::size_t i = 0; i < manifest.tensors.size(); ++i) {
    const TensorSpec& tensor = manifest.tensors[i];
    const std::uint64_t bytes = tensor.bytes();
    if (bytes > buffer) {
      return Status(Code::kInvalidArgument,
                    "tensor '" + tensor.describe() + "' has " + std::to_string(bytes) +
                        " bytes, and transport shm sends a tensor within one buffer of " +
                        std::to_string(buffer) + "; set transport.buffer to at least " +
                        std::to_string(manifest.largest()) + " bytes",
                    Outcome::kNotSent);
    }
    if (chunks.empty() || chunks.back().bytes > buffer - bytes) {
      chunks.push_back({});
    }
    chunks.back().end = i + 1;
    chunks.back().bytes += bytes;
  }
  return chunks;
}

}  // namespace pushrod::transports
