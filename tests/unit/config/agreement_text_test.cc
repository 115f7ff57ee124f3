// SPDX-License-Identifier: Apache-2.0
#include "config/agreement_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/config/config_test_support.h"

namespace pushrod::config::test {
namespace {

std::string agreementOf(const std::string& text) {
  const auto config = Config::parse(text, "f.yaml");
  EXPECT_TRUE(config.ok()) << config.status().message();
  return config ? agreementText(*config) : std::string();
}

std::string differenceFrom(const std::string& more) {
  return firstDifference(agreementOf(kEngine + more), agreementOf(kEngine));
}

TEST(AgreementText, EqualConfigurationsDoNotDiffer) {
  EXPECT_EQ(differenceFrom(""), "");
  EXPECT_EQ(differenceFrom("job: pushrod\ntimeouts: {push: 120m}\n"), "");
}

TEST(AgreementText, HarmlessKeysMayDiffer) {
  EXPECT_EQ(differenceFrom("ranks: {interface: eth1}\nmetrics: {listen: \"\", linger: 1s}\n"
                           "log: {level: debug, format: json}\ntransport: {port: 5, bind: h}\n"),
            "");
  EXPECT_EQ(firstDifference(agreementOf("engines: {list: [{url: \"http://b:2\"}], token_env: T}\n"),
                            agreementOf(kEngine)),
            "");
}

TEST(AgreementText, TheFirstDifferingKeyIsNamedWithBothValues) {
  EXPECT_EQ(differenceFrom("push: {resend: false}\ntransport: {buffer: 2MiB}\n"),
            "transport.buffer: 2MiB here, 1GiB on rank 0");
  EXPECT_EQ(differenceFrom("push: {dtypes: {overrides: {\"a: b\": int8}}}\n"),
            "push.dtypes.overrides: {\"a: b\": int8} here, {} on rank 0");
}

TEST(AgreementText, KeysOfAnotherBuildAreNamed) {
  EXPECT_THAT(firstDifference("a: 1\nb: 2\n", "a: 1\n"), ::testing::HasSubstr("b: known here"));
  EXPECT_THAT(firstDifference("a: 1\n", "a: 1\nb: 2\n"),
              ::testing::HasSubstr("b: known on rank 0"));
}

TEST(AgreementText, AnyTextIsTaken) {
  EXPECT_EQ(firstDifference("", ""), "");
  EXPECT_NE(firstDifference("x", "\n\n: \n"), "");
}

}  // namespace
}  // namespace pushrod::config::test
