// SPDX-License-Identifier: Apache-2.0
#include "tools/make_checkpoint.h"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <utility>
#include <vector>

#include "common/log.h"
#include "tools/sources/made_values.h"

namespace pushrod::tools {
namespace {

namespace fs = std::filesystem;

std::string shardName(int shard, int shards) {
  char text[64];
  std::snprintf(text, sizeof(text), "model-%05d-of-%05d.safetensors", shard + 1, shards);
  return text;
}

Status writeFile(const fs::path& path, const std::string& bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  return file ? Status() : Status(Code::kUnavailable, path.string() + ": cannot be written");
}

std::string headerEntry(const TensorSpec& tensor, std::uint64_t begin) {
  std::string shape;
  for (const std::int64_t extent : tensor.shape) {
    shape += (shape.empty() ? "" : ",") + std::to_string(extent);
  }
  return common::jsonQuoted(tensor.name) + R"(:{"dtype":"BF16","shape":[)" + shape +
         R"(],"data_offsets":[)" + std::to_string(begin) + "," +
         std::to_string(begin + tensor.bytes()) + "]}";
}

/// The length prefix and the header, padded so that the tensors' bytes begin at a multiple of 8.
std::string shardHeader(const std::vector<TensorSpec>& tensors) {
  std::string json = R"({"__metadata__":{"format":"pt"})";
  std::uint64_t begin = 0;
  for (const TensorSpec& tensor : tensors) {
    json += "," + headerEntry(tensor, begin);
    begin += tensor.bytes();
  }
  json += "}";
  json.resize((json.size() + 7) / 8 * 8, ' ');
  std::string prefix;
  for (std::size_t i = 0; i < 8; ++i) {
    prefix += static_cast<char>((json.size() >> (8 * i)) & 0xFFU);
  }
  return prefix + json;
}

Status writeShard(const fs::path& path,
                  const std::vector<TensorSpec>& tensors,
                  const MadeModel& model) {
  std::string bytes = shardHeader(tensors);
  std::size_t at = bytes.size();
  bytes.resize(at + std::accumulate(tensors.begin(),
                                    tensors.end(),
                                    std::size_t{0},
                                    [](std::size_t sum, const TensorSpec& tensor) {
                                      return sum + tensor.bytes();
                                    }));
  for (const TensorSpec& tensor : tensors) {
    const Result<std::vector<std::int8_t>> values =
        madeValues(tensor.name, model.seed, model.version, tensor.bytes() / 2);
    if (!values) {
      return values.status();
    }
    // Plain pointers: millions of elements, and debug builds make checkpoints too.
    const std::int8_t* const begin = values->data();
    const std::int8_t* const end = begin + values->size();
    char* out = bytes.data() + at;
    for (const std::int8_t* value = begin; value != end; ++value) {
      const std::uint16_t bits = bfloat16Bits(*value);
      *out++ = static_cast<char>(bits & 0xFFU);
      *out++ = static_cast<char>(bits >> 8U);
    }
    at += tensor.bytes();
  }
  return writeFile(path, bytes);
}

std::string configJson(const MadeModel& model) {
  const auto line = [](const char* key, std::int64_t value) {
    return std::string("  \"") + key + "\": " + std::to_string(value) + ",\n";
  };
  return "{\n  \"architectures\": [\"Qwen3ForCausalLM\"],\n  \"model_type\": \"qwen3\",\n" +
         line("num_hidden_layers", model.layers) + line("hidden_size", model.hidden) +
         line("head_dim", model.headDim) + line("num_attention_heads", model.heads) +
         line("num_key_value_heads", model.kvHeads) +
         line("intermediate_size", model.intermediate) + line("vocab_size", model.vocabulary) +
         "  \"tie_word_embeddings\": true,\n  \"torch_dtype\": \"bfloat16\"\n}\n";
}

Status writeAll(const fs::path& folder, const MadeModel& model) {
  fs::create_directories(folder);
  const Manifest manifest = madeManifest(model);
  const auto shards = static_cast<std::size_t>(std::max(model.shards, 1));
  const std::size_t perShard = (manifest.tensors.size() + shards - 1) / shards;
  std::string map;
  for (std::size_t shard = 0; shard < shards; ++shard) {
    const std::size_t begin = std::min(shard * perShard, manifest.tensors.size());
    const std::size_t end = std::min(begin + perShard, manifest.tensors.size());
    const auto at = [&manifest](std::size_t i) {
      return manifest.tensors.begin() + static_cast<std::ptrdiff_t>(i);
    };
    const std::vector<TensorSpec> tensors(at(begin), at(end));
    const std::string name = shardName(static_cast<int>(shard), static_cast<int>(shards));
    Status written = writeShard(folder / name, tensors, model);
    if (!written) {
      return written;
    }
    for (const TensorSpec& tensor : tensors) {
      map += (map.empty() ? "    " : ",\n    ") + common::jsonQuoted(tensor.name) + ": " +
             common::jsonQuoted(name);
    }
  }
  const Status index =
      writeFile(folder / "model.safetensors.index.json",
                "{\n  \"metadata\": {\"total_size\": " + std::to_string(manifest.bytes()) +
                    "},\n  \"weight_map\": {\n" + map + "\n  }\n}\n");
  return index ? writeFile(folder / "config.json", configJson(model)) : index;
}

}  // namespace

Manifest madeManifest(const MadeModel& model) {
  Manifest manifest;
  const auto add = [&manifest](std::string name, Shape shape) {
    manifest.tensors.push_back({std::move(name), DType::kBfloat16, std::move(shape), 0});
  };
  const std::int64_t queries = model.heads * model.headDim;
  const std::int64_t keys = model.kvHeads * model.headDim;
  add("model.embed_tokens.weight", {model.vocabulary, model.hidden});
  for (int layer = 0; layer < model.layers; ++layer) {
    const std::string prefix = "model.layers." + std::to_string(layer) + ".";
    add(prefix + "input_layernorm.weight", {model.hidden});
    add(prefix + "self_attn.q_proj.weight", {queries, model.hidden});
    add(prefix + "self_attn.k_proj.weight", {keys, model.hidden});
    add(prefix + "self_attn.v_proj.weight", {keys, model.hidden});
    add(prefix + "self_attn.o_proj.weight", {model.hidden, queries});
    add(prefix + "self_attn.q_norm.weight", {model.headDim});
    add(prefix + "self_attn.k_norm.weight", {model.headDim});
    add(prefix + "post_attention_layernorm.weight", {model.hidden});
    add(prefix + "mlp.gate_proj.weight", {model.intermediate, model.hidden});
    add(prefix + "mlp.up_proj.weight", {model.intermediate, model.hidden});
    add(prefix + "mlp.down_proj.weight", {model.hidden, model.intermediate});
  }
  add("model.norm.weight", {model.hidden});
  return manifest;
}

Status makeCheckpoint(const std::string& folder, const MadeModel& model) {
  try {
    return writeAll(folder, model);
  } catch (const std::exception& thrown) {
    return {Code::kUnavailable, folder + ": the checkpoint cannot be written: " + thrown.what()};
  }
}

}  // namespace pushrod::tools
