// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <stdlib.h>

#include <gtest/gtest.h>

#include "orchestrator/flight/file.h"

namespace pushrod::orchestrator {
namespace {

namespace fs = std::filesystem;

class FlightFiles : public ::testing::Test {
 protected:
  FlightFiles() {
    std::string name = (fs::temp_directory_path() / "flight_test.XXXXXX").string();
    folder = ::mkdtemp(name.data()) != nullptr ? name : std::string();
  }

  ~FlightFiles() override { fs::remove_all(folder); }

  void touch(const std::string& name) const { std::ofstream(fs::path(folder) / name) << "x\n"; }

  [[nodiscard]] std::set<std::string> names() const {
    std::set<std::string> all;
    for (const auto& entry : fs::directory_iterator(folder)) {
      all.insert(entry.path().filename().string());
    }
    return all;
  }

  std::string folder;
};

TEST_F(FlightFiles, AreWrittenWholeUnderTheirName) {
  const auto path = writeFlight(folder + "/made/for/it", "job", "a\nb\n");
  ASSERT_TRUE(path) << path.status().toString();
  std::ifstream file(*path);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), "a\nb\n");
  const std::string name = fs::path(*path).filename().string();
  EXPECT_TRUE(name.starts_with("flight-job-2")) << name;
  EXPECT_TRUE(name.ends_with("-" + std::to_string(::getpid()) + ".jsonl")) << name;
  EXPECT_EQ(std::distance(fs::directory_iterator(folder + "/made/for/it"), {}), 1);
}

TEST_F(FlightFiles, TheOldestOfThisJobGo) {
  for (int i = 10; i < 35; ++i) {
    touch("flight-job-20200101T0000" + std::to_string(i) + ".000Z-1.jsonl");
  }
  touch("flight-job-b-20200101T000000.000Z-1.jsonl");  // job "job-b"
  touch("flight-job-notes.jsonl");
  touch("report.json");
  ASSERT_TRUE(writeFlight(folder, "job", "x\n"));
  const std::set<std::string> left = names();
  EXPECT_EQ(left.size(), kKeptFlights + 3);
  EXPECT_TRUE(left.contains("flight-job-b-20200101T000000.000Z-1.jsonl"));
  EXPECT_TRUE(left.contains("flight-job-notes.jsonl"));
  EXPECT_FALSE(left.contains("flight-job-20200101T000015.000Z-1.jsonl"));
  EXPECT_TRUE(left.contains("flight-job-20200101T000016.000Z-1.jsonl"));
}

TEST_F(FlightFiles, AFolderThatIsAFileIsAFailureThatNamesIt) {
  touch("file");
  const auto path = writeFlight(folder + "/file", "job", "x\n");
  ASSERT_FALSE(path);
  EXPECT_NE(path.status().message().find("/file/flight-job-"), std::string::npos);
  EXPECT_EQ(names(), std::set<std::string>{"file"});
}

}  // namespace
}  // namespace pushrod::orchestrator
