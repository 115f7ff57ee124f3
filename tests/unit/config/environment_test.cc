// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/config/config_test_support.h"

namespace pushrod::config::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Environment, EscapedTextsComeBack) {
  for (const std::string text : {"", "$", "${", "$${", "$$${A}", "a${B}c", "}{"}) {
    const auto back = replaceVariables(escapeVariables(text), fakeEnvironment());
    ASSERT_TRUE(back.ok()) << text;
    EXPECT_EQ(back->text, text);
    EXPECT_FALSE(back->changed);
  }
}

TEST(Environment, ValuesAreNotSearchedAgain) {
  const auto result = replaceVariables("${A}", fakeEnvironment({{"A", "${B}"}}));
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->text, "${B}");
}

TEST(Environment, LongValuesAreRefused) {
  const auto lookup = fakeEnvironment({{"A", std::string(10000, 'x')}});
  EXPECT_TRUE(replaceVariables("${A}", lookup).ok());
  EXPECT_FALSE(replaceVariables("${A}${A}", lookup).ok());
}

class Secrets : public ::testing::Test {
 protected:
  void TearDown() override { unsetenv("PUSHROD_TEST_SECRET"); }

  static Result<std::string> secretOf(const char* value) {
    setenv("PUSHROD_TEST_SECRET", value, 1);
    return readSecret("PUSHROD_TEST_SECRET");
  }
};

TEST_F(Secrets, AreReadFromTheNamedVariable) {
  const auto secret = secretOf("abc.DEF-123");
  ASSERT_TRUE(secret.ok());
  EXPECT_EQ(*secret, "abc.DEF-123");
}

TEST_F(Secrets, FailuresNameTheVariableAndNeverTheValue) {
  for (const char* value : {"", "has space", "line\nend", "caf\xc3\xa9"}) {
    const auto secret = secretOf(value);
    ASSERT_FALSE(secret.ok()) << value;
    EXPECT_THAT(secret.status().message(), HasSubstr("PUSHROD_TEST_SECRET"));
    EXPECT_THAT(secret.status().message(), Not(HasSubstr("has space")));
  }
  unsetenv("PUSHROD_TEST_SECRET");
  EXPECT_THAT(readSecret("PUSHROD_TEST_SECRET").status().message(), HasSubstr("is not set"));
}

TEST_F(Secrets, ATokenGivenAsAVariablesNameIsNotRepeated) {
  const auto secret = readSecret("hf-token-value");
  ASSERT_FALSE(secret.ok());
  EXPECT_THAT(secret.status().message(), Not(HasSubstr("hf-token-value")));
}

}  // namespace
}  // namespace pushrod::config::test
