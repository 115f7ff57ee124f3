// SPDX-License-Identifier: Apache-2.0
#include "transports/shm/body.h"

#include <algorithm>

#include "common/log.h"
#include "transports/update_info.h"

namespace pushrod::transports::shm {

namespace {

/// Regions begin on pages, so that a receiver can map one alone.
constexpr std::uint64_t kPage = 4096;

}  // namespace

Layout Layout::of(const std::vector<Chunk>& chunks, int buffers) {
  std::uint64_t largest = 1;
  for (const Chunk& chunk : chunks) {
    largest = std::max(largest, chunk.bytes);
  }
  Layout layout;
  layout.regions = static_cast<std::size_t>(std::max(2, buffers));
  layout.used = std::max<std::size_t>(1, std::min(layout.regions, chunks.size()));
  layout.region = (largest + kPage - 1) / kPage * kPage;
  return layout;
}

std::string chunkBody(const Manifest& manifest,
                      std::size_t first,
                      const Chunk& chunk,
                      const std::vector<HostSegment>& hosts,
                      std::uint64_t offset) {
  Manifest part;
  std::string sizes;
  for (std::size_t i = first; i < chunk.end; ++i) {
    const TensorSpec& tensor = manifest.tensors[i];
    sizes += (i == first ? "" : ", ") + std::to_string(tensor.bytes());
    part.tensors.push_back(tensor);
  }
  std::string text = "{";
  text.append(tensorLists(part)).append(", \"tensor_sizes\": [").append(sizes);
  text += "], \"segments\": {";
  const char* separator = "";
  for (const HostSegment& host : hosts) {
    text.append(separator).append(common::jsonQuoted(host.hostId)).append(": {\"name\": ");
    text.append(common::jsonQuoted(host.name)).append(", \"offset\": ");
    text.append(std::to_string(offset)).append(", \"bytes\": ");
    text.append(std::to_string(chunk.bytes)).append("}");
    separator = ", ";
  }
  return text + "}}";
}

}  // namespace pushrod::transports::shm
