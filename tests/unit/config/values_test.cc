// SPDX-License-Identifier: Apache-2.0
// What sound texts mean.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/scalar.h"
#include "tests/unit/config/config_test_support.h"

namespace pushrod::config::test {
namespace {

Config parsed(const std::string& text, std::map<std::string, std::string> variables = {}) {
  auto checked = parseConfig(text, "f.yaml", fakeEnvironment(std::move(variables)));
  EXPECT_TRUE(checked.ok()) << checked.status().message();
  return checked ? *checked : Config();
}

TEST(Values, DefaultsAreThoseOfTheStructs) {
  const Config config = parsed(kEngine);
  EXPECT_EQ(config.job, "pushrod");
  EXPECT_EQ(config.transport.kind, TransportKind::kNccl);
  EXPECT_EQ(config.transport.buffer, std::uint64_t{1} << 30);
  EXPECT_EQ(config.timeouts.push, std::chrono::hours(2));
  EXPECT_EQ(config.timeouts.gather, std::chrono::seconds(480));
  EXPECT_TRUE(config.push.resend);
}

TEST(Values, EveryKindOfValueIsTakenOver) {
  const Config config = parsed(
      kEngine +
      "transport: {kind: tcp, buffer: 64MiB, buffers: 3, keep_buffers: false}\n"
      "push: {verify: none, dtypes: {default: bfloat16, overrides: {\"*.scale\": float32}}}\n"
      "timeouts: {connect: 1500ms, push: 10m}\n"
      "log: {level: warning, format: json}\n");
  EXPECT_EQ(config.transport.kind, TransportKind::kTcp);
  EXPECT_EQ(config.transport.buffer, std::uint64_t{64} << 20);
  EXPECT_EQ(config.transport.buffers, 3);
  EXPECT_FALSE(config.transport.keepBuffers);
  EXPECT_EQ(config.push.verify, Verify::kNone);
  EXPECT_EQ(config.push.dtypes.defaultDtype, "bfloat16");
  EXPECT_EQ(config.push.dtypes.overrides.at("*.scale"), "float32");
  EXPECT_EQ(config.timeouts.connect, Duration(1500));
  EXPECT_EQ(config.log.level, LogLevel::kWarning);
  EXPECT_EQ(config.log.format, LogFormat::kJson);
}

TEST(Values, EnginesAreNamedByTheirAddress) {
  const Config config = parsed(
      "engines:\n  list:\n  - url: http://10.0.0.11:8000\n  - url: https://H/base/\n"
      "  - {url: \"http://[::1]:1\", name: six, expect: {world_size: 4}, transport: tcp}\n");
  ASSERT_EQ(config.engines.list.size(), 3U);
  EXPECT_EQ(config.engines.list[0].name, "10.0.0.11:8000");
  EXPECT_EQ(config.engines.list[1].name, "h:443/base");
  EXPECT_EQ(config.engines.list[2].name, "six");
  EXPECT_EQ(config.engines.list[2].expect.worldSize, 4);
  EXPECT_EQ(config.engines.list[2].expect.pipelineStages, std::nullopt);
  EXPECT_EQ(config.engines.list[2].transport, TransportKind::kTcp);
}

TEST(Values, ReleasesNeedNoQuotes) {
  EXPECT_EQ(parsed("engines: {list: [{url: \"http://a:1\"}], profile: 0.30}").engines.profile,
            "0.30");
}

TEST(Values, MinHealthyIsACountOrAShare) {
  const auto minHealthy = [](const std::string& text) {
    return parsed("engines: {list: [{url: \"http://a:1\"}], min_healthy: " + text + "}")
        .engines.minHealthy;
  };
  EXPECT_EQ(minHealthy("\"80%\"").value, 80);
  EXPECT_TRUE(minHealthy("80%").percent);
  EXPECT_FALSE(minHealthy("1").percent);
}

TEST(Values, VariablesAreReplacedInAnyScalar) {
  const Config config = parsed(
      "job: run-${ID}\nengines: {list: [{url: \"http://${HOST}:${PORT}\"}]}\n"
      "transport: {port: \"${PORT}\"}\ntimeouts: {push: \"${N}m\"}\n"
      "push: {flush: \"${OFF}\"}\nranks: {interface: \"$${ID}\"}\n",
      {{"ID", "7"}, {"HOST", "h"}, {"PORT", "8000"}, {"N", "5"}, {"OFF", "false"}});
  EXPECT_EQ(config.job, "run-7");
  EXPECT_EQ(config.engines.list.at(0).url, "http://h:8000");
  EXPECT_EQ(config.transport.port, 8000);
  EXPECT_EQ(config.timeouts.push, std::chrono::minutes(5));
  EXPECT_FALSE(config.push.flush);
  EXPECT_EQ(config.ranks.interface, "${ID}");
}

TEST(Values, ByteOrderMarkAndCarriageReturnsAreHarmless) {
  EXPECT_EQ(parsed("\xEF\xBB\xBFjob: a\r\n" + kEngine).job, "a");
}

TEST(Scalars, FormatsAreTheShortestExactOnes) {
  EXPECT_EQ(formatDuration(Duration(0)), "0s");
  EXPECT_EQ(formatDuration(Duration(1500)), "1500ms");
  EXPECT_EQ(formatDuration(Duration(90'000)), "90s");
  EXPECT_EQ(formatDuration(Duration(7'200'000)), "2h");
  EXPECT_EQ(formatSize(1), "1B");
  EXPECT_EQ(formatSize(1536), "1536B");
  EXPECT_EQ(formatSize(std::uint64_t{3} << 29), "1536MiB");
  EXPECT_EQ(formatText("plain-word"), "plain-word");
  EXPECT_EQ(formatText("No"), "\"No\"");
  EXPECT_EQ(formatText("0.27"), "\"0.27\"");
}

}  // namespace
}  // namespace pushrod::config::test
