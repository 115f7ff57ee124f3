// SPDX-License-Identifier: Apache-2.0
#include "config/document.h"

#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "tests/unit/config/config_test_support.h"

namespace pushrod::config::test {
namespace {

TEST(Document, IsTheGeneratedOne) {
  std::ifstream file(PUSHROD_SOURCE_DIR "/docs/configuration.md");
  std::ostringstream text;
  text << file.rdbuf();
  EXPECT_EQ(text.str(), configurationDocument())
      << "write it anew: build/bin/pushrod_config_document > docs/configuration.md";
}

TEST(Document, ItsExampleIsSound) {
  const std::string text = configurationDocument();
  const std::size_t begin = text.find("```yaml\n") + 8;
  const std::string example = text.substr(begin, text.find("```", begin) - begin);
  const auto checked = parseConfig(example, "example", fakeEnvironment());
  EXPECT_TRUE(checked.ok()) << checked.status().message();
}

}  // namespace
}  // namespace pushrod::config::test
