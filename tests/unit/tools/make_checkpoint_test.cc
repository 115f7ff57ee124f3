// SPDX-License-Identifier: Apache-2.0
#include "tools/make_checkpoint.h"

#include <cmath>
#include <map>
#include <openssl/evp.h>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/tools/scratch_folder.h"
#include "tools/sources/checkpoint.h"
#include "tools/sources/made_values.h"

namespace pushrod::tools {
namespace {

using testing::ScratchFolder;

std::string digest(const EVP_MD* kind, const std::string& bytes, std::size_t length) {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  std::string out(length, '\0');
  auto* raw = reinterpret_cast<unsigned char*>(out.data());
  EXPECT_EQ(EVP_DigestInit_ex(context, kind, nullptr), 1);
  EXPECT_EQ(EVP_DigestUpdate(context, bytes.data(), bytes.size()), 1);
  EXPECT_EQ(kind == EVP_shake128() ? EVP_DigestFinalXOF(context, raw, length)
                                   : EVP_DigestFinal_ex(context, raw, nullptr),
            1);
  EVP_MD_CTX_free(context);
  return out;
}

std::map<std::string, std::string> digests(const Checkpoint& checkpoint) {
  std::map<std::string, std::string> result;
  for (const Checkpoint::Tensor& tensor : checkpoint.tensors()) {
    std::string bytes(tensor.stored->bytes, '\0');
    EXPECT_TRUE(
        tensor.file->read(*tensor.stored, 0, std::as_writable_bytes(std::span(bytes))).ok());
    result[tensor.stored->name] = digest(EVP_sha256(), bytes, 32);
  }
  return result;
}

MadeModel small() {
  MadeModel model;
  model.layers = 2;
  model.hidden = 8;
  model.headDim = 4;
  model.intermediate = 24;
  model.vocabulary = 32;
  return model;
}

TEST(MadeValues, FollowTheRule) {
  const auto values = madeValues("w", 7, "3", 64);
  ASSERT_TRUE(values.ok());
  const std::string key(
      "w\0"
      "7\0"
      "3",
      5);
  const std::string bytes = digest(EVP_shake128(), key, 64);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    EXPECT_EQ(int(values->at(i)), (static_cast<unsigned char>(bytes[i]) & 15) - 8);
  }
}

TEST(MadeValues, Bfloat16BitsAreExact) {
  EXPECT_EQ(bfloat16Bits(0), 0x0000);
  EXPECT_EQ(bfloat16Bits(1), 0x3F80);
  EXPECT_EQ(bfloat16Bits(-1), 0xBF80);
  EXPECT_EQ(bfloat16Bits(7), 0x40E0);
  EXPECT_EQ(bfloat16Bits(-8), 0xC100);
}

TEST(MakeCheckpoint, TheDefaultIsRealistic) {
  const Manifest manifest = madeManifest({});
  EXPECT_EQ(manifest.tensors.size(), 222U);
  EXPECT_GE(manifest.bytes(), std::uint64_t{24} << 20);
  EXPECT_LE(manifest.bytes(), std::uint64_t{64} << 20);
}

TEST(MakeCheckpoint, WhatIsWrittenIsReadBack) {
  const ScratchFolder folder;
  const MadeModel model = small();
  ASSERT_TRUE(makeCheckpoint(folder.path("made"), model).ok());
  const auto checkpoint = Checkpoint::open(folder.path("made"));
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().message();
  EXPECT_EQ((*checkpoint)->manifest(), madeManifest(model));
  EXPECT_EQ((*checkpoint)->files(), 4U);
  EXPECT_EQ((*checkpoint)->warning(), "");
  const auto found = digests(**checkpoint);
  for (const TensorSpec& tensor : (*checkpoint)->manifest().tensors) {
    const auto values = madeValues(tensor.name, model.seed, model.version, tensor.bytes() / 2);
    ASSERT_TRUE(values.ok());
    std::string bytes;
    for (const std::int8_t value : *values) {
      bytes += static_cast<char>(bfloat16Bits(value) & 0xFF);
      bytes += static_cast<char>(bfloat16Bits(value) >> 8);
    }
    EXPECT_EQ(found.at(tensor.name), digest(EVP_sha256(), bytes, 32)) << tensor.name;
  }
}

TEST(MakeCheckpoint, AnotherVersionOrSeedHasOtherBytes) {
  const ScratchFolder folder;
  MadeModel model = small();
  ASSERT_TRUE(makeCheckpoint(folder.path("a"), model).ok());
  ASSERT_TRUE(makeCheckpoint(folder.path("again"), model).ok());
  model.version = "1";
  ASSERT_TRUE(makeCheckpoint(folder.path("b"), model).ok());
  const auto a = Checkpoint::open(folder.path("a"));
  const auto again = Checkpoint::open(folder.path("again"));
  const auto b = Checkpoint::open(folder.path("b"));
  ASSERT_TRUE(a.ok() && again.ok() && b.ok());
  EXPECT_EQ(digests(**a), digests(**again));
  EXPECT_NE(digests(**a), digests(**b));
}

TEST(MakeCheckpoint, AFolderThatCannotBeWrittenIsAnError) {
  const ScratchFolder folder;
  folder.write("file", "x");
  EXPECT_EQ(makeCheckpoint(folder.path("file/below"), small()).code(), Code::kUnavailable);
}

}  // namespace
}  // namespace pushrod::tools
