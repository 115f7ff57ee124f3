// SPDX-License-Identifier: Apache-2.0
// Files on disk: configurations and engine lists.
#include <filesystem>
#include <fstream>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/config/config_test_support.h"

namespace pushrod::config::test {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class Files : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() /
              ("pushrod-config-" + std::to_string(getpid()) + "-" +
               ::testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directory(folder_);
  }

  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string write(const std::string& name, const std::string& text) {
    const std::string path = folder_ / name;
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }

  std::filesystem::path folder_;
};

TEST_F(Files, AConfigurationIsLoaded) {
  const std::string path = write("push.yaml", kEngine + "job: disk\n");
  const auto config = Config::load(path);
  ASSERT_TRUE(config.ok()) << config.status().message();
  EXPECT_EQ(config->job, "disk");
}

TEST_F(Files, FaultsBeginWithThePath) {
  const std::string path = write("push.yaml", kEngine + "job: a b\n");
  const auto config = Config::load(path);
  EXPECT_EQ(config.status().code(), Code::kInvalidArgument);
  EXPECT_THAT(config.status().message(), StartsWith(path + ":2:6: job: "));
}

TEST_F(Files, WhatIsNoReadableFileIsRefused) {
  EXPECT_THAT(Config::load(folder_ / "none").status().message(), HasSubstr("o such file"));
  EXPECT_THAT(Config::load(folder_).status().message(), HasSubstr("not a regular file"));
  EXPECT_THAT(Config::load("/dev/zero").status().message(), HasSubstr("not a regular file"));
  EXPECT_FALSE(Config::load("").ok());
  const std::string large = write("large", std::string(std::size_t{3} << 20, '#'));
  EXPECT_THAT(Config::load(large).status().message(), HasSubstr("more than the 1048576"));
}

TEST_F(Files, AnEngineListIsYamlOrJson) {
  const auto yaml =
      loadEngines(write("a.yaml", "- url: http://a:1\n- {url: \"http://b:1\", name: b}\n"));
  ASSERT_TRUE(yaml.ok()) << yaml.status().message();
  EXPECT_EQ(yaml->size(), 2U);
  const auto json = loadEngines(
      write("a.json", "[\n\t{\"url\": \"http:\\/\\/a:1\", \"expect\": {\"world_size\": 2}}\n]\n"));
  ASSERT_TRUE(json.ok()) << json.status().message();
  EXPECT_EQ(json->at(0).url, "http://a:1");
  EXPECT_EQ(json->at(0).expect.worldSize, 2);
}

TEST_F(Files, AnEngineListIsCheckedLikeTheConfigurations) {
  EXPECT_THAT(loadEngines(write("e", "[]")).status().message(), HasSubstr("is empty"));
  EXPECT_THAT(loadEngines(write("e", "")).status().message(),
              HasSubstr("must be a list of engines"));
  EXPECT_THAT(loadEngines(write("e", "- url: http://a:1\n- url: http://a:1\n")).status().message(),
              HasSubstr(":2:8: engines.list[1].url: the address"));
  EXPECT_THAT(loadEngines(write("e", "- {url: \"http://a:1\", nmae: x}\n")).status().message(),
              HasSubstr(":1:23: engines.list[0].nmae: unknown key"));
}

}  // namespace
}  // namespace pushrod::config::test
