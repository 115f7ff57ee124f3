// SPDX-License-Identifier: Apache-2.0
// The engine as a program: first line, signals, idle limit, exit codes.
#include <array>
#include <chrono>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include <boost/json/parse.hpp>
#include <gtest/gtest.h>

#include "tests/unit/engines/reference/engine_fixture.h"

namespace pushrod::engines::reference::testing {
namespace {

/// A child process with its standard output and error on a pipe. Killed with the object.
class Program {
 public:
  explicit Program(std::vector<std::string> arguments) {
    std::array<int, 2> pipe{};
    EXPECT_EQ(::pipe2(pipe.data(), O_CLOEXEC), 0);
    arguments.insert(arguments.begin(), {PUSHROD_ENGINE_PROGRAM, "engine"});
    std::vector<char*> argv;
    for (std::string& argument : arguments) {
      argv.push_back(argument.data());
    }
    argv.push_back(nullptr);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(pipe[1], 1);
      ::dup2(pipe[1], 2);
      ::execv(argv[0], argv.data());
      ::_exit(127);
    }
    ::close(pipe[1]);
    output_ = pipe[0];
  }

  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  ~Program() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
    ::close(output_);
  }

  /// One line of output, or what came within ten seconds.
  std::string line() {
    std::string text;
    char byte = 0;
    pollfd entry{output_, POLLIN, 0};
    while (::poll(&entry, 1, 10000) > 0 && ::read(output_, &byte, 1) == 1 && byte != '\n') {
      text += byte;
    }
    return text;
  }

  void signal(int number) const { ::kill(pid_, number); }

  /// The wait status; the pipe's end tells when the child is gone.
  int wait() {
    while (!line().empty()) {
    }
    int status = -1;
    ::waitpid(pid_, &status, 0);
    pid_ = -1;
    return status;
  }

  [[nodiscard]] int pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
  int output_ = -1;
};

std::uint16_t portOf(const std::string& line) {
  return static_cast<std::uint16_t>(boost::json::parse(line).at("port").as_int64());
}

TEST(Program, FirstLineAndCleanEnd) {
  Program program({"--port", "0", "--name", "e1", "--profile", "0.27"});
  const std::string line = program.line();
  const auto first = boost::json::parse(line);
  EXPECT_EQ(first.at("name"), "e1");
  EXPECT_EQ(first.at("pid"), program.pid());
  EXPECT_EQ(request(portOf(line), "GET", "/version").body, R"({"version":"0.27.1"})");
  program.signal(SIGTERM);
  const int status = program.wait();
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 143) << "ended by SIGTERM, after cleaning up";
}

TEST(Program, TermEndsABlockedUpdateToo) {
  Program program({});
  const std::uint16_t port = portOf(program.line());
  TcpSender sender;
  auto init = std::async(std::launch::async, [&] {
    return request(port, "POST", "/init_weight_transfer_engine", sender.initBody(2));
  });
  sender.accept(1);
  EXPECT_EQ(init.get().status, 200);
  request(port, "POST", "/start_weight_update");
  HttpProbe update(port);
  update.send(HttpProbe::render("POST",
                                "/update_weights",
                                TcpSender::updateBody({tensor("a", {4}, 'a')}),
                                "application/json"));
  EXPECT_EQ(update.read(std::chrono::milliseconds(100)).raw, "");
  program.signal(SIGTERM);
  const int status = program.wait();
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 143);
}

TEST(Program, IdleEndsIt) {
  Program program({"--idle", "0.2"});
  EXPECT_NE(program.line(), "");
  const int status = program.wait();
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(Program, DieKillsIt) {
  Program program({});
  const std::uint16_t port = portOf(program.line());
  request(port, "POST", "/__ctl", R"({"faults": [{"route": "health", "nth": 1, "do": "die"}]})");
  EXPECT_EQ(request(port, "GET", "/health").raw, "");
  const int status = program.wait();
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGKILL);
}

TEST(Program, WrongUseExitsTwo) {
  const auto refused = [](const std::vector<std::string>& arguments, const std::string& text) {
    Program program(arguments);
    EXPECT_TRUE(contains(program.line(), text));
    const int status = program.wait();
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 2);
  };
  refused({"--backend", "nccl"}, "backend \"nccl\" is not in this build");
  refused({"--profile", "9"}, "no profile \"9\"");
  refused({"--port", "70000"}, "port 70000");
  refused({"--idle", "-1"}, "--idle");
  refused({"--faults", "/nonexistent"}, "/nonexistent");
  refused({"--checkpoint", "/nonexistent"}, "/nonexistent");
  refused({"--journal", "/nonexistent/x"}, "/nonexistent/x");
}

}  // namespace
}  // namespace pushrod::engines::reference::testing
