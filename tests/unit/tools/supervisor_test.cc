// SPDX-License-Identifier: Apache-2.0
#include "tools/supervisor.h"

#include <chrono>
#include <cstdlib>
#include <fcntl.h>
#include <signal.h>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/tools/scratch_folder.h"
#include "tools/line_reader.h"

namespace pushrod::tools {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;
using testing::ScratchFolder;

std::vector<std::string> shell(const std::string& script) {
  return {"/bin/sh", "-c", script};
}

SuperviseOptions each(const std::vector<std::string>& scripts) {
  SuperviseOptions options;
  options.ranks = static_cast<int>(scripts.size());
  options.straggler = std::chrono::milliseconds(200);
  options.command = [scripts](int rank) { return shell(scripts[std::size_t(rank)]); };
  return options;
}

Deadline soon() {
  return Deadline::after(SteadyClock(), seconds(10));
}

TEST(Supervisor, CollectsExitCodesByRank) {
  const auto result = supervise(each({"exit 0", "exit 3", "exit 2"}));
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->ends, (std::vector<ChildEnd>{{.code = 0}, {.code = 3}, {.code = 2}}));
  EXPECT_EQ(result->signal, 0);
}

TEST(Supervisor, ADeathIsToldFromAnExit) {
  const auto result = supervise(each({"kill -9 $$", "exit 3"}));
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->ends[0].signal, SIGKILL);
  EXPECT_FALSE(result->ends[0].killed);
}

TEST(Supervisor, StragglersAreEndedAlsoWhenStopped) {
  const auto begin = std::chrono::steady_clock::now();
  const auto result = supervise(each({"exit 3", "exec sleep 100", "kill -STOP $$; sleep 100"}));
  ASSERT_TRUE(result.ok());
  EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds(10));
  EXPECT_EQ(result->ends[0].code, 3);
  EXPECT_TRUE(result->ends[1].killed);
  EXPECT_TRUE(result->ends[2].killed);
}

TEST(Supervisor, AStragglerThatHasALimitLeftIsGivenIt) {
  SuperviseOptions options = each({"exit 3", "sleep 0.5; exit 2"});
  options.straggler = std::chrono::milliseconds(1);
  std::vector<int> asked;
  options.stragglerMore = [&asked](int rank) -> Duration {
    asked.push_back(rank);
    return seconds(10);
  };
  const auto result = supervise(options);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->ends, (std::vector<ChildEnd>{{.code = 3}, {.code = 2}}));
  EXPECT_EQ(asked, std::vector<int>{1});
}

TEST(HeldSignals, OnesThatComeTooLateDoNothing) {
  const auto ends = [](bool held) {
    const pid_t child = ::fork();
    if (child == 0) {
      if (held) {
        holdSignals();
      }
      for (const int signal : {SIGTERM, SIGINT, SIGUSR1}) {
        ::raise(signal);
      }
      ::_exit(7);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return status;
  };
  EXPECT_TRUE(WIFSIGNALED(ends(false)));
  const int status = ends(true);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

TEST(Supervisor, AStoppedChildIsWokenWhenPlanned) {
  SuperviseOptions options =
      each({"kill -STOP $$; exit 0", "kill -STOP $$; kill -STOP $$; exit 2"});
  std::vector<int> asked;
  options.straggler = seconds(10);
  options.wakeAfter = [&asked](int rank) {
    asked.push_back(rank);
    return std::optional<Duration>(std::chrono::milliseconds(50));
  };
  const auto result = supervise(options);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->ends, (std::vector<ChildEnd>{{.code = 0}, {.code = 2}}));
  EXPECT_THAT(asked, ::testing::UnorderedElementsAre(0, 1, 1));
}

TEST(Supervisor, TheLimitHoldsWhenNobodyEnds) {
  SuperviseOptions options = each({"exec sleep 100"});
  options.limit = std::chrono::milliseconds(100);
  const auto result = supervise(options);
  ASSERT_TRUE(result.ok());
  EXPECT_TRUE(result->ends[0].killed);
}

TEST(Supervisor, AProgramThatCannotBeRunIsNamedAndTheOthersAreEnded) {
  SuperviseOptions options = each({"exec sleep 100", ""});
  options.command = [](int rank) {
    return rank == 0 ? shell("exec sleep 100") : std::vector<std::string>{"/no/such/program"};
  };
  const auto result = supervise(options);
  ASSERT_FALSE(result.ok());
  EXPECT_THAT(result.status().message(), HasSubstr("rank 1: /no/such/program cannot be run"));
}

TEST(Supervisor, ForwardsAStopOrderOnce) {
  const ScratchFolder folder;
  // Each child counts what it receives and ends only well after a doubled order.
  const std::string script =
      "n=0; trap 'n=$((n+1)); echo $n > " + folder.path() + "/count' TERM; : > " + folder.path() +
      "/ready; i=0; while [ $n = 0 ]; do sleep 0.05; done; sleep 0.3; exit $n";
  SuperviseOptions options = each({script});
  const pid_t self = ::getpid();
  // Before the thread, so that neither it nor this one takes the signal in the default way.
  sigset_t set;
  sigset_t before;
  ::sigemptyset(&set);
  ::sigaddset(&set, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &set, &before);
  std::thread sender([&] {
    while (::access(folder.path("ready").c_str(), F_OK) != 0) {
      std::this_thread::yield();
    }
    ::kill(self, SIGTERM);
    while (::access(folder.path("count").c_str(), F_OK) != 0) {
      std::this_thread::yield();
    }
    ::kill(self, SIGTERM);  // Within a second: the same order again.
  });
  const auto result = supervise(options);
  sender.join();
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->signal, SIGTERM);
  EXPECT_EQ(result->ends[0].code, 1);
}

TEST(StopOrders, TheSameSignalWithinASecondIsTheSameOrder) {
  StopOrders orders;
  const TimePoint start{};
  using std::chrono::milliseconds;
  EXPECT_EQ(orders.deliver(SIGTERM, start), StopOrders::Order::kFirst);
  EXPECT_EQ(orders.deliver(SIGTERM, start + milliseconds(999)), StopOrders::Order::kSame);
  EXPECT_EQ(orders.deliver(SIGTERM, start + milliseconds(1000)), StopOrders::Order::kFurther);
  EXPECT_EQ(orders.first(), SIGTERM);
}

TEST(StopOrders, AnotherSignalIsAnotherOrder) {
  StopOrders orders;
  const TimePoint start{};
  EXPECT_EQ(orders.deliver(SIGINT, start), StopOrders::Order::kFirst);
  EXPECT_EQ(orders.deliver(SIGTERM, start + std::chrono::milliseconds(1)),
            StopOrders::Order::kFurther);
  EXPECT_EQ(orders.first(), SIGINT);
}

TEST(ChildProcess, SpeaksOverItsDescriptorsAndHasItsOwnGroup) {
  int in[2];
  int out[2];
  ASSERT_EQ(::pipe2(in, O_CLOEXEC), 0);
  ASSERT_EQ(::pipe2(out, O_CLOEXEC), 0);
  const auto child = ChildProcess::start(
      {.command = shell("read line; echo got $line"), .input = in[0], .output = out[1]});
  ASSERT_TRUE(child.ok()) << child.status().message();
  EXPECT_EQ(::getpgid((*child)->pid()), (*child)->pid());
  ASSERT_EQ(::write(in[1], "this\n", 5), 5);
  LineReader reader(out[0]);
  EXPECT_EQ(reader.next(soon()), "got this");
  for (const int fd : {in[0], in[1], out[0], out[1]}) {
    ::close(fd);
  }
}

TEST(ChildProcess, DiesWithItsObject) {
  pid_t pid = 0;
  {
    const auto child = ChildProcess::start({.command = shell("exec sleep 100")});
    ASSERT_TRUE(child.ok());
    pid = (*child)->pid();
  }
  EXPECT_EQ(::kill(pid, 0), -1);
}

TEST(ChildProcess, DiesWithItsParent) {
  int out[2];
  ASSERT_EQ(::pipe2(out, 0), 0);
  const pid_t parent = ::fork();
  if (parent == 0) {
    const auto child =
        ChildProcess::start({.command = shell("echo up; exec sleep 100"), .output = out[1]});
    ::close(out[1]);
    ::pause();
    ::_exit(child.ok() ? 0 : 1);
  }
  ::close(out[1]);
  LineReader reader(out[0]);
  ASSERT_EQ(reader.next(soon()), "up");
  ::kill(parent, SIGKILL);
  ::waitpid(parent, nullptr, 0);
  // The grandchild held the last writing end; it is closed only by its death.
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(reader.next(soon()), std::nullopt);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds(5));
  ::close(out[0]);
}

TEST(LineReader, SplitsLinesAndEndsInTime) {
  int pipe[2];
  ASSERT_EQ(::pipe2(pipe, O_CLOEXEC), 0);
  LineReader reader(pipe[0]);
  ASSERT_EQ(::write(pipe[1], "one\ntwo\nth", 10), 10);
  EXPECT_EQ(reader.next(soon()), "one");
  EXPECT_EQ(reader.next(soon()), "two");
  const Deadline short_ = Deadline::after(SteadyClock(), std::chrono::milliseconds(20));
  EXPECT_EQ(reader.next(short_), std::nullopt);
  ASSERT_EQ(::write(pipe[1], "ree\n", 4), 4);
  EXPECT_EQ(reader.next(soon()), "three");
  ::close(pipe[1]);
  EXPECT_EQ(reader.next(soon()), std::nullopt);
  ::close(pipe[0]);
}

}  // namespace
}  // namespace pushrod::tools
