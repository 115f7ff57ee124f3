// SPDX-License-Identifier: Apache-2.0
#include "tools/sources/checkpoint.h"

#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/tools/scratch_folder.h"
#include "tools/sources/checkpoint_index.h"

namespace pushrod::tools {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::safetensors;
using testing::ScratchFolder;

/// A shard with one-byte tensors of these names.
std::string shard(const std::vector<std::string>& names) {
  std::string header = "{";
  for (std::size_t i = 0; i < names.size(); ++i) {
    header += (i == 0 ? "\"" : ",\"") + names[i] +
              R"(":{"dtype":"U8","shape":[1],"data_offsets":[)" + std::to_string(i) + "," +
              std::to_string(i + 1) + "]}";
  }
  return safetensors(header + "}", std::string(names.size(), 'v'));
}

std::vector<std::string> namesOf(const Checkpoint& checkpoint) {
  std::vector<std::string> names;
  for (const TensorSpec& tensor : checkpoint.manifest().tensors) {
    names.push_back(tensor.name);
  }
  return names;
}

constexpr const char* kIndex = "model.safetensors.index.json";

TEST(Checkpoint, ASingleFileIsRead) {
  const ScratchFolder folder;
  folder.write("model.safetensors", shard({"b", "a"}));
  const auto checkpoint = Checkpoint::open(folder.path());
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().message();
  EXPECT_THAT(namesOf(**checkpoint), ElementsAre("b", "a"));
  EXPECT_EQ((*checkpoint)->warning(), "");
}

TEST(Checkpoint, ShardsComeInTheIndexOrderAndTensorsInTheirFiles) {
  const ScratchFolder folder;
  folder.write("two.safetensors", shard({"d", "c"}));
  folder.write("one.safetensors", shard({"a", "b"}));
  folder.write(kIndex,
               R"({"metadata":{"total_size":99},"weight_map":{"c":"two.safetensors",
                   "a":"one.safetensors","d":"two.safetensors","b":"one.safetensors"}})");
  const auto checkpoint = Checkpoint::open(folder.path());
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().message();
  EXPECT_THAT(namesOf(**checkpoint), ElementsAre("d", "c", "a", "b"));
  EXPECT_EQ((*checkpoint)->files(), 2U);
}

TEST(Checkpoint, KeysThatTheIndexDoesNotListAreNotSentAndNamedOnce) {
  const ScratchFolder folder;
  folder.write("one.safetensors", shard({"a", "extra", "b", "more"}));
  folder.write("two.safetensors", shard({"a"}));  // listed, but for the other shard
  folder.write(kIndex, R"({"weight_map":{"a":"one.safetensors","b":"one.safetensors"}})");
  const auto checkpoint = Checkpoint::open(folder.path());
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().message();
  EXPECT_THAT(namesOf(**checkpoint), ElementsAre("a", "b"));
  EXPECT_THAT((*checkpoint)->warning(), HasSubstr("2 tensors"));
  EXPECT_THAT((*checkpoint)->warning(), HasSubstr("extra in one.safetensors"));
}

TEST(Checkpoint, FaultyFoldersAreRefusedByName) {
  struct Row {
    const char* index;
    const char* fragment;
  };

  const std::vector<Row> rows = {
      {"", "incomplete"},
      {"[]", "no weight_map"},
      {"{}", "no weight_map"},
      {R"({"weight_map":[]})", "no weight_map"},
      {R"({"weight_map":{}})", "weight_map is empty"},
      {R"({"weight_map":{"a":1}})", "tensor \"a\""},
      {R"({"weight_map":{"a":""}})", "not a plain file name"},
      {R"({"weight_map":{"a":".."}})", "not a plain file name"},
      {R"({"weight_map":{"a":"../one.safetensors"}})", "\"../one.safetensors\""},
      {R"({"weight_map":{"a":"/etc/passwd"}})", "not a plain file name"},
      {R"({"weight_map":{"a":"x\\one.safetensors"}})", "not a plain file name"},
      {R"({"weight_map":{"a":"one.safetensors\u0000"}})", "not a plain file name"},
      {R"({"weight_map":{"a":"one.safetensors","a":"one.safetensors"}})", "\"a\" appears twice"},
      {R"({"weight_map":{"a":"gone.safetensors"}})", "gone.safetensors: cannot be opened"},
      {R"({"weight_map":{"a":"one.safetensors","z":"one.safetensors"}})",
       "tensor z is not in its shard one.safetensors"},
      {R"({"weight_map":{"a":"bad.safetensors"}})", "bad.safetensors"},
  };
  for (const Row& row : rows) {
    const ScratchFolder folder;
    folder.write("one.safetensors", shard({"a"}));
    folder.write("bad.safetensors", "not one at all");
    folder.write(kIndex, row.index);
    const auto checkpoint = Checkpoint::open(folder.path());
    ASSERT_FALSE(checkpoint.ok()) << row.index;
    EXPECT_EQ(checkpoint.status().code(), Code::kInvalidArgument) << row.index;
    EXPECT_THAT(checkpoint.status().message(), HasSubstr(row.fragment)) << row.index;
  }
}

TEST(Checkpoint, FoldersWithoutOneMeaningAreRefused) {
  const ScratchFolder folder;
  EXPECT_THAT(Checkpoint::open(folder.path("none")).status().message(), HasSubstr("not a folder"));
  EXPECT_THAT(Checkpoint::open(folder.path()).status().message(), HasSubstr("holds neither"));
  folder.write("model.safetensors", safetensors("{}", ""));
  EXPECT_THAT(Checkpoint::open(folder.path()).status().message(), HasSubstr("no tensor"));
  folder.write("one.safetensors", shard({"a"}));
  folder.write(kIndex, R"({"weight_map":{"a":"one.safetensors"}})");
  EXPECT_THAT(Checkpoint::open(folder.path()).status().message(), HasSubstr("holds both"));
}

TEST(Checkpoint, AnIndexMayNameTheSingleFile) {
  const ScratchFolder folder;
  folder.write("model.safetensors", shard({"a"}));
  folder.write(kIndex, R"({"weight_map":{"a":"model.safetensors"}})");
  EXPECT_TRUE(Checkpoint::open(folder.path()).ok());
}

TEST(Checkpoint, ShardsMayBeLinksAsInADownloadCache) {
  const ScratchFolder folder;
  std::filesystem::create_directory(folder.path("snapshot"));
  std::filesystem::create_symlink(folder.write("blob", shard({"a"})),
                                  folder.path("snapshot/model.safetensors"));
  EXPECT_TRUE(Checkpoint::open(folder.path("snapshot")).ok());
}

}  // namespace
}  // namespace pushrod::tools
