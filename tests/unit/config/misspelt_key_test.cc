// SPDX-License-Identifier: Apache-2.0
// Every key in turn: one letter changed, a hyphen for an underscore, moved up and down.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/key_table.h"
#include "config/nearest.h"
#include "tests/unit/config/config_test_support.h"

namespace pushrod::config::test {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::SizeIs;

/// `path` written as nested sections, with value 1.
std::string nested(const std::string& path) {
  std::string text;
  std::string indent;
  std::string rest = path;
  for (std::size_t dot = rest.find('.'); dot != std::string::npos; dot = rest.find('.')) {
    text += indent + rest.substr(0, dot) + ":\n";
    indent += "  ";
    rest.erase(0, dot + 1);
  }
  return text + indent + rest + ": 1\n";
}

std::string leafOf(const std::string& path) {
  return path.substr(path.rfind('.') + 1);
}

std::string parentOf(const std::string& path) {
  const std::size_t dot = path.rfind('.');
  return dot == std::string::npos ? std::string() : path.substr(0, dot);
}

bool isKnown(const std::string& path) {
  const auto& known = knownPaths();
  return std::find(known.begin(), known.end(), path) != known.end();
}

/// Expects that `path` is refused and `meant` is named.
void expectSuggested(const std::string& path, const std::string& meant) {
  SCOPED_TRACE(path);
  bool found = false;
  for (const std::string& fault : faultsOf(nested(path))) {
    found =
        found || (fault.find(path + ": unknown key; the nearest known key") != std::string::npos &&
                  fault.find(meant + ", which belongs") != std::string::npos);
  }
  EXPECT_TRUE(found) << ::testing::PrintToString(faultsOf(nested(path)));
}

TEST(MisspeltKey, ItsWholePathInOneName) {
  for (const Key<Config>& key : configKeys()) {
    if (key.path.find('.') != std::string::npos) {
      EXPECT_THAT(
          faultsOf(key.path + ": 1\n"),
          Contains(AllOf(HasSubstr(":1:1: " + key.path + ": unknown key"),
                         HasSubstr(key.path + ", which belongs under " + parentOf(key.path)))));
    }
  }
  EXPECT_THAT(faultsOf("push:\n  dtypes.default: float32\n"),
              Contains(HasSubstr(":2:3: push.dtypes.default: unknown key")));
}

TEST(MisspeltKey, OneLetterChanged) {
  for (const Key<Config>& key : configKeys()) {
    std::string path = key.path;
    path.back() = path.back() == 'x' ? 'y' : 'x';
    expectSuggested(path, key.path);
    path = key.path + "q";
    expectSuggested(path, key.path);
  }
}

TEST(MisspeltKey, HyphenForUnderscoreAndCapitals) {
  for (const Key<Config>& key : configKeys()) {
    std::string path = key.path;
    const std::size_t underscore = path.rfind('_');
    if (underscore != std::string::npos && underscore > path.rfind('.') + 1) {
      path[underscore] = '-';
      expectSuggested(path, key.path);
    }
    path = key.path;
    char& first = path[path.size() - leafOf(path).size()];
    first = static_cast<char>(first - 32);
    expectSuggested(path, key.path);
  }
}

TEST(MisspeltKey, MovedOneLevelUpOrDown) {
  for (const Key<Config>& key : configKeys()) {
    const std::string parent = parentOf(key.path);
    if (parent.empty()) {
      expectSuggested("log." + key.path, key.path);
      continue;
    }
    const std::string up =
        parentOf(parent).empty() ? leafOf(key.path) : parentOf(parent) + "." + leafOf(key.path);
    if (isKnown(up)) {
      continue;  // another key of that name stands there: refused for its value, not its name
    }
    SCOPED_TRACE(up);
    const auto faults = faultsOf(nested(up));
    ASSERT_FALSE(faults.empty());
    EXPECT_THAT(faults,
                ::testing::Contains(HasSubstr("." + leafOf(key.path) + ", which belongs under")));
  }
}

TEST(MisspeltKey, KeyOfAnEngineInTheWrongPlace) {
  expectSuggested("engines.url", "engines.list[].url");
  expectSuggested("world_size", "engines.list[].expect.world_size");
}

TEST(MisspeltKey, LongKeysAreNotCompared) {
  const auto faults = faultsOf(kEngine + "? " + std::string(500000, 'a') + "\n: 1\n");
  EXPECT_THAT(faults, SizeIs(1));
  EXPECT_THAT(faults[0], HasSubstr("unknown key"));
}

TEST(EditDistance, CountsLettersAndSwaps) {
  EXPECT_EQ(editDistance("", ""), 0U);
  EXPECT_EQ(editDistance("abc", ""), 3U);
  EXPECT_EQ(editDistance("kind", "kidn"), 1U);
  EXPECT_EQ(editDistance("kitten", "sitting"), 3U);
}

}  // namespace
}  // namespace pushrod::config::test
