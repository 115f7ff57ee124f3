// SPDX-License-Identifier: Apache-2.0
#include "tools/child_process.h"

#include <cerrno>
#include <chrono>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <system_error>
#include <unistd.h>

#include "tools/descriptor.h"

namespace pushrod::tools {
namespace {

/// From fork to exec: milliseconds, unless somebody stops the child between the two.
constexpr std::chrono::milliseconds kLongestStart{10000};

std::string errnoText(int error) {
  return std::generic_category().message(error);
}

/// Between fork and exec: only calls that are safe there. Never returns.
[[noreturn]] void become(const ChildSpec& spec, char* const* arguments, pid_t parent, int failed) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) {
    ::_exit(kExitFailed);  // The parent died before the line above took effect.
  }
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::signal(SIGPIPE, SIG_DFL);
  // A question that comes before the child can answer it must not end it.
  ::signal(SIGUSR1, SIG_IGN);
  // A group that is not the terminal's foreground may still write to it, even with `tostop` set.
  ::signal(SIGTTOU, SIG_IGN);
  const int descriptors[] = {spec.input, spec.output, spec.errors};
  for (int target = 0; target < 3; ++target) {
    if (descriptors[target] >= 0 && ::dup2(descriptors[target], target) < 0) {
      ::_exit(kExitInternal);
    }
  }
  ::execv(arguments[0], arguments);
  const int error = errno;
  [[maybe_unused]] const ssize_t written = ::write(failed, &error, sizeof(error));
  ::_exit(kExitInternal);
}

}  // namespace

Result<std::unique_ptr<ChildProcess>> ChildProcess::start(const ChildSpec& spec) {
  std::vector<char*> arguments;
  for (const std::string& argument : spec.command) {
    arguments.push_back(const_cast<char*>(argument.c_str()));
  }
  arguments.push_back(nullptr);
  // Closed by a successful exec; else it carries the reason.
  int failure[2];
  if (::pipe2(failure, O_CLOEXEC) != 0) {
    return Status(Code::kUnavailable, "no pipe for a child process: " + errnoText(errno));
  }
  const Descriptor reader(failure[0]);
  Descriptor writer(failure[1]);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) {
    return Status(Code::kUnavailable, "no child process can be started: " + errnoText(errno));
  }
  if (pid == 0) {
    become(spec, arguments.data(), parent, writer.get());
  }
  writer.reset();
  ::setpgid(pid, pid);  // On both sides, so that it holds whoever runs first.
  std::unique_ptr<ChildProcess> child(new ChildProcess(pid));
  pollfd answer{reader.get(), POLLIN, 0};
  int ready = -1;
  do {
    ready = ::poll(&answer, 1, static_cast<int>(kLongestStart.count()));
  } while (ready < 0 && errno == EINTR);
  if (ready == 0) {
    return Status(Code::kUnavailable,
                  spec.command[0] + " did not start within " +
                      std::to_string(kLongestStart.count()) + " ms; was it stopped?");
  }
  int error = 0;
  if (::read(reader.get(), &error, sizeof(error)) == sizeof(error)) {
    return Status(Code::kUnavailable, spec.command[0] + " cannot be run: " + errnoText(error));
  }
  return child;
}

ChildProcess::~ChildProcess() {
  if (!poll()) {
    kill();
    // A killed process ends; the kernel leaves only the reaping to us.
    while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
}

std::optional<ChildEnd> ChildProcess::poll() {
  if (end_) {
    return end_;
  }
  int status = 0;
  if (::waitpid(pid_, &status, WNOHANG) != pid_) {
    return std::nullopt;
  }
  ChildEnd end;
  end.killed = killed_;
  if (WIFSIGNALED(status)) {
    end.signal = WTERMSIG(status);
  } else {
    end.code = WEXITSTATUS(status);
  }
  end_ = end;
  return end_;
}

bool ChildProcess::stopped() {
  siginfo_t info = {};
  return !poll() && ::waitid(P_PID, static_cast<id_t>(pid_), &info, WSTOPPED | WNOHANG) == 0 &&
         info.si_pid == pid_;
}

void ChildProcess::send(int signal) {
  if (!poll()) {
    ::kill(pid_, signal);
  }
}

void ChildProcess::kill() {
  if (!poll()) {
    killed_ = true;
    ::kill(-pid_, SIGCONT);
    ::kill(-pid_, SIGKILL);
  }
}

std::string ownProgram() {
  return "/proc/self/exe";
}

}  // namespace pushrod::tools
