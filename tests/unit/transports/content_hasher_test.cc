// SPDX-License-Identifier: Apache-2.0
#include "transports/content_hasher.h"

#include <array>
#include <cstdint>

#include <gtest/gtest.h>

#include "transports/copy_digest.h"

namespace pushrod::transports {
namespace {

// sha256sum of these texts.
constexpr const char* kAb = "fb8e20fc2e4c3f248c60c39bd652f3c1347298bb977b8b4d5903b85055620603";
constexpr const char* kAbcd = "88d4266fd4e6338d13b845fcf289579d209c897823b9217da3e161936f031589";
constexpr const char* kAbcdef = "bef57ec7f53a6d40beb640a780a639c83bc29ac8a9816f1fc6c5c6dcd93c4721";
constexpr const char* kCd = "21e721c35a5823fdb452fa2f9f0a612c74fb952e06927489c6b27a43b817bed4";

TensorSpec bytesOf(const std::string& name, std::int64_t rows = 2) {
  return {name, DType::kUint8, {rows}, 0};
}

TensorView viewOf(const TensorSpec& spec, const char* text) {
  TensorView view;
  view.name = spec.name;
  view.dtype = spec.dtype;
  view.shape = spec.shape;
  view.data = text;
  return view;
}

/// The pass that yields these names, in this order, with two bytes each.
common::ContentDigests hash(const std::vector<std::pair<std::string, const char*>>& pass,
                            std::uint64_t budget = ContentHasher::kBudget) {
  Manifest manifest;
  for (const auto& [name, text] : pass) {
    manifest.tensors.push_back(bytesOf(name));
  }
  ContentHasher hasher(manifest, budget);
  for (std::size_t i = 0; i < pass.size(); ++i) {
    hasher.add(manifest.tensors[i], viewOf(manifest.tensors[i], pass[i].second));
  }
  return hasher.finish();
}

TEST(FusedPlace, KnowsTheParts) {
  EXPECT_EQ(fusedPlace("l.0.attn.k_proj.bias").parameter, "l.0.attn.qkv_proj.bias");
  EXPECT_EQ(fusedPlace("l.0.attn.k_proj.bias").order, 1U);
  EXPECT_EQ(fusedPlace("up_proj.weight").parameter, "gate_up_proj.weight");
  EXPECT_EQ(fusedPlace("l.0.o_proj.weight").parameter, "");
  EXPECT_EQ(fusedPlace("q_proj").parameter, "") << "no parameter of a module";
  EXPECT_EQ(fusedPlace("").parameter, "");
}

TEST(ContentHasher, ANameThatStaysHasItsOwnDigest) {
  const common::ContentDigests digests = hash({{"norm.weight", "ab"}});
  ASSERT_EQ(digests.size(), 1U);
  EXPECT_EQ(digests.at("norm.weight").sha256, kAb);
  EXPECT_EQ(digests.at("norm.weight").dtype, DType::kUint8);
}

TEST(ContentHasher, PartsAreJoinedInTheEnginesOrderWhateverTheirs) {
  using Pass = std::vector<std::pair<std::string, const char*>>;
  for (const Pass& pass :
       {Pass{{"a.q_proj.w", "ab"}, {"a.k_proj.w", "cd"}, {"a.v_proj.w", "ef"}},
        Pass{{"a.v_proj.w", "ef"}, {"a.k_proj.w", "cd"}, {"a.q_proj.w", "ab"}},
        Pass{{"a.k_proj.w", "cd"}, {"a.q_proj.w", "ab"}, {"a.v_proj.w", "ef"}}}) {
    const common::ContentDigests digests = hash(pass);
    ASSERT_EQ(digests.size(), 1U);
    EXPECT_EQ(digests.at("a.qkv_proj.w").sha256, kAbcdef);
  }
}

TEST(ContentHasher, ModulesAndLeavesAreKeptApart) {
  const common::ContentDigests digests = hash({{"a.gate_proj.w", "ab"},
                                               {"b.gate_proj.w", "cd"},
                                               {"b.up_proj.w", "ef"},
                                               {"a.up_proj.w", "cd"},
                                               {"a.gate_proj.bias", "cd"}});
  ASSERT_EQ(digests.size(), 3U);
  EXPECT_EQ(digests.at("a.gate_up_proj.w").sha256, kAbcd);
  EXPECT_EQ(digests.at("a.gate_proj.bias").sha256, kCd) << "its other part is not in the manifest";
}

TEST(ContentHasher, PartsBeyondTheBudgetAreNotKept) {
  const common::ContentDigests digests = hash({{"a.up_proj.w", "cd"},
                                               {"b.up_proj.w", "cd"},
                                               {"a.gate_proj.w", "ab"},
                                               {"b.gate_proj.w", "ab"},
                                               {"c.up_proj.w", "cd"},
                                               {"c.gate_proj.w", "ab"}},
                                              3);
  EXPECT_EQ(digests.count("b.gate_up_proj.w"), 0U) << "it did not fit beside a's";
  EXPECT_EQ(digests.at("a.gate_up_proj.w").sha256, kAbcd);
  EXPECT_EQ(digests.at("c.gate_up_proj.w").sha256, kAbcd) << "a's room was given back";
}

TEST(ContentHasher, AnEmbeddingThatEnginesPadHasNone) {
  const TensorSpec padded = bytesOf("model.embed_tokens.weight", 3);
  const TensorSpec whole = bytesOf("lm_head.weight", 64);
  const std::string text(64, 'x');
  ContentHasher hasher(Manifest{{padded, whole}});
  hasher.add(padded, viewOf(padded, text.data()));
  hasher.add(whole, viewOf(whole, text.data()));
  const common::ContentDigests digests = hasher.finish();
  EXPECT_EQ(digests.size(), 1U);
  EXPECT_EQ(digests.count("lm_head.weight"), 1U);
}

TEST(ContentHasher, WhatIsHashedIsWhatIsSent) {
  // Transposed, and declared in another dtype than streamed.
  const TensorSpec spec{"w", DType::kFloat32, {2, 2}, 0};
  const std::array<float, 4> transposed = {1, 3, 2, 4};
  const std::array<float, 4> plain = {1, 2, 3, 4};
  const std::array<double, 4> wide = {1, 2, 3, 4};
  TensorView strided;
  strided.name = "w";
  strided.dtype = DType::kFloat32;
  strided.shape = {2, 2};
  strided.strides = {1, 2};
  strided.data = transposed.data();
  TensorView cast = strided;
  cast.dtype = DType::kFloat64;
  cast.strides = {};
  cast.data = wide.data();
  TensorView straight = cast;
  straight.dtype = DType::kFloat32;
  straight.data = plain.data();
  CopyDigest copies;
  std::vector<std::string> sums;
  std::vector<std::uint64_t> digests;
  for (const TensorView& view : {straight, strided, cast}) {
    ContentHasher hasher(Manifest{{spec}});
    hasher.add(spec, view);
    sums.push_back(hasher.finish().at("w").sha256);
    digests.push_back(copies.of(spec, view).value());
  }
  EXPECT_EQ(sums[0], sums[1]);
  EXPECT_EQ(sums[0], sums[2]);
  EXPECT_EQ(digests[0], digests[1]);
  EXPECT_EQ(digests[0], digests[2]);
}

TEST(CopyDigest, OneOtherBitIsSeenAndDeviceMemoryRefused) {
  const TensorSpec spec = bytesOf("w");
  CopyDigest copies;
  EXPECT_NE(copies.of(spec, viewOf(spec, "ab")).value(),
            copies.of(spec, viewOf(spec, "ac")).value());
  TensorView away = viewOf(spec, "ab");
  away.device.kind = Device::Kind::kCuda;
  EXPECT_EQ(copies.of(spec, away).status().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace pushrod::transports
