// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/key_table.h"
#include "tests/unit/config/config_test_support.h"

namespace pushrod::config::test {
namespace {

using ::testing::HasSubstr;

/// One member per key, as text, so that two configurations can be compared whole.
std::string valuesOf(const Config& config) {
  std::string text;
  for (const Key<Config>& key : configKeys()) {
    text += key.path + "=" + key.write(config, 0) + "\n";
  }
  return text;
}

class RoundTrip : public ::testing::TestWithParam<std::string> {};

TEST_P(RoundTrip, EffectiveTextParsesBackToTheSameValues) {
  const auto first =
      parseConfig(GetParam(), "f.yaml", fakeEnvironment({{"ODD", "a${B}\"\\ $${C} ü"}}));
  ASSERT_TRUE(first.ok()) << first.status().message();
  const std::string text = first->effective();
  const auto second = parseConfig(text, "effective", fakeEnvironment());
  ASSERT_TRUE(second.ok()) << second.status().message() << "\n" << text;
  EXPECT_EQ(valuesOf(*first), valuesOf(*second));
  EXPECT_EQ(second->effective(), text);
}

INSTANTIATE_TEST_SUITE_P(
    Configurations,
    RoundTrip,
    ::testing::Values(
        kEngine,
        kEngine + "config_version: 1\njob: qwen3-rl\n",
        kEngine + "ranks: {store: \"tcp://[::1]:29501\", interface: eth0}\n",
        kEngine + "ranks: {store: \"file:///var/tmp/store with space\"}\n",
        kEngine + "ranks: {store: \"redis://r.example:6379\"}\n",
        kEngine + "transport: {kind: tcp, buffer: 3B, buffers: 7, packed: true, bind: \"::1\", "
                  "port: 99}\n",
        kEngine + "transport: {kind: ipc, buffer: 1536KiB, keep_buffers: false, packed: false}\n",
        kEngine + "transport: {kind: shm, owners: true, load_plan: true, digest: false}\n",
        kEngine + "transport: {group: per_engine, rendezvous: tcp_store, library: /opt/x "
                  "y/libnccl.so.2}\n",
        kEngine + "push: {dtypes: {default: float32, overrides: {\"*.b\\\"ias\": int8, \"a?${X}\": "
                  "bool}}}\n",
        kEngine + "push: {pause: abort, stop: pass, verify: none, verify_every: 3, wave: 4}\n",
        kEngine +
            "push: {partial: true, check_replicas: digest, version_marker: never, resend: false}\n",
        kEngine + "timeouts: {push: 10s}\n",
        kEngine + "timeouts: {request: 3h}\n",
        kEngine + "timeouts: {push: 90m, connect: 1500ms, gather: 61s, shutdown: 1ms}\n",
        kEngine + "metrics: {listen: \"\", ranks: all, linger: 5m}\n",
        kEngine +
            "metrics: {listen: \"[::]:0\"}\nlog: {level: debug, format: json, ranks: first}\n",
        std::string("engines: {file: \"${ODD}\"}\n"),
        std::string("engines: {file: \"yes\"}\n"),
        std::string(
            "engines:\n  list:\n    - url: https://h/base/\n      name: \"12\"\n      transport: "
            "tcp\n"
            "      expect: {model: \"Qwen/Qwen3-1.7B\", world_size: 4, pipeline_stages: 2}\n"
            "      dp_group: g\n    - url: \"http://[fe80::1%eth0]:8000\"\n"
            "  profile: 0.30\n  unknown_profile: refuse\n  token_env: TOKEN\n"
            "  tls: {ca: ca.pem, cert: c, key: k, verify: false}\n  proxy: \"http://p:3128/\"\n"
            "  on_loss: quarantine\n  min_healthy: 80%\n  wake: weights\n")));

TEST(Effective, NamesEveryKeyWithItsDefault) {
  const auto config = Config::parse(kEngine, "f.yaml");
  ASSERT_TRUE(config.ok());
  const std::string text = config->effective();
  EXPECT_THAT(text, HasSubstr("config_version: 1\njob: pushrod\n"));
  EXPECT_THAT(text, HasSubstr("  list:\n    - url: \"http://a:1\"\n      name: \"a:1\"\n"));
  EXPECT_THAT(text, HasSubstr("transport:\n  kind: nccl\n  buffer: 1GiB\n  buffers: 2\n"));
  EXPECT_THAT(
      text, HasSubstr("  push: 2h\n  connect: 1m\n  startup: 10m\n  init: 10m\n  request: 30m\n"));
  EXPECT_THAT(text, HasSubstr("  listen: \"127.0.0.1:9464\"\n  ranks: first\n  linger: 0s\n"));
}

TEST(Effective, ShowsTheCappedLimit) {
  const auto config = Config::parse(kEngine + "timeouts: {push: 20s}\n", "f.yaml");
  ASSERT_TRUE(config.ok());
  EXPECT_EQ(config->timeouts.request, std::chrono::seconds(20));
  EXPECT_EQ(config->timeouts.agreement, std::chrono::seconds(20));
  EXPECT_EQ(config->timeouts.shutdown, std::chrono::seconds(20));
  EXPECT_THAT(config->effective(), HasSubstr("  request: 20s\n"));
}

}  // namespace
}  // namespace pushrod::config::test
