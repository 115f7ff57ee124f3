// SPDX-License-Identifier: Apache-2.0
// Bodies, content types, versions and error shapes, as each release answers them.
#include <string>

#include <gtest/gtest.h>

#include "tests/unit/engines/reference/engine_fixture.h"

namespace pushrod::engines::reference::testing {
namespace {

class Bodies : public ::testing::TestWithParam<int> {
 protected:
  [[nodiscard]] static int minor() { return GetParam(); }

  TestEngine engine_{profileOptions("0." + std::to_string(GetParam()))};
};

TEST_P(Bodies, StartReadsABodyUpTo24) {
  const int wrong = minor() <= 24 ? 400 : 200;
  EXPECT_EQ(engine_.post("start_weight_update").status, wrong);
  if (minor() <= 24) {
    EXPECT_EQ(engine_.post("start_weight_update", "{").error(), "Invalid JSON format");
    const Answer array = engine_.post("start_weight_update", "[]");
    EXPECT_EQ(array.status, 500);
    EXPECT_EQ(array.error(), "'list' object has no attribute 'get'");
    EXPECT_EQ(engine_.post("start_weight_update", "{}", "").status, 200);
  }
}

TEST_P(Bodies, InitAndUpdateShapes) {
  for (const auto& [route, key] : {std::pair{"init_weight_transfer_engine", "init_info"},
                                   std::pair{"update_weights", "update_info"}}) {
    const std::string missing = std::string("Missing '") + key + "' in request body";
    const std::string location = std::string("body.") + key;
    const bool typed = minor() >= 32;
    for (const char* body : {"{}", "{\"init_info\": null, \"update_info\": null}"}) {
      const Answer answer = engine_.post(route, body);
      EXPECT_EQ(answer.status, 400) << answer.body;
      const auto error = answer.json().at("error");
      EXPECT_EQ(error.at("type"), "Bad Request");
      EXPECT_EQ(error.at("code"), 400);
      EXPECT_EQ(error.at("param"), typed ? boost::json::value(location) : nullptr);
      EXPECT_TRUE(contains(answer.error(), typed ? "'type': 'missing'" : missing));
    }
    const Answer array = engine_.post(route, "[1]");
    EXPECT_EQ(array.status, typed ? 400 : 500);
    const Answer broken = engine_.post(route, "{\"a\" 1}");
    EXPECT_EQ(broken.status, 400);
    EXPECT_TRUE(contains(broken.error(), typed ? "json_invalid" : "Invalid JSON format"));
  }
}

TEST_P(Bodies, ContentTypeMattersToInitFrom32) {
  const std::string body = R"({"init_info": {"bogus": 1}})";
  for (const char* type : {"", "text/plain"}) {
    const Answer answer = engine_.post("init_weight_transfer_engine", body, type);
    EXPECT_EQ(answer.status, minor() >= 32 ? 400 : 500) << answer.body;
  }
  const Answer unknown = engine_.post("init_weight_transfer_engine", body);
  EXPECT_EQ(unknown.status, 500);
  EXPECT_TRUE(contains(unknown.error(), "Invalid init_info for "));
  EXPECT_TRUE(contains(unknown.error(), "unexpected keyword argument 'bogus'"));
}

TEST_P(Bodies, FinishVersionAndItsContentType) {
  const auto finish = [this](const std::string& body, const std::string& type) {
    engine_.post("start_weight_update", "{}");
    const Answer answer = engine_.post("finish_weight_update", body, type);
    if (answer.status != 200) {
      engine_.post("finish_weight_update");
    }
    return answer.status;
  };
  const bool has = minor() >= 27;
  EXPECT_EQ(finish(R"({"weight_version": "7"})", "application/json"), 200);
  EXPECT_EQ(engine_.state("version"), has ? "7" : "default");
  EXPECT_EQ(finish(R"({"weight_version": "8"})", ""), 200);
  EXPECT_EQ(finish(R"({"weight_version": "8"})", "text/plain"), 200);
  EXPECT_EQ(engine_.state("version"), has ? "7" : "default") << "silently dropped";
  EXPECT_EQ(finish(R"({"weight_version": "9"})", "application/vnd.x+json; charset=utf-8"), 200);
  EXPECT_EQ(engine_.state("version"), has ? "9" : "default");
  for (const char* keeps : {"{}", "null", R"({"weight_version": null})", R"({"other": 1})"}) {
    EXPECT_EQ(finish(keeps, "application/json"), 200) << keeps;
    EXPECT_EQ(engine_.state("version"), has ? "9" : "default");
  }
  for (const char* wrong : {R"({"weight_version": 7})", "{", "[1]"}) {
    EXPECT_EQ(finish(wrong, "application/json"), has ? 400 : 200) << wrong;
  }
  EXPECT_EQ(finish(R"({"weight_version": ""})", "application/json"), 200);
  EXPECT_EQ(engine_.state("version"), has ? "" : "default");
}

TEST_P(Bodies, VersionRoutes) {
  if (minor() < 27) {
    EXPECT_EQ(engine_.get("weight_info").status, 404);
    EXPECT_EQ(engine_.post("update_weight_version", R"({"new_version": "x"})").status, 404);
    return;
  }
  EXPECT_EQ(engine_.get("weight_info").body, R"({"weight_version":"default"})");
  EXPECT_EQ(engine_.post("update_weight_version", R"({"new_version": "x"})").body,
            R"({"success":true,"new_version":"x"})");
  EXPECT_EQ(engine_.get("weight_info").body, R"({"weight_version":"x"})");
  EXPECT_EQ(engine_.post("update_weight_version", R"({"new_version": 1})").status, 400);
  EXPECT_EQ(engine_.post("update_weight_version", "{}").status, 400);
}

TEST_P(Bodies, RoutesByRelease) {
  const auto exists = [this](const char* path, const char* body) {
    return engine_.post(path, body).status != 404;
  };
  EXPECT_EQ(exists("abort_requests", "{}"), minor() >= 26);
  EXPECT_EQ(exists("weight_checker", R"({"action": "checksum"})"), minor() >= 32);
  EXPECT_EQ(exists("release_kv_cache_memory", "{}"), minor() >= 31);
  EXPECT_EQ(engine_.post("reset_prefix_cache").body, minor() >= 26 ? R"({"success":true})" : "");
  EXPECT_EQ(engine_.post("sleep?level=0").body,
            minor() >= 32 ? R"({"status":"sleeping","level":0})" : "");
  EXPECT_EQ(engine_.post("wake_up").body, minor() >= 32 ? R"({"status":"awake","tags":null})" : "");
  EXPECT_EQ(engine_.get("pause").status, 405);
  EXPECT_EQ(engine_.get("pause").body, R"({"detail":"Method Not Allowed"})");
  EXPECT_EQ(engine_.get("nothing").body, R"({"detail":"Not Found"})");
}

TEST_P(Bodies, QueryValidation) {
  const Answer answer = engine_.post("pause?mode=maybe");
  EXPECT_EQ(answer.status, 400);
  const auto param = answer.json().at("error").at("param");
  EXPECT_EQ(param, minor() >= 24 ? boost::json::value("query.mode") : nullptr);
  EXPECT_TRUE(contains(answer.error(), minor() >= 30 ? "'query.mode'" : "('query', 'mode')"));
  EXPECT_EQ(engine_.post("abort_requests").status, minor() >= 26 ? 400 : 404);
  EXPECT_EQ(engine_.get("is_paused").body, R"({"is_paused":false})");
}

TEST_P(Bodies, ListPayload) {
  engine_.post("start_weight_update", "{}");
  const Answer answer = engine_.post("update_weights", R"({"update_info": []})");
  EXPECT_EQ(answer.status, 500);
  EXPECT_TRUE(contains(answer.error(),
                       minor() >= 29 ? "list index out of range" : "must be a mapping, not list"));
  EXPECT_EQ(engine_.state("session"), minor() == 22 ? "open" : "closed");
}

TEST_P(Bodies, ReleaseText) {
  const std::string release = engine_.get("version").json().at("version").as_string().c_str();
  EXPECT_EQ(release.rfind("0." + std::to_string(minor()) + ".", 0), 0U);
}

INSTANTIATE_TEST_SUITE_P(Releases, Bodies, ::testing::Range(22, 34));

TEST(Sockets, ServerErrorClosesWithoutAnnouncement) {
  TestEngine engine(profileOptions("0.32"));
  HttpProbe probe(engine.port());
  probe.send(HttpProbe::render("POST", "/finish_weight_update", "{}", "application/json"));
  const Answer answer = probe.read();
  EXPECT_EQ(answer.status, 500);
  EXPECT_EQ(answer.json().at("error").at("type"), "InternalServerError");
  EXPECT_EQ(answer.headers.find("connection:"), std::string::npos);
  EXPECT_TRUE(probe.closed());
}

TEST(Sockets, OtherAnswersKeepTheConnection) {
  TestEngine engine(profileOptions("0.32"));
  HttpProbe probe(engine.port());
  for (const char* target : {"/health", "/nothing", "/is_paused"}) {
    probe.send(HttpProbe::render("GET", target, std::nullopt, ""));
    EXPECT_NE(probe.read().status, 0) << target;
  }
}

TEST(UpdateInfo, WrongFieldsAreRefusedWithTheServersTexts) {
  TestEngine engine(profileOptions("0.32"));
  TcpSender sender;
  const auto attempt = [&](const std::string& info) {
    engine.init(sender);
    engine.post("start_weight_update");
    const Answer answer = engine.post("update_weights", "{\"update_info\": " + info + "}");
    EXPECT_EQ(answer.status, 500) << info;
    return answer.error();
  };
  EXPECT_TRUE(contains(attempt(R"({"names": ["a"], "dtype_names": [], "shapes": [[1]]})"),
                       "`dtype_names` should be of the same size as `names`: got 0 and 1"));
  EXPECT_TRUE(contains(attempt(R"({"names": []})"),
                       "missing 2 required positional arguments: 'dtype_names', 'shapes'"));
  EXPECT_TRUE(contains(attempt(R"({"names": [], "dtype_names": [], "shapes": [], "packed": true})"),
                       "unexpected keyword argument 'packed'"));
  EXPECT_TRUE(contains(attempt(R"({"names": ["a"], "dtype_names": ["zfloat"], "shapes": [[1]]})"),
                       "module 'torch' has no attribute 'zfloat'"));
  EXPECT_TRUE(contains(attempt(R"({"names": ["a"], "dtype_names": ["int8"], "shapes": [[-1]]})"),
                       "not negative"));
  EXPECT_TRUE(contains(
      attempt(R"({"names": ["a"], "dtype_names": ["int8"], "shapes": [[4611686018427387904, 4]]})"),
      "too many elements"));
  EXPECT_TRUE(
      contains(attempt(R"({"names": [], "dtype_names": [], "shapes": [], "src": 3})"), "src 3"));
}

TEST(InitInfo, WrongFieldsAreRefused) {
  TestEngine engine(profileOptions("0.32"));
  const std::string good =
      R"({"protocol": 1, "sources": [{"src": 0, "address": "127.0.0.1", "port": 1}],)"
      R"( "rank_offset": 1, "world_size": 2, "channel": "00112233445566778899aabbccddeeff",)"
      R"( "packed_buffer_size_bytes": 1024})";
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string info = good;
    info.replace(info.find(from), from.size(), to);
    const Answer answer =
        engine.post("init_weight_transfer_engine", "{\"init_info\": " + info + "}");
    EXPECT_EQ(answer.status, 500) << info;
    return answer.error();
  };
  EXPECT_TRUE(contains(with("\"protocol\": 1", "\"protocol\": 2"), "protocol must be 1"));
  EXPECT_TRUE(contains(with("eeff\"", "eefg\""), "channel must be 32 lower-case hex digits"));
  EXPECT_TRUE(contains(with("\"src\": 0", "\"src\": 1"), "ascending src"));
  EXPECT_TRUE(contains(with("\"port\": 1", "\"port\": 70000"), "a port"));
  EXPECT_TRUE(contains(with("\"world_size\": 2", "\"world_size\": 0"), "world_size"));
  EXPECT_TRUE(contains(with("\"world_size\": 2,", ""), "missing 1 required positional argument"));
  EXPECT_TRUE(contains(with("1024", "0"), "positive"));
  EXPECT_TRUE(contains(with("1024", "1024"), "source 0 at 127.0.0.1:1")) << "nobody listens there";
}

}  // namespace
}  // namespace pushrod::engines::reference::testing
