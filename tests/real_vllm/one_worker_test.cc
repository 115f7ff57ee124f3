// SPDX-License-Identifier: Apache-2.0
// A server with one worker, whose errors delay nothing.
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/real_vllm/real_server.h"

namespace pushrod::real_vllm {
namespace {

class OneWorker : public RealServerTest {
 protected:
  /// Sends a signal to the processes of the server that call themselves `name`; how many.
  static int signalAll(const std::string& name, int signal) {
    int found = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      std::ifstream file(entry.path() / "stat");
      std::string line;
      if (!std::getline(file, line)) {
        continue;
      }
      const std::size_t open = line.find('(');
      const std::size_t close = line.rfind(')');
      std::istringstream rest(line.substr(close + 1));
      std::string state;
      int parent = 0;
      int group = 0;
      std::string session;
      rest >> state >> parent >> group >> session;
      if (session == told("PUSHROD_VLLM_SESSION") && state != "Z" &&
          line.compare(open + 1, name.size(), name) == 0) {
        found += ::kill(std::stoi(line), signal) == 0 ? 1 : 0;
      }
    }
    return found;
  }

  Reply wake(const std::string& tag) {
    Call call;
    call.kind = CallKind::kWake;
    call.tag = tag;
    return client_.run(std::move(call));
  }
};

TEST_F(OneWorker, TakesAnEmptyPush) {
  connect();
  ASSERT_NE(identity_, nullptr);
  EXPECT_EQ(identity_->worldSize, 1);
  EXPECT_EQ(identity_->backend, "ipc");
  emptyPush("1");
  expectGenerates();
}

TEST_F(OneWorker, RefusesWithoutFallingBehind) {
  connect();
  good(run(CallKind::kPause));
  refused(run(CallKind::kUpdate, "{}"), "must be called before update_weights");
  refused(finish("never"), "without a matching start_weight_update");
  good(run(CallKind::kStart));
  refused(run(CallKind::kStart), "already active");
  refused(run(CallKind::kShutdown), "Cannot release a trainer connection");
  EXPECT_EQ(run(CallKind::kMeasureLag).lag, 0);
  expectSession(true);
  good(finish("2"));
  expectVersion("2");
  good(run(CallKind::kShutdown));
  good(run(CallKind::kResume));
}

// The session is gone with the update, and the empty session brings the old weights back.
TEST_F(OneWorker, LosesTheSessionOfAFailedUpdate) {
  connect();
  good(run(CallKind::kPause));
  good(run(CallKind::kStart));
  const Reply update = run(CallKind::kUpdate, R"({"names":[],"dtype_names":[],"shapes":[]})");
  EXPECT_EQ(update.httpStatus, 500);
  EXPECT_EQ(update.status.outcome(), Outcome::kUnknown);
  EXPECT_TRUE(contract::has(update.status.message(), "ipc_handles")) << update.status.message();
  expectSession(false);
  good(run(CallKind::kStart));
  Call close;
  close.kind = CallKind::kFinish;
  good(client_.run(std::move(close)));
  expectVersion("2");
  good(run(CallKind::kResume));
  expectGenerates();
}

TEST_F(OneWorker, KeepsTheVersionsLetters) {
  connect();
  for (const char* version : {" 8", "", "\"\\\xC3\xA9", "007"}) {
    good(setVersion(version));
    expectVersion(version);
  }
}

// A server asleep says so where a paused one does not, and the last part that wakes resumes.
TEST_F(OneWorker, GeneratesAgainWhenItsLastPartWakes) {
  connect();
  good(run(CallKind::kPause));
  EXPECT_FALSE(identify().identity->asleep);
  EXPECT_EQ(contract::exchange(port(), "POST", "/sleep?level=1").status, 200);
  EXPECT_TRUE(identify().identity->asleep);
  good(wake("weights"));
  expectPaused(true);
  good(wake("kv_cache"));
  expectPaused(false);
  EXPECT_FALSE(identify().identity->asleep);
  emptyPush("9");
  expectGenerates();
}

// It ends connections that stand idle for longer than the client keeps them.
TEST_F(OneWorker, EndsIdleConnectionsAfterFiveSeconds) {
  const contract::RawAnswer kept =
      contract::exchange(port(), "GET", "/health", "", "application/json", 4500);
  EXPECT_EQ(kept.status, 200);
  EXPECT_FALSE(kept.closed);
  EXPECT_TRUE(contract::exchange(port(), "GET", "/health", "", "application/json", 8000).closed);
}

// The last test: the server is gone after it. Its API process answers a pending call never more.
TEST_F(OneWorker, LeavesACallUnansweredWhenItsCoreDies) {
  connect();
  good(run(CallKind::kPause));
  ASSERT_EQ(signalAll("VLLM::Worker", SIGSTOP), 1);
  Call start;
  start.kind = CallKind::kStart;
  std::future<Reply> answer = client_.begin(start, std::chrono::seconds(60));
  ASSERT_EQ(answer.wait_for(std::chrono::seconds(1)), std::future_status::timeout);
  ASSERT_EQ(signalAll("VLLM::EngineCor", SIGKILL), 1);
  ASSERT_EQ(answer.wait_for(std::chrono::seconds(10)), std::future_status::ready);
  const Reply reply = answer.get();
  EXPECT_EQ(reply.httpStatus, 0);
  EXPECT_EQ(reply.status.outcome(), Outcome::kUnknown);
  EXPECT_TRUE(contract::has(reply.status.message(), "the engine died while the request was out"))
      << reply.status.message();
}

}  // namespace
}  // namespace pushrod::real_vllm
