// SPDX-License-Identifier: Apache-2.0
#include "tools/sources/checkpoint.h"

#include <algorithm>
#include <filesystem>
#include <unordered_set>
#include <utility>

#include "tools/sources/checkpoint_index.h"

namespace pushrod::tools {
namespace {

constexpr std::string_view kSingleName = "model.safetensors";
constexpr std::string_view kIndexName = "model.safetensors.index.json";

Status refused(std::string text) {
  return {Code::kInvalidArgument, std::move(text)};
}

bool exists(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

}  // namespace

Result<std::unique_ptr<Checkpoint>> Checkpoint::open(const std::string& folder) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(folder, ignored)) {
    return refused(folder + ": is not a folder; --checkpoint names the folder that holds " +
                   std::string(kSingleName) + " or " + std::string(kIndexName));
  }
  const std::string single = (std::filesystem::path(folder) / kSingleName).string();
  const std::string index = (std::filesystem::path(folder) / kIndexName).string();
  std::unique_ptr<Checkpoint> checkpoint(new Checkpoint());
  Status opened;
  if (exists(index)) {
    opened = checkpoint->openSharded(folder, index);
  } else if (exists(single)) {
    opened = checkpoint->openSingle(single);
  } else {
    opened = refused(folder + ": holds neither " + std::string(kSingleName) + " nor " +
                     std::string(kIndexName) + "; give the folder of a Hugging Face checkpoint");
  }
  if (opened && checkpoint->tensors_.empty()) {
    opened = refused(folder + ": the checkpoint holds no tensor");
  }
  if (!opened) {
    return opened;
  }
  return checkpoint;
}

Status Checkpoint::openSingle(const std::string& path) {
  Result<std::unique_ptr<SafetensorsFile>> file = SafetensorsFile::open(path);
  if (!file) {
    return file.status();
  }
  files_.push_back(std::move(*file));
  for (const StoredTensor& stored : files_.back()->tensors()) {
    add(*files_.back(), stored);
  }
  return {};
}

Status Checkpoint::openSharded(const std::string& folder, const std::string& indexPath) {
  const Result<CheckpointIndex> index = readCheckpointIndex(indexPath);
  if (!index) {
    return index.status();
  }
  const std::string single = (std::filesystem::path(folder) / kSingleName).string();
  if (std::find(index->shards.begin(), index->shards.end(), kSingleName) == index->shards.end() &&
      exists(single)) {
    return refused(folder + ": holds both " + std::string(kSingleName) + " and " +
                   std::string(kIndexName) + ", which does not name it; remove the one not meant");
  }
  std::unordered_set<std::string> found;
  std::size_t unlisted = 0;
  std::string firstUnlisted;
  for (std::size_t shard = 0; shard < index->shards.size(); ++shard) {
    Result<std::unique_ptr<SafetensorsFile>> file =
        SafetensorsFile::open((std::filesystem::path(folder) / index->shards[shard]).string());
    if (!file) {
      return file.status();
    }
    files_.push_back(std::move(*file));
    for (const StoredTensor& stored : files_.back()->tensors()) {
      const auto listed = index->shardOf.find(stored.name);
      if (listed != index->shardOf.end() && listed->second == shard) {
        found.insert(stored.name);
        add(*files_.back(), stored);
      } else if (unlisted++ == 0) {
        firstUnlisted.append(stored.name).append(" in ").append(index->shards[shard]);
      }
    }
  }
  for (const std::string& name : index->names) {
    if (!found.contains(name)) {
      std::string text = indexPath;
      text.append(": tensor ").append(name).append(" is not in its shard ");
      text.append(index->shards[index->shardOf.at(name)]);
      return refused(text);
    }
  }
  if (unlisted > 0) {
    warning_ = std::to_string(unlisted) + " tensors of the shards are not sent, because " +
               indexPath + " does not list them there; the first is " + firstUnlisted;
  }
  return {};
}

void Checkpoint::add(const SafetensorsFile& file, const StoredTensor& stored) {
  tensors_.push_back({&file, &stored});
  manifest_.tensors.push_back({stored.name, stored.dtype, stored.shape, 0});
}

Status Checkpoint::checkUnchanged() const {
  for (const auto& file : files_) {
    Status same = file->checkUnchanged();
    if (!same) {
      return same;
    }
  }
  return {};
}

}  // namespace pushrod::tools
