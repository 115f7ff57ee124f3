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
  folder.write("r.json", "an older and longer report");
  ASSERT_TRUE(checkReportPath(folder.path("r.json")).ok());
  EXPECT_EQ(folder.read("r.json"), "an older and longer report");
  ASSERT_TRUE(writeReportFile(folder.path("r.json"), "{}").ok());
  EXPECT_EQ(folder.read("r.json"), "{}");
  EXPECT_EQ(filesIn(folder), 1);
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
