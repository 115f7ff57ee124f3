// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "engines/vllm/identity.h"
#include "tests/unit/engines/client_rig.h"

namespace pushrod::engines::vllm {
namespace {

using std::chrono::seconds;

bool has(const Status& status, const std::string& text) {
  return status.message().find(text) != std::string::npos;
}

TEST(IdentifyTest, EveryProfile) {
  struct Case {
    const char* version;
    const char* profile;
    bool asksVersion;
  };

  for (const Case& c : {Case{"0.22.1", "0.22", false},
                        Case{"0.24.0", "0.23", false},
                        Case{"0.25.1", "0.25", false},
                        Case{"0.26.0", "0.26", false},
                        Case{"0.27.1", "0.27", true},
                        Case{"0.28.0", "0.28", true},
                        Case{"0.30.0", "0.30", true},
                        Case{"0.32.0+cpu", "0.32", true},
                        Case{"0.33.0", "0.33", true},
                        Case{"0.34.0.dev7+gabc", "0.33", true}}) {
    ClientRig rig(c.version);
    const Reply reply = rig.run(CallKind::kIdentify);
    ASSERT_TRUE(reply.status.ok()) << c.version << ": " << reply.status.message();
    ASSERT_NE(reply.identity, nullptr);
    EXPECT_EQ(reply.identity->release, c.version);
    EXPECT_EQ(reply.identity->features.profile, c.profile);
    EXPECT_EQ(reply.identity->worldSize, 1);
    EXPECT_EQ(reply.identity->model, "m");
    EXPECT_EQ(reply.identity->backend, "pushrod_tcp");
    EXPECT_EQ(reply.identity->dtype, "bfloat16");
    EXPECT_EQ(reply.identity->executor, "mp");
    EXPECT_EQ(reply.identity->pipelineStages, 1);
    EXPECT_EQ(reply.identity->dataParallel, 1);
    EXPECT_FALSE(reply.identity->asleep);
    EXPECT_EQ(rig.server().count("GET /weight_info"), c.asksVersion ? 1 : 0) << c.version;
    for (const SeenRequest& request : rig.server().seen) {
      EXPECT_TRUE(request.line.starts_with("GET ")) << request.line << " may change something";
    }
    EXPECT_EQ(rig.log.texts.size(), std::string(c.version).starts_with("0.34") ? 1U : 0U);
  }
}

TEST(IdentifyTest, OptionalRoutesMayBeMissing) {
  ClientRig rig;
  for (const char* path : {"/v1/models", "/server_info"}) {
    rig.on(path, ScriptedReply::json(404, R"({"detail":"Not Found"})"));
  }
  const Reply reply = rig.run(CallKind::kIdentify);
  ASSERT_TRUE(reply.status.ok()) << reply.status.message();
  EXPECT_EQ(reply.identity->model, "");
  EXPECT_EQ(reply.identity->backend, "");
  EXPECT_EQ(reply.identity->pipelineStages, 0);
  EXPECT_EQ(reply.identity->dataParallel, 1);
}

TEST(IdentifyTest, ASilentServerInfoIsNotWaitedForLong) {
  ClientRig rig;
  rig.on("/server_info", ScriptedReply::silence());
  const Reply reply = rig.run(CallKind::kIdentify, seconds(600));
  EXPECT_TRUE(reply.status.ok()) << reply.status.message();
  EXPECT_LE(rig.executor.elapsed(), seconds(31));
}

TEST(IdentifyTest, ASlowFirstServerInfoIsWaitedFor) {
  ClientRig rig;
  ScriptedReply slow = ScriptedReply::json(
      200, R"({"vllm_config":{"weight_transfer_config":{"backend":"pushrod_tcp"}}})", seconds(20));
  rig.on("/server_info", slow);
  const Reply reply = rig.run(CallKind::kIdentify);
  ASSERT_TRUE(reply.status.ok()) << reply.status.message();
  EXPECT_EQ(reply.identity->backend, "pushrod_tcp");
}

TEST(IdentifyTest, DevModeOff) {
  ClientRig rig("0.32.0");
  rig.on("/weight_info", ScriptedReply::json(404, R"({"detail":"Not Found"})"));
  rig.on("/is_sleeping", ScriptedReply::json(404, R"({"detail":"Not Found"})"));
  const Reply reply = rig.run(CallKind::kIdentify);
  EXPECT_EQ(reply.status.code(), Code::kFailedPrecondition);
  EXPECT_EQ(reply.status.outcome(), Outcome::kRejected);
  EXPECT_TRUE(has(reply.status, "VLLM_SERVER_DEV_MODE=1")) << reply.status.message();
  EXPECT_TRUE(has(reply.status, "http://fe-b:8000"));
  EXPECT_EQ(reply.status.origin().engine, "fe-b");
}

TEST(IdentifyTest, OlderThanItSays) {
  ClientRig rig("0.32.0");
  rig.on("/weight_info", ScriptedReply::json(404, R"({"detail":"Not Found"})"));
  const Reply reply = rig.run(CallKind::kIdentify);
  EXPECT_EQ(reply.status.code(), Code::kFailedPrecondition);
  EXPECT_TRUE(has(reply.status, "engines.profile")) << reply.status.message();
}

TEST(IdentifyTest, AWeightInfoThatFailsIsStillARoute) {
  ClientRig rig("0.32.0");
  rig.on("/weight_info",
         ScriptedReply::json(500, R"({"error":"Engines returned different results"})"));
  EXPECT_TRUE(rig.run(CallKind::kIdentify).status.ok());
}

TEST(IdentifyTest, NoVllmServerAtAll) {
  ClientRig missing;
  missing.on("/version", ScriptedReply::json(404, "nothing"));
  EXPECT_TRUE(has(missing.run(CallKind::kIdentify).status, "no vLLM server"));
  ClientRig page;
  page.on("/version", ScriptedReply::json(200, "<html>hello</html>"));
  const Reply reply = page.run(CallKind::kIdentify);
  EXPECT_EQ(reply.status.code(), Code::kUnavailable);
  EXPECT_TRUE(has(reply.status, "<html>hello</html>"));
  ClientRig locked;
  locked.on("/version", ScriptedReply::json(401, R"({"error":"Unauthorized"})"));
  EXPECT_TRUE(has(locked.run(CallKind::kIdentify).status, "engines.token_env"));
}

TEST(IdentifyTest, UnknownReleaseRefusedWhenConfigured) {
  ClientRig rig("0.40.0");
  rig.options.common.unknownProfile = UnknownProfile::kRefuse;
  EXPECT_EQ(rig.run(CallKind::kIdentify).status.code(), Code::kFailedPrecondition);
  ClientRig pinned("0.40.0");
  pinned.options.common.unknownProfile = UnknownProfile::kRefuse;
  pinned.options.common.profile = "0.30";
  const Reply reply = pinned.run(CallKind::kIdentify);
  ASSERT_TRUE(reply.status.ok());
  EXPECT_EQ(reply.identity->features.profile, "0.30");
}

TEST(IdentifyTest, WaitsForASlowStart) {
  for (const bool refused : {false, true}) {
    ClientRig rig;
    const ScriptedReply notYet =
        refused ? ScriptedReply::refused() : ScriptedReply::json(503, "starting");
    std::vector<ScriptedReply> replies(14, notYet);
    replies.push_back(ScriptedReply::json(200, R"({"version":"0.32.0"})"));
    rig.on("/version", replies);
    const Reply reply = rig.run(CallKind::kIdentify, seconds(20));
    EXPECT_TRUE(reply.status.ok()) << reply.status.message();
    EXPECT_GE(rig.executor.elapsed(), seconds(8));
    EXPECT_LE(rig.executor.elapsed(), seconds(20));
    // Said once, so that nobody wonders what is waited for.
    ASSERT_EQ(rig.log.texts.size(), 1U);
    EXPECT_NE(rig.log.texts[0].find("not ready yet"), std::string::npos);
  }
}

TEST(IdentifyTest, ASlowStartEndsAtTheLimitSayingWhatWasAnswered) {
  ClientRig rig;
  rig.on("/version", ScriptedReply::json(503, R"({"error":"compiling"})"));
  const Reply reply = rig.run(CallKind::kIdentify, seconds(5));
  EXPECT_EQ(reply.status.code(), Code::kDeadlineExceeded);
  EXPECT_TRUE(has(reply.status, "not ready")) << reply.status.message();
  EXPECT_TRUE(has(reply.status, "compiling"));
  EXPECT_TRUE(has(reply.status, "503"));
  EXPECT_EQ(rig.executor.elapsed(), seconds(5));
}

TEST(IdentifyTest, ARouteThatStartsLaterIsWaitedForToo) {
  ClientRig rig;
  rig.on("/is_sleeping",
         std::vector<ScriptedReply>{ScriptedReply::json(503, ""),
                                    ScriptedReply::reset(),
                                    ScriptedReply::json(200, R"({"is_sleeping":false})")});
  rig.on("/weight_info",
         std::vector<ScriptedReply>{ScriptedReply::refused(),
                                    ScriptedReply::json(200, R"({"weight_version":"1"})")});
  EXPECT_TRUE(rig.run(CallKind::kIdentify).status.ok());
}

TEST(IdentifyTest, ASilentServerEndsAtTheAnswerLimit) {
  ClientRig rig;
  rig.options.answer = seconds(3);
  rig.on("/version", ScriptedReply::silence());
  const Reply reply = rig.run(CallKind::kIdentify, seconds(600));
  EXPECT_EQ(reply.status.code(), Code::kDeadlineExceeded);
  EXPECT_LE(rig.executor.elapsed(), seconds(4));
  EXPECT_TRUE(has(reply.status, "/version"));
}

TEST(IdentifyTest, BackendMustFitTheTransport) {
  struct Case {
    TransportKind transport;
    const char* backend;
    bool fits;
  };

  for (const Case& c : {Case{TransportKind::kTcp, "pushrod_tcp", true},
                        Case{TransportKind::kTcp, "nccl", false},
                        Case{TransportKind::kShm, "pushrod_shm", true},
                        Case{TransportKind::kShm, "ipc", false},
                        Case{TransportKind::kIpc, "ipc", true},
                        Case{TransportKind::kIpc, "nccl", false},
                        Case{TransportKind::kNccl, "nccl", true},
                        Case{TransportKind::kNccl, "pushrod_nccl", true},
                        Case{TransportKind::kNccl, "pushrod_tcp", false}}) {
    ClientRig rig;
    rig.options.transport = c.transport;
    rig.backend = c.backend;
    const Reply reply = rig.run(CallKind::kIdentify);
    EXPECT_EQ(reply.status.ok(), c.fits) << c.backend;
    if (!c.fits) {
      EXPECT_EQ(reply.status.code(), Code::kFailedPrecondition);
      EXPECT_TRUE(has(reply.status, "--weight-transfer-config")) << reply.status.message();
      EXPECT_TRUE(has(reply.status, c.backend));
      // Our own backends are not vLLM's: the server needs the plug-in.
      const bool ours = c.transport == TransportKind::kTcp || c.transport == TransportKind::kShm;
      EXPECT_EQ(has(reply.status, "the package pushrod"), ours) << reply.status.message();
    }
  }
  ClientRig none;
  none.serverInfo = R"({"vllm_config":{"weight_transfer_config":null}})";
  EXPECT_TRUE(has(none.run(CallKind::kIdentify).status, "no weight transfer backend"));
}

TEST(IdentifyTest, ExpectationsAreCompared) {
  const auto failing = [](const std::function<void(ClientRig&)>& change) {
    ClientRig rig("0.32.0", 2);
    change(rig);
    return rig.run(CallKind::kIdentify).status;
  };
  EXPECT_TRUE(failing([](ClientRig& rig) { rig.options.engine.expect = {"alias", 2, 1}; }).ok());
  EXPECT_TRUE(has(failing([](ClientRig& rig) { rig.options.engine.expect.model = "other"; }),
                  "expect.model"));
  EXPECT_TRUE(has(failing([](ClientRig& rig) { rig.options.engine.expect.worldSize = 4; }),
                  "expect.world_size is 4"));
  EXPECT_TRUE(has(failing([](ClientRig& rig) { rig.options.engine.expect.pipelineStages = 2; }),
                  "expect.pipeline_stages"));
  EXPECT_TRUE(has(failing([](ClientRig& rig) {
                    rig.options.engine.expect.model = "m";
                    rig.on("/v1/models", ScriptedReply::json(401, R"({"error":"Unauthorized"})"));
                  }),
                  "does not tell its model"));
}

TEST(IdentifyTest, SleepNeedsTheMetricToSaySo) {
  const std::string head = "# TYPE vllm:engine_sleep_state gauge\nvllm:other 1\n";
  const auto asleep = [&](bool sleeping, const std::string& page) {
    ClientRig rig;
    rig.sleeping = sleeping;
    rig.on("/metrics", ScriptedReply::json(200, head + page));
    return rig.run(CallKind::kIdentify).identity->asleep;
  };
  const std::string awake =
      "vllm:engine_sleep_state{engine=\"0\",sleep_state=\"awake\"} 1.0\n"
      "vllm:engine_sleep_state{engine=\"0\",sleep_state=\"weights_offloaded\"} 0.0\n";
  const std::string offloaded =
      "vllm:engine_sleep_state{engine=\"0\",sleep_state=\"awake\"} 0.0\n"
      "vllm:engine_sleep_state{engine=\"0\",sleep_state=\"weights_offloaded\"} 1.0\n";
  EXPECT_FALSE(asleep(true, awake)) << "merely paused";
  EXPECT_TRUE(asleep(true, offloaded));
  EXPECT_FALSE(asleep(true, "")) << "absent means awake";
  ClientRig rig;
  rig.sleeping = true;
  rig.on("/metrics", ScriptedReply::json(404, ""));
  EXPECT_FALSE(rig.run(CallKind::kIdentify).identity->asleep)
      << "/is_sleeping alone proves nothing";
  EXPECT_TRUE(asleep(false, offloaded)) << "woken in part";
  EXPECT_TRUE(readAsleep("vllm:engine_sleep_state{sleep_state=\"discard_all\",engine=\"1\"} 1"));
  EXPECT_FALSE(readAsleep("vllm:engine_sleep_state{sleep_state=\"discard_all\"} x\n"));
  EXPECT_FALSE(readAsleep("vllm:engine_sleep_state{engine=\"0\"} 0\nvllm:engine_sleep_state{"));
  EXPECT_TRUE(readAsleep("vllm:engine_sleep_state{old_sleep_state=\"x\",sleep_state=\"awake\"} 0"));
}

TEST(IdentifyTest, DataParallelCoresAreCounted) {
  ClientRig rig("0.32.0", 4);
  rig.coreSize = 2;
  const Reply reply = rig.run(CallKind::kIdentify);
  ASSERT_TRUE(reply.status.ok());
  EXPECT_EQ(reply.identity->worldSize, 4);
  EXPECT_EQ(reply.identity->dataParallel, 2);
}

TEST(IdentifyTest, OddWorldSizesAreFailedReads) {
  for (const char* body : {R"({"world_size":0})", R"({"world_size":"2"})", "{}", "", "[]"}) {
    ClientRig rig;
    rig.on("/get_world_size", ScriptedReply::json(200, body));
    EXPECT_EQ(rig.run(CallKind::kIdentify).status.code(), Code::kUnavailable) << body;
  }
}

TEST(IdentifyTest, AnExternalCacheIsNoted) {
  ClientRig rig;
  rig.serverInfo =
      R"({"vllm_config":{"weight_transfer_config":{"backend":"pushrod_tcp"},"kv_transfer_config":{}}})";
  EXPECT_TRUE(rig.run(CallKind::kIdentify).status.ok());
  ASSERT_EQ(rig.log.texts.size(), 1U);
  EXPECT_NE(rig.log.texts[0].find("push.flush_external"), std::string::npos);
}

}  // namespace
}  // namespace pushrod::engines::vllm
