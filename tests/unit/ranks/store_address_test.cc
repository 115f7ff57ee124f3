// SPDX-License-Identifier: Apache-2.0
#include "ranks/store_address.h"

#include <map>

#include <gtest/gtest.h>

namespace pushrod::ranks {
namespace {

using Variables = std::map<std::string, std::string>;

Result<StoreAddress> parse(const std::string& text,
                           const Variables& variables = {},
                           const std::string& privateDirectory = "") {
  return parseStoreAddress(
      text, privateDirectory, [&variables](const std::string& name) -> std::optional<std::string> {
        const auto found = variables.find(name);
        return found == variables.end() ? std::nullopt : std::optional(found->second);
      });
}

TEST(StoreAddressTest, FormsAreRead) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"file:///tmp/x", "file:///tmp/x"},
      {"tcp://host:29501", "tcp://host:29501"},
      {"tcp://[::1]:1", "tcp://[::1]:1"},
      {"tcp://10.0.0.1:65535", "tcp://10.0.0.1:65535"},
      {"redis://host", "redis://host:6379"},
      {"redis://host:7000", "redis://host:7000"},
      {"redis://[fe::1]", "redis://[fe::1]:6379"},
  };
  for (const auto& [text, expected] : cases) {
    const auto address = parse(text);
    ASSERT_TRUE(address) << text;
    EXPECT_EQ(address->toString(), expected);
  }
}

TEST(StoreAddressTest, OthersAreRefused) {
  for (const std::string text : {"",
                                 "http://host:1",
                                 "tcp://host",
                                 "tcp://host:",
                                 "tcp://host:0",
                                 "tcp://host:65536",
                                 "tcp://:1",
                                 "tcp://host:1x",
                                 "tcp://[::1",
                                 "tcp://[::1]x",
                                 "tcp://user@host:1",
                                 "redis://host:0",
                                 "redis://",
                                 "file://",
                                 "file:///",
                                 "file://relative",
                                 "Auto"}) {
    const auto address = parse(text);
    ASSERT_FALSE(address) << text;
    EXPECT_EQ(address.status().code(), Code::kInvalidArgument) << text;
  }
}

TEST(StoreAddressTest, AutoIsThePortAfterTheMasters) {
  const auto address = parse("auto", {{"MASTER_ADDR", "node7"}, {"MASTER_PORT", "29500"}});
  ASSERT_TRUE(address);
  EXPECT_EQ(address->toString(), "tcp://node7:29501");
  EXPECT_TRUE(address->fromMaster);
}

TEST(StoreAddressTest, AutoTakesThePrivateDirectoryFirst) {
  const auto address =
      parse("auto", {{"MASTER_ADDR", "node7"}, {"MASTER_PORT", "29500"}}, "/tmp/private");
  ASSERT_TRUE(address);
  EXPECT_EQ(address->toString(), "file:///tmp/private");
  EXPECT_TRUE(address->isPrivate);
}

TEST(StoreAddressTest, AutoNamesTheVariableThatIsBad) {
  const std::vector<std::pair<Variables, std::string>> cases = {
      {{}, "MASTER_ADDR is not set"},
      {{{"MASTER_ADDR", ""}, {"MASTER_PORT", "1"}}, "MASTER_ADDR is empty"},
      {{{"MASTER_ADDR", "a"}}, "MASTER_PORT is not set"},
      {{{"MASTER_ADDR", "a"}, {"MASTER_PORT", "x"}}, "MASTER_PORT is 'x'"},
      {{{"MASTER_ADDR", "a"}, {"MASTER_PORT", "65535"}}, "MASTER_PORT is '65535'"},
  };
  for (const auto& [variables, expected] : cases) {
    const auto address = parse("auto", variables);
    ASSERT_FALSE(address);
    EXPECT_NE(address.status().message().find(expected), std::string::npos)
        << address.status().message();
  }
}

}  // namespace
}  // namespace pushrod::ranks
