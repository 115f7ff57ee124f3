// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <boost/json/value.hpp>

#include "engines/receiver/shm_receiver.h"
#include "engines/receiver/tcp_receiver.h"
#include "engines/reference/journal.h"
#include "engines/reference/kept_bytes.h"
#include "engines/reference/profile.h"
#include "engines/reference/receive.h"

namespace pushrod::engines::reference {

/// What the executor can ask of a worker.
enum class Method {
  kInit,
  kShutdown,
  kStart,
  kStartDraft,
  kUpdate,
  kFinish,
  kFailUpdate,  ///< what a failed update leaves behind, without one
  kAttribute,
  kCheckHealth,
  kChecksums,
  kZero,
  kUnknown,
};

struct WorkerCall {
  Method method = Method::kCheckHealth;
  std::shared_ptr<const boost::json::value> info;  ///< kInit, kUpdate
  std::string name;                                ///< kAttribute, kUnknown
  ReceiveFault receive;                            ///< kUpdate
  int failWorker = -1;  ///< the only worker (counted over all cores) that raises; -1: none
};

struct WorkerReply {
  bool ok = true;
  boost::json::value value;
  std::string error;
};

/// Where a worker stands.
struct WorkerPlace {
  int index = 0;    ///< over all cores
  int rank = 0;     ///< within its core
  int perCore = 1;  ///< workers of a core
  int core = 0;     ///< data parallel index
  int tensorParallel = 1;
};

/// How the engine's weights come.
enum class Backend { kTcp, kShm };

/// What all workers of an engine share; outlives them.
struct WorkerShared {
  Profile profile;
  Backend backend = Backend::kTcp;
  std::string hostId;  ///< kShm: whose segment is read
  InitialContent initial;
  receiver::StopSignal stop;
  ByteBudget budget{std::int64_t{256} << 20U};
  std::unique_ptr<Journal> journal;
  std::function<void()> die;
  std::atomic<bool> hasDraft{false};
};

/// A copy of a worker's state for people and tests.
struct WorkerView {
  bool active = false;
  bool placeholders = false;
  bool torn = false;
  int connections = 0;
  std::map<std::string, std::string> weights;
  std::map<std::string, std::string> layers;
  std::map<std::string, std::string> draftWeights;
};

/// One worker process, played by a thread that does its calls one after another and may block in a
/// receive. The session rules are those of the contract's section 2.
class Worker {
 public:
  /// Called on the worker's thread.
  using Done = std::function<void(WorkerReply)>;

  Worker(WorkerShared& shared, const WorkerPlace& place);
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  /// The shared stop signal must have been raised; joins.
  ~Worker();

  /// Queues a call. False when too many are queued already. Any thread.
  bool submit(WorkerCall call, Done done);
  [[nodiscard]] WorkerView view() const;

  /// Whether a generation step would meet placeholders.
  [[nodiscard]] bool placeholders() const;

 private:
  struct Queued {
    WorkerCall call;
    Done done;
  };

  void run();
  WorkerReply handle(const WorkerCall& call);
  WorkerReply init(const WorkerCall& call);
  WorkerReply initTcp(const boost::json::value& info);
  WorkerReply shutdown();
  WorkerReply start(bool draft);
  WorkerReply update(const WorkerCall& call);
  WorkerReply failUpdate(std::string text);
  /// This worker's part of an update_info, which may be a list.
  Result<const boost::json::value*> pickUpdate(const boost::json::value& info) const;
  Status receive(const WorkerCall& call);
  Status receiveTcp(const boost::json::value& info, const ReceiveFault& fault);
  Status receiveShm(const boost::json::value& info, const ReceiveFault& fault);
  void declare(const std::vector<TensorSpec>& tensors);
  /// `src`: the source of the stream; -1: there is none.
  ReceiveHooks hooks(int src, const ReceiveFault& fault);
  void closeReceivers();
  WorkerReply finish();
  WorkerReply attribute(const std::string& name) const;
  WorkerReply checksums();
  WorkerReply injected(const WorkerCall& call);

  Model& target() { return draft_ ? draftModel_ : mainModel_; }

  WorkerShared& shared_;
  const WorkerPlace place_;
  receiver::TcpReceiver receiver_;
  receiver::ShmReceiver segments_;
  /// Last non-empty list per target and source; 0.33 reuses it.
  std::map<std::pair<bool, int>, std::vector<TensorSpec>> lastLists_;

  mutable std::mutex stateMutex_;  ///< guards the next four against view()
  bool active_ = false;
  bool draft_ = false;
  Model mainModel_;
  Model draftModel_;

  std::mutex queueMutex_;
  std::condition_variable wake_;
  std::deque<Queued> queue_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace pushrod::engines::reference
