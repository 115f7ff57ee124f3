// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <pushrod/result.h>

namespace pushrod::tools {

/// Which shard holds which tensor, as `model.safetensors.index.json` says. `total_size` and other
/// metadata are never used.
struct CheckpointIndex {
  std::vector<std::string> shards;  ///< file names, in the order of their first mention
  std::vector<std::string> names;   ///< tensors, in the index's order
  std::unordered_map<std::string, std::size_t> shardOf;  ///< name -> position in `shards`
};

/// Refuses (invalidArgument) what is no such index, a tensor listed twice, and a shard that is not
/// a plain file name: an index never points out of its folder.
Result<CheckpointIndex> parseCheckpointIndex(std::string_view text);
/// The same from a file of at most 100 MiB; messages begin with the path.
Result<CheckpointIndex> readCheckpointIndex(const std::string& path);

}  // namespace pushrod::tools
