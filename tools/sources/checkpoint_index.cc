// SPDX-License-Identifier: Apache-2.0
#include "tools/sources/checkpoint_index.h"

#include <exception>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include "tools/sources/safetensors.h"
#include "tools/sources/strict_json.h"

namespace pushrod::tools {
namespace {

constexpr std::size_t kMaxValues = std::size_t{1} << 20;

Status refused(std::string text) {
  return {Code::kInvalidArgument, std::move(text)};
}

bool isPlainFileName(const std::string& name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(std::string_view("/\\\0", 3)) == std::string::npos;
}

}  // namespace

Result<CheckpointIndex> parseCheckpointIndex(std::string_view text) {
  const Result<JsonNode> root = parseStrictJson(text, kMaxValues);
  if (!root) {
    return root.status();
  }
  const JsonNode* map = root->find("weight_map");
  if (map == nullptr || map->kind != JsonNode::Kind::kObject) {
    return refused("has no weight_map object");
  }
  if (map->keys.empty()) {
    return refused("its weight_map is empty");
  }
  CheckpointIndex index;
  std::unordered_map<std::string, std::size_t> positions;
  for (std::size_t i = 0; i < map->keys.size(); ++i) {
    const JsonNode& shard = map->items[i];
    if (shard.kind != JsonNode::Kind::kString || !isPlainFileName(shard.text)) {
      return refused("tensor " + quotedName(map->keys[i]) + ": its shard " +
                     (shard.kind == JsonNode::Kind::kString ? quotedName(shard.text) + " " : "") +
                     "is not a plain file name; shards must lie in the checkpoint's own folder");
    }
    const auto [at, fresh] = positions.try_emplace(shard.text, index.shards.size());
    if (fresh) {
      index.shards.push_back(shard.text);
    }
    index.names.push_back(map->keys[i]);
    index.shardOf.emplace(map->keys[i], at->second);
  }
  return index;
}

Result<CheckpointIndex> readCheckpointIndex(const std::string& path) {
  try {
    std::error_code error;
    const std::uintmax_t bytes = std::filesystem::file_size(path, error);
    if (error) {
      return refused(path + ": cannot be read: " + error.message());
    }
    if (bytes > kMaxHeaderBytes) {
      return refused(path + ": has " + std::to_string(bytes) + " bytes, more than the " +
                     std::to_string(kMaxHeaderBytes) + " allowed");
    }
    std::string text(bytes, '\0');
    std::ifstream file(path, std::ios::binary);
    if (!file.read(text.data(), static_cast<std::streamsize>(bytes))) {
      return refused(path + ": cannot be read");
    }
    Result<CheckpointIndex> index = parseCheckpointIndex(text);
    return index ? std::move(index) : Result<CheckpointIndex>(index.status().prefixed(path));
  } catch (const std::exception& thrown) {
    return refused(path + ": cannot be read: " + thrown.what());
  }
}

}  // namespace pushrod::tools
