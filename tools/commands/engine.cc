// SPDX-License-Identifier: Apache-2.0
#include "tools/commands/engine.h"

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <poll.h>
#include <signal.h>
#include <string>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <CLI/CLI.hpp>

#include "common/log.h"
#include "engines/reference/engine.h"
#include "net/io_executor.h"
#include "tools/descriptor.h"
#include "tools/exit_code.h"

namespace pushrod::tools {

namespace {

/// Turns SIGTERM and SIGINT into a readable descriptor while it lives. Made before any thread is.
class SignalWatch {
 public:
  SignalWatch() {
    ::sigemptyset(&set_);
    ::sigaddset(&set_, SIGTERM);
    ::sigaddset(&set_, SIGINT);
    ::pthread_sigmask(SIG_BLOCK, &set_, &before_);
    watch_ = Descriptor(::signalfd(-1, &set_, SFD_CLOEXEC | SFD_NONBLOCK));
  }

  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;

  ~SignalWatch() {
    // Take what has come, or it would be delivered when the old mask returns.
    signalfd_siginfo ignored{};
    while (::read(watch_.get(), &ignored, sizeof ignored) > 0) {
    }
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

  [[nodiscard]] int descriptor() const { return watch_.get(); }

  /// The signal that came, taken; 0: none did.
  [[nodiscard]] int take() const {
    signalfd_siginfo info{};
    return ::read(watch_.get(), &info, sizeof info) == ssize_t{sizeof info}
               ? static_cast<int>(info.ssi_signo)
               : 0;
  }

 private:
  sigset_t set_{};
  sigset_t before_{};
  Descriptor watch_;
};

int refuse(const std::string& text) {
  std::fprintf(stderr, "pushrod engine: %s\n", text.c_str());
  return kExitRefused;
}

engines::reference::EngineOptions optionsOf(const EngineFlags& flags) {
  engines::reference::EngineOptions options;
  options.name = flags.name;
  options.host = flags.host;
  options.port = static_cast<std::uint16_t>(flags.port);
  options.prefix = flags.prefix;
  options.model = flags.model;
  options.profile = flags.profile;
  options.worldSize = flags.worldSize;
  options.pipelineStages = flags.pipelineStages;
  options.dataParallel = flags.dataParallel;
  options.backend = flags.backend;
  options.hostId = flags.hostId;
  options.checkpoint = flags.checkpoint;
  options.faults = flags.faults;
  options.journal = flags.journal;
  options.idle = std::chrono::ceil<Duration>(std::chrono::duration<double>(flags.idleSeconds));
  return options;
}

void waitForEither(int first, int second) {
  std::array<pollfd, 2> fds = {pollfd{first, POLLIN, 0}, pollfd{second, POLLIN, 0}};
  while (::poll(fds.data(), fds.size(), -1) < 0) {
  }
}

}  // namespace

int engineCommand(const EngineFlags& flags) {
  if (flags.backend != "tcp" && flags.backend != "shm") {
    return refuse("backend \"" + flags.backend +
                  "\" is not in this build; use --backend tcp or --backend shm");
  }
  if (flags.port < 0 || flags.port > 65535) {
    return refuse("port " + std::to_string(flags.port) + " is none; 0 to 65535 go");
  }
  constexpr double kLongestIdle = 1e7;
  if (!(flags.idleSeconds >= 0 && flags.idleSeconds <= kLongestIdle)) {
    return refuse("--idle wants a number of seconds that is not negative");
  }
  const SignalWatch signals;
  const Descriptor idle(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (signals.descriptor() < 0 || idle.get() < 0) {
    std::fprintf(stderr, "pushrod engine: no descriptor is left to wait on\n");
    return kExitInternal;
  }
  net::IoExecutor executor;
  engines::reference::EngineOptions options = optionsOf(flags);
  options.onIdle = [&idle] {
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(idle.get(), &one, sizeof one);
  };
  auto engine = engines::reference::Engine::create(executor, options);
  if (!engine.ok()) {
    return refuse(engine.error().message());
  }
  std::printf("{\"name\": %s, \"port\": %d, \"pid\": %d}\n",
              common::jsonQuoted(flags.name).c_str(),
              int{(*engine)->port()},
              int{::getpid()});
  std::fflush(stdout);
  waitForEither(signals.descriptor(), idle.get());
  const int signal = signals.take();
  return signal == 0 ? kExitDone : exitOfSignal(signal);
}

CLI::App* addEngineCommand(CLI::App& root, int& exitCode) {
  const auto flags = std::make_shared<EngineFlags>();
  CLI::App* command = root.add_subcommand(
      "engine", "The reference engine: vLLM's weight-update routes, and failures on demand");
  command->add_option("--port", flags->port, "port to listen on, 0: the system chooses");
  command->add_option("--host", flags->host, "IP address to listen on")->capture_default_str();
  command->add_option("--prefix", flags->prefix, "path in front of every route");
  command->add_option("--name", flags->name, "name in the first line of output");
  command->add_option("--backend", flags->backend, "weight transfer backend, tcp or shm")
      ->capture_default_str();
  command->add_option("--profile", flags->profile, "release to behave as, 0.22 to 0.33")
      ->capture_default_str();
  command->add_option("--model", flags->model, "served model name");
  command->add_option("--world-size", flags->worldSize, "workers, all replicas together");
  command->add_option("--pipeline-stages", flags->pipelineStages, "pipeline stages");
  command->add_option("--data-parallel", flags->dataParallel, "replicas behind this address");
  command->add_option("--host-id", flags->hostId, "host id in place of the machine's");
  command->add_option("--checkpoint", flags->checkpoint, "folder with the initial content");
  command->add_option("--faults", flags->faults, "file with an array of faults");
  command->add_option("--journal", flags->journal, "file that gets a JSON line per event");
  command->add_option("--idle", flags->idleSeconds, "end after so many seconds without a request");
  command->callback([flags, &exitCode] { exitCode = engineCommand(*flags); });
  return command;
}

}  // namespace pushrod::tools
