// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstddef>
#include <filesystem>
#include <sys/stat.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/tools/scratch_folder.h"
#include "tools/sources/safetensors.h"

namespace pushrod::tools {
namespace {

using ::testing::HasSubstr;
using testing::safetensors;
using testing::ScratchFolder;
using ::testing::StartsWith;

constexpr std::string_view kHeader = R"({"t":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})";

TEST(SafetensorsFile, ReadsAnyPartOfATensor) {
  const ScratchFolder folder;
  const auto file = SafetensorsFile::open(folder.write("f", safetensors(kHeader, "wxyz")));
  ASSERT_TRUE(file.ok()) << file.status().message();
  std::array<std::byte, 2> bytes{};
  const StoredTensor& tensor = (*file)->tensors().at(0);
  ASSERT_TRUE((*file)->read(tensor, 1, bytes).ok());
  EXPECT_EQ(bytes, (std::array{std::byte{'x'}, std::byte{'y'}}));
  EXPECT_TRUE((*file)->checkUnchanged().ok());
  EXPECT_EQ((*file)->read(tensor, 3, bytes).code(), Code::kInternal);
}

TEST(SafetensorsFile, RefusalsNameTheFile) {
  const ScratchFolder folder;
  const std::string whole = safetensors(kHeader, "wxyz");
  std::string huge = whole;
  huge[7] = '\x7f';
  std::string over = whole;
  over[3] = '\x07';  // 112 MiB and more
  std::string beyond = whole;
  beyond[1] = '\x10';
  const std::array<std::pair<std::string, const char*>, 7> rows = {{
      {"", "0 bytes"},
      {"1234567", "7 bytes"},
      {huge, "more than the 104857600 allowed"},
      {over, "more than the 104857600 allowed"},
      {beyond, "cut off or damaged"},
      {whole.substr(0, whole.size() - 1), "beyond the file"},
      {whole + "!", "1 bytes at the file's end"},
  }};
  for (const auto& [bytes, fragment] : rows) {
    const std::string path = folder.write("f", bytes);
    const auto file = SafetensorsFile::open(path);
    ASSERT_FALSE(file.ok()) << fragment;
    EXPECT_EQ(file.status().code(), Code::kInvalidArgument);
    EXPECT_THAT(file.status().message(), StartsWith(path + ": "));
    EXPECT_THAT(file.status().message(), HasSubstr(fragment));
  }
}

TEST(SafetensorsFile, WhatIsNoRegularFileIsRefusedWithoutWaiting) {
  const ScratchFolder folder;
  ASSERT_EQ(::mkfifo(folder.path("pipe").c_str(), 0600), 0);
  EXPECT_THAT(SafetensorsFile::open(folder.path("pipe")).status().message(), HasSubstr("regular"));
  EXPECT_THAT(SafetensorsFile::open(folder.path()).status().message(), HasSubstr("regular"));
  EXPECT_THAT(SafetensorsFile::open(folder.path("none")).status().message(), HasSubstr("opened"));
}

TEST(SafetensorsFile, AFileCutOffInUseIsAnErrorNotASignal) {
  const ScratchFolder folder;
  const std::string path = folder.write("f", safetensors(kHeader, "wxyz"));
  const auto file = SafetensorsFile::open(path);
  ASSERT_TRUE(file.ok());
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 2);
  std::array<std::byte, 4> bytes{};
  const Status read = (*file)->read((*file)->tensors().at(0), 0, bytes);
  EXPECT_EQ(read.code(), Code::kDataMismatch);
  EXPECT_THAT(read.message(), HasSubstr("tensor t"));
  EXPECT_EQ((*file)->checkUnchanged().code(), Code::kDataMismatch);
}

TEST(SafetensorsFile, ARewrittenReplacedOrRemovedFileIsNoticed) {
  const ScratchFolder folder;
  const std::string bytes = safetensors(kHeader, "wxyz");
  const std::string path = folder.write("f", bytes);
  const auto file = SafetensorsFile::open(path);
  ASSERT_TRUE(file.ok());

  std::filesystem::last_write_time(
      path, std::filesystem::last_write_time(path) - std::chrono::seconds(5));
  EXPECT_EQ((*file)->checkUnchanged().code(), Code::kDataMismatch);

  const auto second = SafetensorsFile::open(path);
  ASSERT_TRUE(second.ok());
  std::filesystem::rename(folder.write("other", bytes), path);
  EXPECT_EQ((*second)->checkUnchanged().code(), Code::kDataMismatch);

  const auto third = SafetensorsFile::open(path);
  ASSERT_TRUE(third.ok());
  std::filesystem::remove(path);
  EXPECT_THAT((*third)->checkUnchanged().message(), HasSubstr("removed"));
}

}  // namespace
}  // namespace pushrod::tools
