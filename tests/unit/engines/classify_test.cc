// SPDX-License-Identifier: Apache-2.0
#include "engines/vllm/classify.h"

#include <ostream>

#include <gtest/gtest.h>

#include "engines/vllm/profiles.h"
#include "engines/vllm/reply_text.h"

namespace pushrod::engines::vllm {
namespace {

using enum CallKind;

struct Row {
  CallKind kind;
  int status;
  std::string body;
  Code code;
  Outcome outcome;
  std::string text;  ///< must stand in the message; for a good version: Reply::text
  std::string release = "0.32.0";
};

std::ostream& operator<<(std::ostream& out, const Row& row) {
  return out << callName(row.kind) << " " << row.status << " " << row.body.substr(0, 60);
}

std::string error(const std::string& message) {
  return R"({"error":{"message":")" + message +
         R"(","type":"InternalServerError","param":null,"code":500}})";
}

std::string worker(const std::string& text) {
  return error("Call to collective_rpc method failed: Worker failed with error '" + text +
               "', please check the stack trace above for the root cause");
}

constexpr Code kGood = Code::kOk;
constexpr Code kLater = Code::kUnavailable;
constexpr Code kState = Code::kFailedPrecondition;
constexpr Code kWrong = Code::kInvalidArgument;
constexpr Outcome kDone = Outcome::kApplied;
constexpr Outcome kNo = Outcome::kRejected;
constexpr Outcome kOpen = Outcome::kUnknown;

std::vector<Row> goodRows() {
  return {
      {kReadPaused, 200, R"({"is_paused":true})", kGood, kDone, ""},
      {kReadPaused, 200, R"({"is_paused":false})", kGood, kDone, ""},
      {kReadSession, 200, R"({"results":["True","False"]})", kGood, kDone, ""},
      {kReadSession, 200, R"({"results":["False"]})", kGood, kDone, ""},
      {kReadVersion, 200, R"({"weight_version":"8"})", kGood, kDone, "8"},
      {kReadVersion, 200, R"({"weight_version":" 8"})", kGood, kDone, " 8"},
      {kReadVersion, 200, R"({"weight_version":""})", kGood, kDone, ""},
      {kReadVersion, 200, R"({"weight_version":"default"})", kGood, kDone, "default"},
      {kReadVersion, 200, R"({"weight_version":"/models/a"})", kGood, kDone, "/models/a"},
      {kPause, 200, R"({"status":"paused"})", kGood, kDone, ""},
      {kResume, 200, R"({"status":"resumed"})", kGood, kDone, ""},
      {kSetVersion, 200, R"({"success":true,"new_version":"v1"})", kGood, kDone, ""},
      {kShutdown, 200, R"({"message":"Weight transfer shut down"})", kGood, kDone, ""},
      {kInit, 200, R"({"message":"Weight transfer initialized"})", kGood, kDone, ""},
      {kStart, 200, R"({"message":"Weight update started"})", kGood, kDone, ""},
      {kUpdate, 200, R"({"message":"Weights updated"})", kGood, kDone, ""},
      {kFinish, 200, R"({"message":"Weight update finished"})", kGood, kDone, ""},
      {kFlush, 200, R"({"success":true})", kGood, kDone, ""},
      {kFlush, 200, "", kGood, kDone, "", "0.25.1"},
      {kStart, 201, R"({"message":"Weight update started"})", kGood, kDone, ""},
  };
}

std::vector<Row> oddBodyRows() {
  return {
      {kReadVersion, 200, R"({"weight_version":null})", kLater, kOpen, "null"},
      {kReadVersion, 200, R"({"weight_version":8})", kLater, kOpen, R"({"weight_version":8})"},
      {kReadVersion, 200, R"({"weight_version":["8"]})", kLater, kOpen, R"(["8"])"},
      {kReadVersion, 200, R"({"version":"8"})", kLater, kOpen, R"({"version":"8"})"},
      {kReadVersion, 200, R"(["8"])", kLater, kOpen, R"(["8"])"},
      {kReadVersion, 200, R"("8")", kLater, kOpen, R"("8")"},
      {kReadVersion, 200, "", kLater, kOpen, "an empty body"},
      {kReadVersion, 200, "<html>8</html>", kLater, kOpen, "<html>8</html>"},
      {kReadPaused, 200, R"({"is_paused":"true"})", kLater, kOpen, "is_paused"},
      {kReadPaused, 200, R"({"is_paused":1})", kLater, kOpen, "is_paused"},
      {kReadPaused, 200, "{}", kLater, kOpen, "is_paused"},
      {kReadSession, 200, R"({"results":[]})", kLater, kOpen, "session flag"},
      {kReadSession, 200, R"({"results":["True","1"]})", kLater, kOpen, "session flag"},
      {kReadSession, 200, R"({"results":[true]})", kLater, kOpen, "session flag"},
      {kReadSession, 200, R"({"result":"True"})", kLater, kOpen, "session flag"},
      {kPause, 200, "", kLater, kOpen, "an empty body"},
      {kPause, 200, R"({"status":"resumed"})", kLater, kOpen, "paused"},
      {kResume, 200, "<html>login</html>", kLater, kOpen, "<html>login</html>"},
      {kResume, 200, R"({"status":true})", kLater, kOpen, "resumed"},
      {kSetVersion, 200, "{}", kLater, kOpen, "success"},
      {kSetVersion, 200, R"({"success":true,"new_version":"v2"})", kLater, kOpen, "v2"},
      {kSetVersion, 200, R"({"success":false})", kState, kNo, "false"},
      {kInit, 200, "", kLater, kOpen, "an empty body"},
      {kStart, 200, "<!doctype html>", kLater, kOpen, "<!doctype html>"},
      {kUpdate, 200, R"({"message":7})", kLater, kOpen, "message"},
      {kUpdate, 204, "", kLater, kOpen, "204"},
      {kFinish, 200, R"([])", kLater, kOpen, "[]"},
      {kFinish, 200, R"({"message":"Weight upd)", kLater, kOpen, "Weight upd"},
      {kShutdown, 200, "null", kLater, kOpen, "null"},
      {kFlush, 200, R"({"success":false})", kState, kNo, "success false"},
      {kFlush, 200, "", kLater, kOpen, "an empty body"},
      {kFlush, 200, R"({"success":"true"})", kLater, kOpen, "success"},
  };
}

std::vector<Row> refusedRows() {
  return {
      {kStart, 301, "", kLater, kOpen, "redirect"},
      {kUpdate, 307, "moved", kLater, kOpen, "never followed"},
      {kReadVersion, 302, "", kLater, kOpen, "redirect"},
      {kStart, 400, R"({"error":{"message":"Invalid JSON format"}})", kWrong, kNo, "Invalid JSON"},
      {kUpdate, 422, R"({"detail":[{"msg":"Field required"}]})", kWrong, kNo, "Field required"},
      {kInit, 413, "too large", kWrong, kNo, "too large"},
      {kStart, 401, R"({"error":"Unauthorized"})", kState, kNo, "engines.token_env"},
      {kStart, 403, "", kState, kNo, "engines.token_env"},
      {kStart, 404, R"({"detail":"Not Found"})", kState, kNo, "VLLM_SERVER_DEV_MODE=1"},
      {kReadVersion, 404, R"({"detail":"Not Found"})", kState, kNo, "0.27"},
      {kPause, 405, R"({"detail":"Method Not Allowed"})", kState, kNo, "VLLM_SERVER_DEV_MODE=1"},
      {kStart, 409, "conflict", kState, kNo, "conflict"},
      {kPause, 408, "", kLater, kNo, "408"},
      {kPause, 425, "", kLater, kNo, "425"},
      {kPause, 429, "slow down", kLater, kNo, "slow down"},
  };
}

std::vector<Row> failedRows() {
  const std::string active =
      worker("start_weight_update called while a weight update is already active.");
  const std::string noSession =
      worker("finish_weight_update called without a matching start_weight_update.");
  const std::string noSession22 =
      worker("start_weight_update must be called before finish_weight_update.");
  return {
      {kStart, 500, active, kState, kNo, "already active"},
      {kFinish, 500, active, kLater, kOpen, "already active"},
      {kFinish, 500, noSession, kState, kNo, "without a matching"},
      {kFinish, 500, noSession22, kState, kNo, "must be called before", "0.22.1"},
      {kFinish, 500, noSession22, kLater, kOpen, "must be called before"},
      {kUpdate,
       500,
       worker("start_weight_update must be called before update_weights."),
       kState,
       kNo,
       "must be called before update_weights"},
      {kShutdown,
       500,
       worker("Cannot release a trainer connection during a weight update"),
       kState,
       kNo,
       "Cannot release"},
      {kInit,
       500,
       error("Weight transfer not configured. Please set weight_transfer_config"),
       kState,
       kNo,
       "not configured"},
      {kUpdate, 500, worker("CUDA out of memory"), kLater, kOpen, "CUDA out of memory"},
      {kInit,
       500,
       worker("Invalid init_info for TcpEngine: unexpected keyword argument"),
       kLater,
       kOpen,
       "Invalid init_info"},
      {kPause, 500, R"({"error":"Failed to pause: busy"})", kLater, kOpen, "Failed to pause: busy"},
      {kReadPaused,
       500,
       R"({"error":"Engines returned different results"})",
       kLater,
       kOpen,
       "Engines returned different"},
      {kStart, 500, "", kLater, kOpen, "(empty body)"},
      {kUpdate, 500, "<html>Internal</html>", kLater, kOpen, "<html>Internal</html>"},
      {kUpdate, 502, "bad gateway", kLater, kOpen, "bad gateway"},
      {kUpdate,
       503,
       R"({"error":{"message":"start_weight_update must be called before update_weights"}})",
       kLater,
       kOpen,
       "503"},
      {kUpdate, 504, "", kLater, kOpen, "504"},
      {kUpdate, 599, "odd", kLater, kOpen, "odd"},
  };
}

class ClassifyTest : public ::testing::TestWithParam<Row> {};

TEST_P(ClassifyTest, GivesTheContractsVerdict) {
  const Row& row = GetParam();
  Call call;
  call.kind = row.kind;
  call.version = "v1";
  const EngineFeatures features =
      chooseProfile(row.release, "auto", UnknownProfile::kRefuse)->features;
  const Reply reply = classify(call,
                               http::Response{row.status, "application/json", row.body},
                               features,
                               "POST http://fe-b:8000/route");
  EXPECT_EQ(reply.kind, row.kind);
  EXPECT_EQ(reply.httpStatus, row.status);
  EXPECT_EQ(reply.status.code(), row.code) << reply.status.message();
  EXPECT_EQ(reply.status.outcome(), row.outcome);
  EXPECT_FALSE(reply.lost);
  if (row.code == Code::kOk) {
    EXPECT_EQ(reply.text, row.text);
    return;
  }
  EXPECT_NE(reply.status.message().find(row.text), std::string::npos) << reply.status.message();
  EXPECT_TRUE(reply.status.message().starts_with("POST http://fe-b:8000/route answered " +
                                                 std::to_string(row.status)))
      << reply.status.message();
  EXPECT_TRUE(reply.text.empty());
  EXPECT_FALSE(reply.flag.has_value());
}

INSTANTIATE_TEST_SUITE_P(Good, ClassifyTest, ::testing::ValuesIn(goodRows()));
INSTANTIATE_TEST_SUITE_P(OddBody, ClassifyTest, ::testing::ValuesIn(oddBodyRows()));
INSTANTIATE_TEST_SUITE_P(Refused, ClassifyTest, ::testing::ValuesIn(refusedRows()));
INSTANTIATE_TEST_SUITE_P(Failed, ClassifyTest, ::testing::ValuesIn(failedRows()));

TEST(ClassifyFlagsTest, FlagsAreRead) {
  const auto flagOf = [](CallKind kind, const std::string& body) {
    Call call;
    call.kind = kind;
    return classify(call, http::Response{200, "application/json", body}, EngineFeatures{}, "GET x")
        .flag;
  };
  EXPECT_EQ(flagOf(kReadPaused, R"({"is_paused":true})"), true);
  EXPECT_EQ(flagOf(kReadPaused, R"({"is_paused":false})"), false);
  EXPECT_EQ(flagOf(kReadSession, R"({"results":["False","False"]})"), false);
  EXPECT_EQ(flagOf(kReadSession, R"({"results":["False","True"]})"), true);
}

TEST(ClassifyFlagsTest, NoAnswerKeepsTheClientsCodeAndOutcome) {
  const Call call;
  for (const Status& failure :
       {Status(Code::kUnavailable, "connection refused", Outcome::kNotSent),
        Status(Code::kUnavailable, "connection reset", Outcome::kUnknown),
        Status(Code::kDeadlineExceeded, "no answer within 2 s", Outcome::kUnknown),
        Status(Code::kCancelled, "stopped", Outcome::kUnknown)}) {
    const Reply reply = classify(call, failure, EngineFeatures{}, "GET http://fe-b/x");
    EXPECT_EQ(reply.httpStatus, 0);
    EXPECT_EQ(reply.status.code(), failure.code());
    EXPECT_EQ(reply.status.outcome(), failure.outcome());
    EXPECT_EQ(reply.status.message(), "GET http://fe-b/x: " + failure.message());
  }
}

TEST(ClassifyFlagsTest, LongAnswersAreBounded) {
  Call call;
  call.kind = kReadVersion;
  const Reply reply = classify(
      call, http::Response{200, "text/html", std::string(1 << 20, 'z')}, EngineFeatures{}, "GET x");
  EXPECT_LT(reply.status.message().size(), kMaxQuote + 200);
}

}  // namespace
}  // namespace pushrod::engines::vllm
