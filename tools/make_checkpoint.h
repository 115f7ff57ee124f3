// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include <pushrod/result.h>
#include <pushrod/tensor.h>

namespace pushrod::tools {

/// A small model with the names and proportions of a dense Qwen3. The defaults make 222 tensors
/// and about 32 MiB.
struct MadeModel {
  int layers = 20;
  std::int64_t hidden = 256;
  std::int64_t headDim = 64;
  std::int64_t heads = 4;
  std::int64_t kvHeads = 2;
  std::int64_t intermediate = 768;
  std::int64_t vocabulary = 4096;
  int shards = 4;
  std::uint64_t seed = 1;
  std::string version = "0";  ///< part of the seed: another version has other values
};

/// The model's tensors in checkpoint order, all bfloat16.
[[nodiscard]] Manifest madeManifest(const MadeModel& model);

/// Writes the model as a Hugging Face folder (config.json, shards, index) into `folder`, which is
/// made when it does not exist. Values are those of madeValues. Overwrites files of the same names.
Status makeCheckpoint(const std::string& folder, const MadeModel& model);

}  // namespace pushrod::tools
