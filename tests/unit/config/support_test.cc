// SPDX-License-Identifier: Apache-2.0
#include "config/support.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/config/config_test_support.h"

namespace pushrod::config::test {
namespace {

using ::testing::HasSubstr;

Status supportOf(const std::string& text) {
  const auto config = Config::parse(text, "f.yaml");
  return config ? checkSupported(*config) : config.status();
}

const std::string kTcp = kEngine + "transport: {kind: tcp}\n";

TEST(Support, TcpWithDefaultsIsSupported) {
  EXPECT_TRUE(supportOf(kTcp).ok());
  EXPECT_TRUE(supportOf(kTcp + "push: {verify: none, pause: abort, partial: true}\n").ok());
  EXPECT_TRUE(supportOf(kTcp + "push: {flush_external: true}\n").ok());
  EXPECT_TRUE(
      supportOf(kTcp + "push: {verify: checksum, stop: pass, check_replicas: digest}\n").ok());
}

TEST(Support, TheDefaultTransportIsRefusedWithTheRemedy) {
  const Status status = supportOf(kEngine);
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("transport.kind: nccl is not in this build"));
  EXPECT_THAT(status.message(), HasSubstr("set transport.kind: tcp"));
}

TEST(Support, AnEnginesOwnTransportCounts) {
  EXPECT_TRUE(supportOf("engines: {list: [{url: \"http://a:1\", transport: tcp}]}\n").ok());
  EXPECT_THAT(supportOf("engines: {list: [{url: \"http://a:1\", transport: ipc}]}\n"
                        "transport: {kind: tcp}\n")
                  .message(),
              HasSubstr("engines.list[0].transport: ipc is not in this build"));
}

struct Row {
  std::string text;
  std::string says;
};

class Unsupported : public ::testing::TestWithParam<Row> {};

TEST_P(Unsupported, IsRefusedByKeyAndValue) {
  EXPECT_THAT(supportOf(GetParam().text).message(),
              HasSubstr(GetParam().says + " is not in this build"));
}

Row transport(const std::string& key, const std::string& value) {
  return {kEngine + "transport: {kind: tcp, " + key + ": " + value + "}\n",
          "transport." + key + ": " + value};
}

INSTANTIATE_TEST_SUITE_P(Keys,
                         Unsupported,
                         ::testing::Values(transport("load_plan", "true"),
                                           transport("group", "per_engine")));

TEST(Support, OwnersGoOverTcpAlone) {
  EXPECT_TRUE(supportOf(kEngine + "transport: {kind: tcp, owners: true}\n").ok());
  EXPECT_THAT(supportOf(kEngine + "transport: {kind: shm, owners: true}\n").message(),
              HasSubstr("transport.owners: true is not in this build but over tcp"));
}

TEST(Support, AllKeysAreNamedAtOnce) {
  const Status status = supportOf(kEngine + "transport: {owners: true, load_plan: true}\n");
  EXPECT_THAT(status.message(), HasSubstr("transport.kind: nccl"));
  EXPECT_THAT(status.message(), HasSubstr("transport.load_plan: true"));
  EXPECT_THAT(status.message(), HasSubstr("transport.owners: true"));
}

}  // namespace
}  // namespace pushrod::config::test
