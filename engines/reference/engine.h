// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <pushrod/deadline.h>
#include <pushrod/result.h>

#include "net/io_executor.h"

namespace pushrod::http {
class Server;
}

namespace pushrod::engines::reference {

class Core;
class Service;
class Worker;
struct WorkerShared;

struct EngineOptions {
  std::string name = "reference";
  std::string host = "127.0.0.1";
  std::uint16_t port = 0;  ///< 0: the system chooses
  std::string prefix;      ///< path in front of every route, e.g. "/engine"
  std::string model = "reference";
  std::string profile = "0.33";
  int worldSize = 1;  ///< all workers behind the address
  int pipelineStages = 1;
  int dataParallel = 1;
  std::string backend = "tcp";       ///< or "shm"
  std::string hostId;                ///< empty: the machine's
  std::string checkpoint;            ///< folder with the initial content
  std::string faults;                ///< file with an array of fault rules
  std::string journal;               ///< file that gets a JSON line per event
  Duration idle = Duration::zero();  ///< onIdle after so long without a request; 0: never
  std::function<void()> onIdle;      ///< on the control thread
  /// What the faults that end the process do; any thread. Default: SIGKILL to the own process.
  std::function<void()> die;
};

/// The reference engine: a small server with vLLM's weight-update routes. Owns one thread per
/// worker; its HTTP side lives on `executor`, which must outlive it.
class Engine {
 public:
  /// Listens when it returns. invalidArgument for wrong options and files, unavailable for a port
  /// that is taken.
  static Result<std::unique_ptr<Engine>> create(net::IoExecutor& executor,
                                                const EngineOptions& options);

  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  /// Closes everything and joins the workers. Not from the control thread.
  ~Engine();

  [[nodiscard]] std::uint16_t port() const { return port_; }

 private:
  explicit Engine(net::IoExecutor& executor);

  Status build(const EngineOptions& options);
  /// What all workers use: how to die, the journal, the model at start.
  Status fillShared(const EngineOptions& options);
  /// The engine's processes, and their workers.
  std::vector<std::shared_ptr<Core>> makeCores(const EngineOptions& options);
  Status serve(const EngineOptions& options);
  void watchIdle();

  net::IoExecutor& executor_;
  Duration idle_ = Duration::zero();
  std::function<void()> onIdle_;
  std::uint16_t port_ = 0;
  std::unique_ptr<WorkerShared> shared_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::unique_ptr<Service> service_;
  std::unique_ptr<http::Server> server_;
};

}  // namespace pushrod::engines::reference
