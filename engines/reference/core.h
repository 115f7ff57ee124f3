// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <boost/json/array.hpp>

#include <pushrod/executor.h>

#include "engines/reference/worker.h"

namespace pushrod::engines::reference {

struct CollectiveResult {
  bool ok = true;
  boost::json::array values;  ///< one per worker
  std::string error;          ///< a worker's text, as the executor wraps it
};

/// One engine core: does its calls one after another and reads the workers' replies in worker
/// order. The first failure ends a call; replies of later workers stay queued and answer the
/// following calls, as in the servers. Control thread only; the executor outlives it.
class Core : public std::enable_shared_from_this<Core> {
 public:
  Core(Executor& executor, std::vector<Worker*> workers)
      : executor_(executor), workers_(std::move(workers)), lines_(workers_.size()) {}

  using Done = std::function<void(CollectiveResult)>;

  /// Queues a call to all workers.
  void collective(WorkerCall call, Done done);
  /// Queues something the core does by itself.
  void utility(std::function<void()> task);

  /// From now on no call is answered. What is pending stays pending.
  void freeze() { frozen_ = true; }

  /// Per worker, replies that will answer later calls.
  [[nodiscard]] std::vector<int> lag() const;

  [[nodiscard]] const std::vector<Worker*>& workers() const { return workers_; }

  std::string version = "default";

 private:
  struct Job {
    std::optional<WorkerCall> call;
    Done done;
    std::function<void()> task;
  };

  struct Line {
    std::deque<WorkerReply> replies;  ///< arrived, not read
    int owed = 0;                     ///< asked for, not read
  };

  void pump();
  void begin(const WorkerCall& call, Done done);
  void onReply(std::size_t worker, WorkerReply reply);
  void readReplies();
  void end(CollectiveResult result);

  Executor& executor_;
  std::vector<Worker*> workers_;
  std::vector<Line> lines_;
  std::deque<Job> jobs_;
  bool frozen_ = false;
  bool pumping_ = false;
  bool busy_ = false;        ///< a collective call is being read
  std::size_t reading_ = 0;  ///< the worker whose reply it waits for
  CollectiveResult result_;
  Done done_;
};

}  // namespace pushrod::engines::reference
