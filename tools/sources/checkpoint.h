// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <pushrod/result.h>
#include <pushrod/tensor.h>

#include "tools/sources/safetensors.h"

namespace pushrod::tools {

/// A Hugging Face checkpoint folder: `model.safetensors`, or the shards that
/// `model.safetensors.index.json` lists. Headers are read and checked at open; tensors' bytes only
/// when asked for. Immutable after open.
class Checkpoint {
 public:
  struct Tensor {
    const SafetensorsFile* file = nullptr;
    const StoredTensor* stored = nullptr;
  };

  /// Refused (invalidArgument, naming file and tensor): a folder without a checkpoint or with two,
  /// a faulty index, a shard or tensor that the index lists and that is not there, a faulty header.
  static Result<std::unique_ptr<Checkpoint>> open(const std::string& folder);
  Checkpoint(const Checkpoint&) = delete;
  Checkpoint& operator=(const Checkpoint&) = delete;

  /// Shards in the order in which the index first names them, each in the order of its bytes.
  [[nodiscard]] const std::vector<Tensor>& tensors() const { return tensors_; }

  /// The same as what a push declares, all owned by rank 0.
  [[nodiscard]] const Manifest& manifest() const { return manifest_; }

  [[nodiscard]] std::size_t files() const { return files_.size(); }

  /// At most one text: shard keys that the index does not list and that are not sent (ruling P38).
  [[nodiscard]] const std::string& warning() const { return warning_; }

  /// Ruling P43 for every file.
  [[nodiscard]] Status checkUnchanged() const;

 private:
  Checkpoint() = default;

  Status openSingle(const std::string& path);
  Status openSharded(const std::string& folder, const std::string& indexPath);
  void add(const SafetensorsFile& file, const StoredTensor& stored);

  std::vector<std::unique_ptr<SafetensorsFile>> files_;
  std::vector<Tensor> tensors_;
  Manifest manifest_;
  std::string warning_;
};

}  // namespace pushrod::tools
