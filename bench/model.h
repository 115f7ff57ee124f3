// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <random>
#include <string>
#include <sys/mman.h>
#include <vector>

#include <pushrod/tensor.h>

namespace pushrod::bench {

/// Huge-page memory, touched; the process ends with it.
inline std::byte* touchedMemory(std::size_t bytes) {
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    std::abort();
  }
  ::madvise(memory, bytes, MADV_HUGEPAGE);
  auto* at = static_cast<std::byte*>(memory);
  for (std::size_t i = 0; i < bytes; i += 4096) {
    at[i] = std::byte{1};
  }
  return at;
}

/// The tensors of a Qwen3-0.6B-like model: 310 with 28 layers, tied embeddings, 1.19 GB in
/// bfloat16.
inline Manifest qwenLike(int layers, DType dtype) {
  Manifest manifest;
  const auto add = [&](const std::string& name, Shape shape) {
    manifest.tensors.push_back({name, dtype, std::move(shape), 0});
  };
  add("model.embed_tokens.weight", {151936, 1024});
  for (int layer = 0; layer < layers; ++layer) {
    const std::string prefix = "model.layers." + std::to_string(layer) + ".";
    add(prefix + "input_layernorm.weight", {1024});
    add(prefix + "self_attn.q_proj.weight", {2048, 1024});
    add(prefix + "self_attn.k_proj.weight", {1024, 1024});
    add(prefix + "self_attn.v_proj.weight", {1024, 1024});
    add(prefix + "self_attn.q_norm.weight", {128});
    add(prefix + "self_attn.k_norm.weight", {128});
    add(prefix + "self_attn.o_proj.weight", {1024, 2048});
    add(prefix + "post_attention_layernorm.weight", {1024});
    add(prefix + "mlp.gate_proj.weight", {3072, 1024});
    add(prefix + "mlp.up_proj.weight", {3072, 1024});
    add(prefix + "mlp.down_proj.weight", {1024, 3072});
  }
  add("model.norm.weight", {1024});
  return manifest;
}

/// A manifest's tensors in random memory, shuffled in address against their order.
struct Model {
  Manifest manifest;
  std::vector<TensorView> views;
  std::byte* memory = nullptr;
  std::size_t bytes = 0;

  explicit Model(Manifest declared) : manifest(std::move(declared)), bytes(manifest.bytes()) {
    memory = touchedMemory(bytes);
    std::mt19937_64 random(7);
    for (std::size_t i = 0; i + 8 <= bytes; i += 8) {
      // Small exponents only, so that as floats all of it is finite in every type.
      const std::uint64_t value = random() & 0xbfffbfffbfffbfffULL;
      std::memcpy(memory + i, &value, sizeof value);
    }
    std::vector<std::size_t> order(manifest.tensors.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::shuffle(order.begin(), order.end(), random);
    views.resize(order.size());
    std::size_t at = 0;
    for (const std::size_t index : order) {
      const TensorSpec& spec = manifest.tensors[index];
      TensorView& view = views[index];
      view.name = spec.name;
      view.dtype = spec.dtype;
      view.shape = spec.shape;
      view.data = memory + at;
      at += spec.bytes();
    }
  }

  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;
  ~Model() = default;
};

}  // namespace pushrod::bench
