// SPDX-License-Identifier: Apache-2.0
#include "common/log.h"

#include <gtest/gtest.h>

namespace pushrod::common {
namespace {

constexpr std::string_view kNoon = "2026-01-31T12:00:00.000Z";

TEST(Log, ATextLineCarriesTimeLevelJobAndRank) {
  LogOptions options;
  options.job = "rl";
  options.rank = 7;
  EXPECT_EQ(formatLogLine(options, LogLevel::kWarning, kNoon, "one text"),
            "2026-01-31T12:00:00.000Z warning rl[7] one text");
}

TEST(Log, LineEndsInATextMakeNoSecondLine) {
  const std::string line = formatLogLine({}, LogLevel::kInfo, kNoon, "a\nb\r\x1b[31m");
  EXPECT_EQ(line.find('\n'), std::string::npos) << line;
  EXPECT_EQ(line.find('\x1b'), std::string::npos) << line;
}

TEST(Log, AJsonLineIsOneObject) {
  LogOptions options;
  options.style = LogStyle::kJson;
  const std::string line = formatLogLine(options, LogLevel::kError, kNoon, "a \"b\"\n");
  EXPECT_EQ(line.front(), '{');
  EXPECT_EQ(line.back(), '}');
  EXPECT_NE(line.find(R"(a \"b\"\n)"), std::string::npos) << line;
  EXPECT_NE(line.find(R"("error")"), std::string::npos) << line;
}

TEST(Log, JsonTextsAreQuotedAsTheStandardSays) {
  EXPECT_EQ(jsonQuoted("plain"), R"("plain")");
  EXPECT_EQ(jsonQuoted("\"\\\n"), R"("\"\\\n")");
  EXPECT_EQ(jsonQuoted(std::string_view("\x01\0", 2)), R"("\u0001\u0000")");
  EXPECT_EQ(jsonQuoted("\xc3\xa9"), "\"\xc3\xa9\"");
}

}  // namespace
}  // namespace pushrod::common
