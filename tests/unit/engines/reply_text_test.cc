// SPDX-License-Identifier: Apache-2.0
#include "engines/vllm/reply_text.h"

#include <gtest/gtest.h>

#include "engines/vllm/profiles.h"

namespace pushrod::engines::vllm {
namespace {

TEST(ReplyTextTest, EveryShapeOfAnErrorBody) {
  struct Case {
    std::string body, text;
  };

  const std::vector<Case> cases = {
      {R"({"error":{"message":"boom","type":"InternalServerError","param":null,"code":500}})",
       "boom"},
      {R"({"error":{"message":"no","type":"server_error","param":null,"code":"x"}})", "no"},
      {R"({"error":"Failed to pause: text"})", "Failed to pause: text"},
      {R"({"error":"Unauthorized"})", "Unauthorized"},
      {R"({"detail":"Not Found"})", "Not Found"},
      {R"({"detail":[{"loc":["body"],"msg":"Field required"},{"msg":"again"}]})",
       "Field required; again"},
      {R"({"detail":{"a":1}})", R"({"a":1})"},
      {R"({"message":"plain"})", "plain"},
      {R"({"error":{"reason":"other"}})", R"({"error":{"reason":"other"}})"},
      {R"({"error":null})", R"({"error":null})"},
      {R"({"error":{"message":7}})", R"({"error":{"message":7}})"},
      {R"("a text")", R"("a text")"},
      {"<html>\n <body>Bad\tGateway</body></html>", "<html> <body>Bad Gateway</body></html>"},
      {"", "(empty body)"},
      {"  \r\n ", "(empty body)"},
      {"{\"error\":", "{\"error\":"},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(errorText(c.body), c.text) << c.body;
  }
}

TEST(ReplyTextTest, TextsAreBoundedAndClean) {
  const std::string text = errorText(std::string(1 << 21, 'x'));
  EXPECT_LE(text.size(), kMaxQuote);
  EXPECT_TRUE(text.ends_with("..."));
  EXPECT_LE(errorText("{\"error\":\"" + std::string(5000, 'y') + "\"}").size(), kMaxQuote);
  EXPECT_EQ(oneLine(std::string("a\0b\x1b[31m", 8)), "a?b?[31m");
  EXPECT_EQ(oneLine("\xff\xfe caf\xc3\xa9 \xe2\x82"), "?? caf\xc3\xa9 ??");
  EXPECT_EQ(quoted(" 8 "), "\"8\"");
}

TEST(ReplyTextTest, CutsOnlyBetweenCharacters) {
  std::string euros;
  for (int i = 0; i < 2000; ++i) {
    euros += "\xe2\x82\xac";
  }
  const std::string text = oneLine(euros);
  EXPECT_LE(text.size(), kMaxQuote);
  EXPECT_EQ((text.size() - 3) % 3, 0U);
}

TEST(ReplyTextTest, ExecutorTexts) {
  EXPECT_TRUE(isExecutorText(
      "Call to collective_rpc method failed: Worker failed with error 'x', please check the stack "
      "trace above for the root cause"));
  EXPECT_TRUE(isExecutorText("Call to collective_rpc method failed: cancelled"));
  EXPECT_TRUE(isExecutorText(
      "Call to compute_weight_checksums method failed: Worker failed with error 'y'"));
  EXPECT_FALSE(isExecutorText("Failed to pause generation: busy"));
  EXPECT_FALSE(isExecutorText("EngineCore encountered an issue. See stack trace"));
}

TEST(ReplyTextTest, RefusalsBelongToTheirCallAndProfile) {
  const auto choose = [](const char* release) {
    return chooseProfile(release, "auto", UnknownProfile::kRefuse)->features;
  };
  const EngineFeatures old = choose("0.22.1");
  const EngineFeatures now = choose("0.32.0");
  const std::string wrap = "Call to collective_rpc method failed: Worker failed with error '";
  const std::string active =
      wrap + "start_weight_update called while a weight update is already active.'";
  const std::string noSessionOld =
      wrap + "start_weight_update must be called before finish_weight_update.'";
  const std::string noSession =
      wrap + "finish_weight_update called without a matching start_weight_update.'";
  const std::string noStart = wrap + "start_weight_update must be called before update_weights.'";
  const std::string unconfigured =
      "Weight transfer not configured. Please set weight_transfer_config";
  const std::string release = wrap + "Cannot release a trainer connection during a weight update'";
  EXPECT_TRUE(isRefusal(CallKind::kStart, active, now));
  EXPECT_TRUE(isRefusal(CallKind::kStart, active, old));
  EXPECT_TRUE(
      isRefusal(CallKind::kUpdate,
                "Worker failed with error 'no shared memory segment for host a; offered: b'",
                now));
  EXPECT_FALSE(isRefusal(CallKind::kFinish, active, now)) << "a late reply, not a refusal";
  EXPECT_TRUE(isRefusal(CallKind::kFinish, noSessionOld, old));
  EXPECT_FALSE(isRefusal(CallKind::kFinish, noSessionOld, now));
  EXPECT_TRUE(isRefusal(CallKind::kFinish, noSession, now));
  EXPECT_FALSE(isRefusal(CallKind::kFinish, noSession, old));
  EXPECT_FALSE(isRefusal(CallKind::kStart, noSession, now));
  EXPECT_TRUE(isRefusal(CallKind::kUpdate, noStart, now));
  EXPECT_TRUE(isRefusal(CallKind::kUpdate, noStart, old));
  EXPECT_TRUE(isRefusal(CallKind::kShutdown, release, now));
  for (const CallKind kind : {CallKind::kInit,
                              CallKind::kStart,
                              CallKind::kUpdate,
                              CallKind::kFinish,
                              CallKind::kShutdown}) {
    EXPECT_TRUE(isRefusal(kind, unconfigured, now));
  }
  EXPECT_FALSE(isRefusal(CallKind::kPause, unconfigured, now));
  EXPECT_FALSE(isRefusal(CallKind::kUpdate, wrap + "CUDA out of memory'", now));
}

TEST(ReplyTextTest, SecretsAreHidden) {
  const std::vector<std::string> secrets = {"0123abcd", ""};
  EXPECT_EQ(redacted("a 0123abcd b 0123abcd", secrets), "a <hidden> b <hidden>");
  EXPECT_EQ(redacted("nothing", secrets), "nothing");
}

}  // namespace
}  // namespace pushrod::engines::vllm
