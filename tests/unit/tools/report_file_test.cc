// SPDX-License-Identifier: Apache-2.0
#include "tools/report_file.h"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/tools/scratch_folder.h"

namespace pushrod::tools {
namespace {

using ::testing::HasSubstr;
using testing::ScratchFolder;
namespace fs = std::filesystem;

std::ptrdiff_t filesIn(const ScratchFolder& folder) {
  return std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator());
}

TEST(ReportFile, IsReplacedAsAWhole) {
  const ScratchFolder folder;
  const std::string older = "[{\"version\":\"1\", an older and longer report}]";
  folder.write("r.json", older);
  ASSERT_TRUE(checkReportPath(folder.path("r.json")).ok());
  EXPECT_EQ(folder.read("r.json"), older);
  ASSERT_TRUE(writeReportFile(folder.path("r.json"), "{}").ok());
  EXPECT_EQ(folder.read("r.json"), "{}");
  EXPECT_EQ(filesIn(folder), 1);
}

TEST(ReportFile, WhatIsNoReportIsRefusedAndKept) {
  const ScratchFolder folder;
  const std::string path = folder.path("other");
  for (const std::string text :
       {"job: rl\n", "{\"repeat\": {}, \"pushes\": [{\"version\":\"1\"}]}", "\x08\x01", "[1]"}) {
    folder.write("other", text);
    const Status status = checkReportPath(path);
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << text;
    EXPECT_THAT(status.message(), HasSubstr("--report " + path));
    EXPECT_FALSE(writeReportFile(path, "{}").ok());
    EXPECT_EQ(folder.read("other"), text);
  }
  for (const std::string text : {"", "{\"version\":\"\",", "{\n  \"version\": \"7\"", "[ ]\n"}) {
    folder.write("other", text);
    EXPECT_TRUE(checkReportPath(path).ok()) << text;
  }
}

TEST(ReportFile, AnUnwritablePathIsRefusedByName) {
  const ScratchFolder folder;
  folder.write("file", "x");
  for (const std::string& path :
       {folder.path("none/r.json"), folder.path("file/r.json"), folder.path()}) {
    const Status status = checkReportPath(path);
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << path;
    EXPECT_THAT(status.message(), HasSubstr("--report " + path));
  }
  EXPECT_FALSE(writeReportFile(folder.path("none/r.json"), "{}").ok());
  EXPECT_EQ(filesIn(folder), 1);
}

}  // namespace
}  // namespace pushrod::tools
