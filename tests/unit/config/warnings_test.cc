// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/config/config_test_support.h"

namespace pushrod::config::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> warningsOf(const std::string& text) {
  const auto checked = parseConfig(text, "f.yaml", fakeEnvironment());
  EXPECT_TRUE(checked.ok()) << checked.status().message();
  return checked ? checked->warnings : std::vector<std::string>{};
}

TEST(Warnings, ASoundConfigurationHasNone) {
  EXPECT_THAT(warningsOf(kEngine), IsEmpty());
  EXPECT_THAT(warningsOf(kEngine + "timeouts: {push: 10m}\n"), IsEmpty());
}

TEST(Warnings, LimitsThatEndEachOther) {
  EXPECT_THAT(
      warningsOf(kEngine + "timeouts: {request: 3h}\n"),
      ElementsAre(HasSubstr("f.yaml:2:21: timeouts.request: 3h is longer than timeouts.push")));
  EXPECT_THAT(warningsOf(kEngine + "timeouts: {connect: 20m}\n"),
              ElementsAre(HasSubstr("timeouts.startup (10m), which ends first")));
  EXPECT_THAT(
      warningsOf(kEngine + "timeouts: {request: 100s}\n"),
      ElementsAre(HasSubstr("timeouts.progress (5m) is longer than timeouts.request (100s)")));
  EXPECT_THAT(warningsOf(kEngine + "timeouts: {gather: 15m, shutdown: 30s}\n"),
              ElementsAre(HasSubstr("watchdog"), HasSubstr("launchers kill")));
}

TEST(Warnings, KeysWithoutEffectOrUnsafe) {
  EXPECT_THAT(warningsOf("engines: {list: [{url: \"http://a:1\"}], min_healthy: 1, token_env: T, "
                         "tls: {ca: x}}\npush: {verify: none, verify_every: 2, flush: false}\n"),
              ElementsAre(HasSubstr("engines.min_healthy: has no effect"),
                          HasSubstr("engines.token_env: the token is sent unencrypted"),
                          HasSubstr("engines.tls.ca: has no effect"),
                          HasSubstr("push.verify: none proves nothing"),
                          HasSubstr("push.verify_every: has no effect"),
                          HasSubstr("push.flush: false")));
  EXPECT_THAT(warningsOf("engines: {list: [{url: \"https://a:1\"}], tls: {verify: false}}\n"),
              ElementsAre(HasSubstr("engines.tls.verify: false takes any")));
}

}  // namespace
}  // namespace pushrod::config::test
