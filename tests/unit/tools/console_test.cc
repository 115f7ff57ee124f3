// SPDX-License-Identifier: Apache-2.0
#include "tools/console.h"

#include <gtest/gtest.h>

#include "tools/json_text.h"
#include "tools/progress_line.h"

namespace pushrod::tools {
namespace {

TEST(Console, BytesAreShownInTheUnitThatFits) {
  EXPECT_EQ(bytesText(0), "0 B");
  EXPECT_EQ(bytesText(1023), "1023 B");
  EXPECT_EQ(bytesText(1024), "1.0 KiB");
  EXPECT_EQ(bytesText(33554432), "32.0 MiB");
  EXPECT_EQ(bytesText(std::uint64_t{3} << 30), "3.0 GiB");
  EXPECT_EQ(bytesText(std::uint64_t{1} << 63), "8192.0 PiB");
}

TEST(ProgressText, SaysPhaseBytesRateAndEngines) {
  PushProgress progress;
  progress.phase = Phase::kStream;
  progress.bytes = std::uint64_t{8} << 20;
  progress.totalBytes = std::uint64_t{32} << 20;
  progress.engines = 3;
  progress.enginesReady = 1;
  EXPECT_EQ(progressText(progress, 1.25e9),
            "stream  25%  8.0 MiB of 32.0 MiB  1.25 GB/s  engines 1/3");
  progress.attempt = 2;
  progress.phase = Phase::kPause;
  progress.totalBytes = 0;
  EXPECT_EQ(progressText(progress, 0), "pause  engines 1/3  attempt 2");
}

TEST(PrettyJson, LaysOutWhatMachinesWrite) {
  EXPECT_EQ(prettyJson(R"({"a":{"b":[1,2],"c":[]},"d":[{"e":null}],"f":{}})"),
            "{\n"
            "  \"a\": {\n"
            "    \"b\": [1, 2],\n"
            "    \"c\": []\n"
            "  },\n"
            "  \"d\": [\n"
            "    {\n"
            "      \"e\": null\n"
            "    }\n"
            "  ],\n"
            "  \"f\": {}\n"
            "}");
  EXPECT_EQ(prettyJson("<html>"), std::nullopt);
  EXPECT_EQ(prettyJson(""), std::nullopt);
}

}  // namespace
}  // namespace pushrod::tools
