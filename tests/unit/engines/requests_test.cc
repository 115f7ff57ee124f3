// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/unit/engines/client_rig.h"

namespace pushrod::engines::vllm {
namespace {

using std::chrono::seconds;

SeenRequest only(ClientRig& rig, Call call) {
  rig.server().seen.clear();
  EXPECT_TRUE(rig.run(std::move(call)).status.ok());
  EXPECT_EQ(rig.server().seen.size(), 1U);
  return rig.server().seen.empty() ? SeenRequest{} : rig.server().seen.front();
}

TEST(RequestsTest, LinesAndBodies) {
  ClientRig rig;
  rig.identify();
  EXPECT_EQ(only(rig, callOf(CallKind::kReadPaused)).line, "GET /is_paused");
  EXPECT_EQ(only(rig, callOf(CallKind::kReadVersion)).line, "GET /weight_info");
  EXPECT_EQ(only(rig, callOf(CallKind::kResume)).line, "POST /resume");
  EXPECT_EQ(only(rig, callOf(CallKind::kShutdown)).line, "POST /shutdown_weight_transfer_engine");
  const SeenRequest start = only(rig, callOf(CallKind::kStart));
  EXPECT_EQ(start.line, "POST /start_weight_update");
  EXPECT_EQ(start.body, "{}");
  Call draft = callOf(CallKind::kStart);
  draft.draft = true;
  const SeenRequest draftStart = only(rig, draft);
  EXPECT_EQ(draftStart.line, "POST /start_draft_weight_update");
  EXPECT_EQ(draftStart.body, "{}");
  EXPECT_EQ(only(rig, callOf(CallKind::kFinish)).body, "{}");
  EXPECT_EQ(only(rig, finishWithVersion("a\"b")).body, R"({"weight_version":"a\"b"})");
  EXPECT_EQ(only(rig, finishWithVersion("")).body, R"({"weight_version":""})");
  Call init = callOf(CallKind::kInit);
  init.body = std::make_shared<const std::string>(R"({"protocol":1})");
  const SeenRequest initSeen = only(rig, init);
  EXPECT_EQ(initSeen.line, "POST /init_weight_transfer_engine");
  EXPECT_EQ(initSeen.body, R"({"init_info":{"protocol":1}})");
  Call update = callOf(CallKind::kUpdate);
  update.body = std::make_shared<const std::string>(R"({"names":[]})");
  EXPECT_EQ(only(rig, update).body, R"({"update_info":{"names":[]}})");
  Call version = callOf(CallKind::kSetVersion);
  version.version = "pushrod-job-1";
  const SeenRequest set = only(rig, version);
  EXPECT_EQ(set.line, "POST /update_weight_version");
  EXPECT_EQ(set.body, R"({"new_version":"pushrod-job-1"})");
}

TEST(RequestsTest, PauseFollowsTheConfiguration) {
  const auto line = [](PauseMode mode, bool clear) {
    ClientRig rig;
    rig.options.push.pause = mode;
    rig.options.push.clearCache = clear;
    rig.identify();
    return only(rig, callOf(CallKind::kPause)).line;
  };
  EXPECT_EQ(line(PauseMode::kKeep, true), "POST /pause?mode=keep&clear_cache=true");
  EXPECT_EQ(line(PauseMode::kWait, false), "POST /pause?mode=wait&clear_cache=false");
  EXPECT_EQ(line(PauseMode::kAbort, true), "POST /pause?mode=abort&clear_cache=true");
}

TEST(RequestsTest, WakingNamesWhatIsWoken) {
  ClientRig rig;
  rig.identify();
  rig.on("/wake_up", {ScriptedReply::json(200, R"({"status":"sleeping","tags":["weights"]})")});
  Call wake = callOf(CallKind::kWake);
  wake.tag = "weights";
  EXPECT_EQ(only(rig, wake).line, "POST /wake_up?tags=weights");
  rig.on("/wake_up", {ScriptedReply::json(200, "<html>")});
  EXPECT_EQ(rig.run(wake).status.outcome(), Outcome::kUnknown);
}

TEST(RequestsTest, FlushResetsEveryCacheThereIs) {
  ClientRig rig;
  rig.identify();
  EXPECT_TRUE(rig.run(CallKind::kFlush).status.ok());
  EXPECT_EQ(rig.server().lines(),
            (std::vector<std::string>{
                "POST /reset_prefix_cache", "POST /reset_mm_cache", "POST /reset_encoder_cache"}));
  rig.on("/reset_mm_cache", ScriptedReply::json(404, ""));
  rig.on("/reset_encoder_cache", ScriptedReply::json(405, ""));
  EXPECT_TRUE(rig.run(CallKind::kFlush).status.ok());
  rig.on("/reset_encoder_cache", ScriptedReply::json(500, R"({"error":"stuck"})"));
  const Reply failed = rig.run(CallKind::kFlush);
  EXPECT_EQ(failed.status.code(), Code::kUnavailable);
  EXPECT_NE(failed.status.message().find("reset_encoder_cache"), std::string::npos);
  rig.on("/reset_prefix_cache", ScriptedReply::json(200, R"({"success":false})"));
  EXPECT_EQ(rig.run(CallKind::kFlush).status.code(), Code::kFailedPrecondition);
}

TEST(RequestsTest, FlushOfTheExternalCacheIsAskedFor) {
  ClientRig rig;
  rig.options.push.flushExternal = true;
  rig.serverInfo = R"({"vllm_config":{"weight_transfer_config":{"backend":"pushrod_tcp"},)"
                   R"("kv_transfer_config":{}}})";
  rig.identify();
  EXPECT_TRUE(rig.run(CallKind::kFlush).status.ok());
  EXPECT_EQ(rig.server().seen.front().line, "POST /reset_prefix_cache?reset_external=true");
  EXPECT_TRUE(rig.log.texts.empty());
}

TEST(RequestsTest, NoExternalCacheIsAskedForWhereThereIsNone) {
  ClientRig rig;
  rig.options.push.flushExternal = true;
  rig.identify();
  EXPECT_TRUE(rig.run(CallKind::kFlush).status.ok());
  EXPECT_EQ(rig.server().seen.front().line, "POST /reset_prefix_cache");
}

TEST(RequestsTest, ChecksumsAreAskedForAndHandedOn) {
  ClientRig rig;
  rig.identify();
  const std::string sums = R"({"checksums":{"dp0:pp0:pcp0:tp0:w":"ab"}})";
  rig.on("/weight_checker", {ScriptedReply::json(200, sums), ScriptedReply::json(200, "{}")});
  const Reply reply = rig.run(CallKind::kChecksums);
  EXPECT_TRUE(reply.status.ok());
  EXPECT_EQ(reply.text, sums);
  EXPECT_FALSE(rig.run(CallKind::kChecksums).status.ok());
}

TEST(RequestsTest, WhatIsSafeIsRepeated) {
  const std::vector<ScriptedReply> trouble = {
      ScriptedReply::reset(), ScriptedReply::json(503, ""), ScriptedReply::json(429, "")};

  struct Case {
    CallKind kind;
    const char* path;
    const char* good;
  };

  for (const Case& c :
       {Case{CallKind::kReadPaused, "/is_paused", R"({"is_paused":true})"},
        Case{CallKind::kReadVersion, "/weight_info", R"({"weight_version":"8"})"},
        Case{CallKind::kPause, "/pause", R"({"status":"paused"})"},
        Case{CallKind::kFlush, "/reset_prefix_cache", R"({"success":true})"},
        Case{CallKind::kFinish, "/finish_weight_update", R"({"message":"done"})"}}) {
    ClientRig rig;
    rig.identify();
    std::vector<ScriptedReply> replies = trouble;
    replies.push_back(ScriptedReply::json(200, c.good));
    rig.on(c.path, replies);
    EXPECT_TRUE(rig.run(c.kind).status.ok()) << c.path;
    // One more failure than repeats.
    replies = trouble;
    replies.push_back(ScriptedReply::reset());
    rig.on(c.path, replies);
    EXPECT_EQ(rig.run(c.kind).status.code(), Code::kUnavailable) << c.path;
  }
}

TEST(RequestsTest, RepeatsEndAtTheDeadline) {
  ClientRig rig;
  rig.identify();
  rig.on("/pause", ScriptedReply::refused());
  const TimePoint started = rig.executor.now();
  EXPECT_EQ(rig.run(CallKind::kPause, Duration(300)).status.code(), Code::kUnavailable);
  EXPECT_LE(rig.executor.now() - started, Duration(300));
  EXPECT_EQ(rig.server().count("POST /pause?mode=keep&clear_cache=true"), 2);
}

TEST(RequestsTest, WhatMayHaveActedIsNotRepeated) {
  for (const CallKind kind : {CallKind::kResume,
                              CallKind::kInit,
                              CallKind::kStart,
                              CallKind::kUpdate,
                              CallKind::kShutdown,
                              CallKind::kSetVersion}) {
    ClientRig rig;
    rig.identify();
    rig.on("/" + std::string(callName(kind)), ScriptedReply::reset());
    const Reply reply = rig.run(kind);
    EXPECT_EQ(reply.status.code(), Code::kUnavailable);
    EXPECT_EQ(reply.status.outcome(), Outcome::kUnknown);
    EXPECT_EQ(rig.server().seen.size(), 1U) << callName(kind);
  }
  ClientRig versioned;
  versioned.identify();
  versioned.on("/finish_weight_update", ScriptedReply::reset());
  EXPECT_FALSE(versioned.run(finishWithVersion("8")).status.ok());
  EXPECT_EQ(versioned.server().seen.size(), 1U);
  ClientRig several("0.32.0", 2);
  several.connect();
  several.on("/finish_weight_update", ScriptedReply::reset());
  EXPECT_FALSE(several.run(CallKind::kFinish).status.ok());
  EXPECT_EQ(several.server().count("POST /finish_weight_update"), 1);
}

TEST(RequestsTest, ACloseWhoseFirstAnswerWasLostSucceeds) {
  ClientRig rig;
  rig.identify();
  rig.on("/finish_weight_update",
         std::vector<ScriptedReply>{
             ScriptedReply::reset(),
             workerError("finish_weight_update called without a matching start_weight_update.")});
  EXPECT_TRUE(rig.run(CallKind::kFinish).status.ok());
}

TEST(RequestsTest, OnlyTheExactVersionTextIsAVersion) {
  ClientRig rig;
  rig.identify();
  for (const char* body : {R"({"weight_version":null})",
                           R"({})",
                           R"({"weight_version":8})",
                           R"(["8"])",
                           "",
                           "<html></html>"}) {
    rig.on("/weight_info", ScriptedReply::json(200, body));
    rig.server().seen.clear();
    const Reply reply = rig.run(CallKind::kReadVersion);
    EXPECT_EQ(reply.status.code(), Code::kUnavailable) << body;
    EXPECT_NE(reply.status.message().find(*body == '\0' ? "an empty body" : body),
              std::string::npos)
        << reply.status.message();
    EXPECT_EQ(rig.server().seen.size(), 1U) << "an odd answer is an answer";
  }
  for (const char* text : {"default", " 8", "/models/a", ""}) {
    rig.on("/weight_info",
           ScriptedReply::json(200, R"({"weight_version":")" + std::string(text) + R"("})"));
    const Reply reply = rig.run(CallKind::kReadVersion);
    EXPECT_TRUE(reply.status.ok());
    EXPECT_EQ(reply.text, text);
  }
  rig.on("/weight_info", ScriptedReply::json(404, R"({"detail":"Not Found"})"));
  const Reply missing = rig.run(CallKind::kReadVersion);
  EXPECT_EQ(missing.status.code(), Code::kFailedPrecondition);
  EXPECT_EQ(missing.status.outcome(), Outcome::kRejected);
  rig.on("/weight_info", ScriptedReply::refused());
  EXPECT_EQ(rig.run(CallKind::kReadVersion).status.code(), Code::kUnavailable);
}

TEST(RequestsTest, CancelEndsTheCallOnceAndSoon) {
  for (const CallKind kind :
       {CallKind::kIdentify, CallKind::kUpdate, CallKind::kReadSession, CallKind::kPause}) {
    ClientRig rig;
    rig.identify();
    for (const char* path : {"/version", "/update_weights", "/collective_rpc", "/pause"}) {
      rig.on(path, ScriptedReply::silence());
    }
    rig.begin(callOf(kind));
    rig.executor.runFor(seconds(3));
    EXPECT_FALSE(rig.reply.has_value());
    const int before = rig.fired;
    rig.client().cancel(Status(Code::kCancelled, "the push was cancelled"));
    rig.client().cancel(Status(Code::kAborted, "again"));
    EXPECT_EQ(rig.fired, before) << "never inline";
    const TimePoint cancelled = rig.executor.now();
    EXPECT_TRUE(rig.executor.run());
    ASSERT_EQ(rig.fired, before + 1);
    EXPECT_EQ(rig.executor.now(), cancelled);
    EXPECT_EQ(rig.reply->kind, kind);
    EXPECT_EQ(rig.reply->status.code(), Code::kCancelled);
    EXPECT_EQ(rig.reply->status.outcome(), Outcome::kUnknown);
    EXPECT_EQ(rig.reply->status.message(), "the push was cancelled");
    rig.client().cancel(Status(Code::kCancelled, "nothing is out"));
    EXPECT_TRUE(rig.executor.run());
    EXPECT_EQ(rig.fired, before + 1);
  }
}

TEST(RequestsTest, CancelBetweenTwoTriesSentNothing) {
  ClientRig rig;
  rig.on("/version", ScriptedReply::refused());
  rig.begin(callOf(CallKind::kIdentify));
  rig.executor.runFor(Duration(50));
  rig.client().cancel(Status(Code::kCancelled, "stop"));
  EXPECT_TRUE(rig.executor.run());
  ASSERT_TRUE(rig.reply.has_value());
  EXPECT_EQ(rig.reply->status.outcome(), Outcome::kNotSent);
}

TEST(RequestsTest, ACallAfterACancelledOneGetsItsOwnAnswer) {
  ClientRig rig;
  rig.identify();
  // The cancelled request ends while the next one is out.
  rig.server().cancelTakes = Duration(50);
  rig.on("/weight_info",
         ScriptedReply::json(200, R"({"weight_version":"default"})", Duration(100)));
  rig.on("/update_weights",
         ScriptedReply::json(200, R"({"message":"Weights updated"})", seconds(1)));
  rig.begin(callOf(CallKind::kUpdate));
  rig.executor.runFor(Duration(10));
  rig.client().cancel(Status(Code::kCancelled, "stop"));
  while (!rig.reply) {
    ASSERT_TRUE(rig.executor.step());
  }
  const Reply next = rig.run(CallKind::kReadVersion);
  EXPECT_TRUE(next.status.ok());
  EXPECT_EQ(next.text, "default");
}

TEST(RequestsTest, ADeadlineThatPassedSendsNothing) {
  ClientRig rig;
  rig.identify();
  for (const CallKind kind : {CallKind::kStart, CallKind::kIdentify, CallKind::kReadSession}) {
    const Reply reply = rig.run(kind, Duration(0));
    EXPECT_EQ(reply.status.code(), Code::kDeadlineExceeded);
    EXPECT_EQ(reply.status.outcome(), Outcome::kNotSent);
  }
  EXPECT_TRUE(rig.server().seen.empty());
}

TEST(RequestsTest, DestroyingTheClientDropsTheCall) {
  ClientRig rig;
  rig.identify();
  rig.on("/update_weights", ScriptedReply::silence());
  const int before = rig.fired;
  rig.begin(callOf(CallKind::kUpdate), seconds(600));
  rig.executor.runFor(seconds(3));
  rig.dropClient();
  EXPECT_TRUE(rig.executor.run());
  EXPECT_EQ(rig.fired, before);
}

TEST(RequestsTest, ChannelSecretsDoNotComeBackInErrors) {
  ClientRig rig;
  rig.identify();
  Call init = callOf(CallKind::kInit);
  init.body = std::make_shared<const std::string>(
      R"({"channel":"00112233445566778899aabbccddeeff","nccl_unique_id_b64":"SECRETID="})");
  rig.on("/init_weight_transfer_engine",
         workerError("bad channel 00112233445566778899aabbccddeeff, id SECRETID="));
  const Reply reply = rig.run(init);
  EXPECT_EQ(reply.status.message().find("00112233445566778899aabbccddeeff"), std::string::npos);
  EXPECT_EQ(reply.status.message().find("SECRETID"), std::string::npos);
  EXPECT_NE(reply.status.message().find("bad channel <hidden>"), std::string::npos);
}

TEST(RequestsTest, EveryRequestIsCountedByRouteAndResult) {
  using metrics::RequestResult;
  ClientRig rig;
  rig.identify();
  for (const char* label :
       {"version", "weight_info", "is_sleeping", "get_world_size", "models", "server_info"}) {
    EXPECT_EQ(rig.counted[label], std::vector{RequestResult::kOk}) << label;
  }
  rig.counted.clear();
  rig.on("/start_weight_update",
         std::vector<ScriptedReply>{ScriptedReply::json(400, ""),
                                    ScriptedReply::json(500, ""),
                                    ScriptedReply::json(301, ""),
                                    ScriptedReply::silence(),
                                    ScriptedReply::refused()});
  for (int i = 0; i < 5; ++i) {
    EXPECT_FALSE(rig.run(CallKind::kStart, seconds(1)).status.ok());
  }
  EXPECT_EQ(rig.counted["start_weight_update"],
            (std::vector{RequestResult::kRejected,
                         RequestResult::kError,
                         RequestResult::kError,
                         RequestResult::kTimeout,
                         RequestResult::kUnreachable}));
}

}  // namespace
}  // namespace pushrod::engines::vllm
