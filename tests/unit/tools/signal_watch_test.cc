// SPDX-License-Identifier: Apache-2.0
#include "tools/signal_watch.h"

#include <chrono>
#include <future>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

namespace pushrod::tools {
namespace {

using std::chrono::seconds;

TEST(SignalWatch, TheFirstOrderRunsTheActionOnce) {
  SignalWatch watch;
  std::promise<int> told;
  std::future<int> heard = told.get_future();
  watch.onStop([&told](int signal) { told.set_value(signal); });
  EXPECT_EQ(watch.received(), 0);
  ASSERT_EQ(::kill(::getpid(), SIGTERM), 0);
  ASSERT_EQ(heard.wait_for(seconds(5)), std::future_status::ready);
  EXPECT_EQ(heard.get(), SIGTERM);
  EXPECT_EQ(watch.received(), SIGTERM);
  pollfd entry{watch.descriptor(), POLLIN, 0};
  EXPECT_EQ(::poll(&entry, 1, 5000), 1);
}

TEST(SignalWatch, AnActionSetLateRunsAtOnce) {
  SignalWatch watch;
  ASSERT_EQ(::kill(::getpid(), SIGINT), 0);
  pollfd entry{watch.descriptor(), POLLIN, 0};
  ASSERT_EQ(::poll(&entry, 1, 5000), 1);
  int heard = 0;
  watch.onStop([&heard](int signal) { heard = signal; });
  EXPECT_EQ(heard, SIGINT);
}

TEST(SignalWatch, AQuestionIsAnsweredEachTimeAndStopsNothing) {
  SignalWatch watch;
  std::promise<void> first;
  std::promise<void> second;
  int heard = 0;
  watch.onReport([&] { (heard++ == 0 ? first : second).set_value(); });
  ASSERT_EQ(::kill(::getpid(), SIGUSR1), 0);
  ASSERT_EQ(first.get_future().wait_for(seconds(5)), std::future_status::ready);
  ASSERT_EQ(::kill(::getpid(), SIGUSR1), 0);
  ASSERT_EQ(second.get_future().wait_for(seconds(5)), std::future_status::ready);
  EXPECT_EQ(watch.received(), 0);
  watch.onReport(nullptr);
  ASSERT_EQ(::kill(::getpid(), SIGUSR1), 0);
}

TEST(SignalWatch, AFurtherOrderEndsTheProcessAtOnce) {
  const pid_t child = ::fork();
  if (child == 0) {
    SignalWatch watch;
    ::kill(::getpid(), SIGINT);
    pollfd entry{watch.descriptor(), POLLIN, 0};
    ::poll(&entry, 1, 5000);
    ::kill(::getpid(), SIGTERM);
    // The watch ends the process; the limit only makes its failure to do so an exit code of 0.
    ::poll(nullptr, 0, 5000);
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 143);
}

}  // namespace
}  // namespace pushrod::tools
