// SPDX-License-Identifier: Apache-2.0
// Any bytes as a safetensors header and as a checkpoint's index: refused with a reason, or tensors
// that lie one after another and fill the file.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "common/check.h"
#include "tools/sources/checkpoint_index.h"
#include "tools/sources/safetensors.h"

namespace {

using namespace pushrod;

void header(std::string_view text, std::uint64_t dataBytes) {
  const auto tensors = tools::parseSafetensorsHeader(text, dataBytes);
  if (!tensors) {
    PUSHROD_CHECK(!tensors.status().message().empty());
    return;
  }
  std::uint64_t next = 0;
  for (const tools::StoredTensor& tensor : *tensors) {
    const auto elements = elementCount(tensor.shape);
    PUSHROD_CHECK(!tensor.name.empty() && elements.has_value());
    PUSHROD_CHECK(tensor.offset == next);
    PUSHROD_CHECK(tensor.bytes == static_cast<std::uint64_t>(*elements) * itemSize(tensor.dtype));
    next += tensor.bytes;
  }
  PUSHROD_CHECK(next == dataBytes);
}

void index(std::string_view text) {
  const auto read = tools::parseCheckpointIndex(text);
  if (!read) {
    PUSHROD_CHECK(!read.status().message().empty());
    return;
  }
  PUSHROD_CHECK(read->names.size() == read->shardOf.size());
  for (const std::string& shard : read->shards) {
    PUSHROD_CHECK(!shard.empty() && shard.find('/') == std::string::npos && shard != "..");
  }
  for (const auto& [name, shard] : read->shardOf) {
    PUSHROD_CHECK(shard < read->shards.size());
  }
}

}  // namespace

/// The first two bytes are the number of bytes behind the header.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) {
    return 0;
  }
  const std::string_view text(reinterpret_cast<const char*>(data) + 2, size - 2);
  header(text, data[0] + (std::uint64_t{data[1]} << 8U));
  index(text);
  return 0;
}
