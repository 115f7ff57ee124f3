// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <nanobind/nanobind.h>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <unistd.h>
#include <utility>

#include <pushrod/pushrod.h>

#include "python/src/outbox.h"
#include "python/src/python_source.h"

namespace pushrod::python {

/// A Status on its way to Python: becomes pushrod._core.StatusError(code, message).
class StatusError : public std::runtime_error {
 public:
  explicit StatusError(Status status)
      : std::runtime_error(status.message()), status_(std::move(status)) {}

  [[nodiscard]] const Status& status() const { return status_; }

 private:
  Status status_;
};

/// What a coordinator is made of, beside its configuration.
struct CoordinatorArguments {
  std::optional<int> rank, worldSize;  ///< both or none: then the environment says
  std::optional<int> localRank;
  std::optional<std::string> store;  ///< instead of ranks.store
  std::string flightRecord;
  nanobind::object log;  ///< called with (rank, level, text)
};

/// One push's arguments.
struct PushArguments {
  std::string version;
  SourceHooks source;
  std::optional<SourceHooks> draft;  ///< the draft model's
  nanobind::object abort, progress;  ///< null: none
  bool watchInterrupt = false;  ///< this is the main thread, and SIGINT raises KeyboardInterrupt
};

/// What push() tells Python. `report` is empty when there is none.
struct PushAnswer {
  std::string report, summary, outcome, code, message;
  nanobind::object error;  ///< the exception that left the trainer's functions; null: none
};

/// Pushrod's coordinator as Python sees it. Functions are called with the GIL held and give it away
/// while they wait. A process that was forked off cannot use it: its threads stayed behind.
class CoordinatorObject {
 public:
  /// Throws StatusError, as the functions below do.
  CoordinatorObject(Config config, CoordinatorArguments arguments);
  ~CoordinatorObject();
  CoordinatorObject(const CoordinatorObject&) = delete;
  CoordinatorObject& operator=(const CoordinatorObject&) = delete;

  void connect();
  [[nodiscard]] PushAnswer push(PushArguments arguments);
  void setEngines(const std::vector<EngineConfig>& engines);
  void cancel(const std::string& reason);
  void logState();
  /// Ends what runs, waiting for it for at most `limit`, and lets go of everything. False when
  /// something still ran: its threads are then left to the process's end.
  bool close(Duration limit);

  [[nodiscard]] std::string metricsAddress() const;

  [[nodiscard]] const Rank& rank() const { return rank_; }

 private:
  class Call;
  class Turn;

  /// What a push's threads do with a request, until it has ended.
  [[nodiscard]] Result<PushReport> run(const PushRequest& request, bool watchInterrupt);
  [[nodiscard]] static PushAnswer answer(const Result<PushReport>& result);
  void deliver(const Message& message);
  void requireUsable() const;
  /// As close().
  bool end(Duration limit);
  /// Without ending its threads: they are not this process's, or never end.
  void abandon();

  [[nodiscard]] bool forked() const { return pid_ != ::getpid(); }

  const pid_t pid_ = ::getpid();
  Rank rank_;
  nanobind::object log_, abort_, progress_;  ///< called on the outbox's thread, with the GIL
  std::unique_ptr<Outbox> outbox_;
  std::unique_ptr<OutboxSink> sink_;
  std::unique_ptr<PushCoordinator> coordinator_;
  /// Of the last good push, so that all ranks have them or none has.
  std::shared_ptr<const Manifest> manifest_, draftManifest_;

  // With the GIL.
  bool closing_ = false;
  std::optional<std::thread::id> busy_;  ///< the thread inside connect() or push()

  std::mutex mutex_;
  std::condition_variable changed_;
  int calls_ = 0;  ///< that are out without the GIL
};

}  // namespace pushrod::python
