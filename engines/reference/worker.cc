// SPDX-License-Identifier: Apache-2.0
#include "engines/reference/worker.h"

#include <exception>
#include <utility>

#include "engines/reference/digest.h"
#include "engines/reference/loading_sink.h"

namespace pushrod::engines::reference {

namespace json = boost::json;

namespace {

constexpr std::size_t kMostQueued = 1024;

WorkerReply raise(std::string text) {
  return {false, nullptr, std::move(text)};
}

}  // namespace

Worker::Worker(WorkerShared& shared, const WorkerPlace& place)
    : shared_(shared),
      place_(place),
      receiver_(shared.stop),
      segments_(shared.stop, shared.hostId),
      mainModel_(shared.profile, shared.initial, shared.backend == Backend::kTcp),
      draftModel_(shared.profile, InitialContent{}, shared.backend == Backend::kTcp),
      thread_([this] { run(); }) {}

Worker::~Worker() {
  {
    const std::lock_guard lock(queueMutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

bool Worker::submit(WorkerCall call, Done done) {
  {
    const std::lock_guard lock(queueMutex_);
    if (queue_.size() >= kMostQueued) {
      return false;
    }
    queue_.push_back({std::move(call), std::move(done)});
  }
  wake_.notify_all();
  return true;
}

void Worker::run() {
  while (true) {
    Queued next;
    {
      std::unique_lock lock(queueMutex_);
      wake_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
      if (stopping_) {
        return;
      }
      next = std::move(queue_.front());
      queue_.pop_front();
    }
    WorkerReply reply;
    try {
      reply = handle(next.call);
    } catch (const std::exception& thrown) {
      // Memory, at worst: this call fails as any other.
      reply = raise(thrown.what());
    }
    if (next.done) {
      next.done(std::move(reply));
    }
  }
}

WorkerReply Worker::handle(const WorkerCall& call) {
  if (call.failWorker == place_.index) {
    return injected(call);
  }
  switch (call.method) {
    case Method::kInit:
      return init(call);
    case Method::kShutdown:
      return shutdown();
    case Method::kStart:
      return start(false);
    case Method::kStartDraft:
      return start(true);
    case Method::kUpdate:
      return update(call);
    case Method::kFinish:
      return finish();
    case Method::kFailUpdate:
      return active_ ? failUpdate("injected failure") : WorkerReply{};
    case Method::kAttribute:
      return attribute(call.name);
    case Method::kCheckHealth:
      return {};
    case Method::kChecksums:
      return checksums();
    case Method::kZero: {
      const std::lock_guard lock(stateMutex_);
      mainModel_.zero();
      return {};
    }
    case Method::kUnknown:
      break;
  }
  return raise("'Worker' object has no attribute '" + call.name + "'");
}

WorkerReply Worker::injected(const WorkerCall& call) {
  const std::string text = "injected failure of worker " + std::to_string(place_.index);
  if (call.method == Method::kUpdate && active_) {
    return failUpdate(text);
  }
  return raise(text);
}

void Worker::closeReceivers() {
  receiver_.close();
  segments_.close();
}

WorkerReply Worker::init(const WorkerCall& call) {
  lastLists_.clear();
  closeReceivers();
  if (shared_.backend == Backend::kTcp) {
    return initTcp(*call.info);
  }
  if (Status sound = receiver::checkShmInit(*call.info); !sound.ok()) {
    return raise(sound.message());
  }
  segments_.open();
  return {};
}

WorkerReply Worker::initTcp(const json::value& value) {
  auto info = receiver::TcpInit::parse(value);
  if (!info.ok()) {
    return raise(info.error().message());
  }
  const std::int64_t rank =
      info->rankOffset + std::int64_t{place_.core} * place_.perCore + place_.rank;
  if (rank < 0 || rank > UINT32_MAX) {
    return raise("worker rank " + std::to_string(rank) + " is out of range");
  }
  {
    const std::lock_guard lock(stateMutex_);
    mainModel_.setWholeLists(info->sources.size() == 1);
    draftModel_.setWholeLists(info->sources.size() == 1);
  }
  const Status joined = receiver_.join(*info, static_cast<std::uint32_t>(rank));
  shared_.journal->write("joined",
                         {{"worker", place_.index},
                          {"rank", rank},
                          {"sources", info->sources.size()},
                          {"ok", joined.ok()},
                          {"reason", joined.message()}});
  return joined.ok() ? WorkerReply{} : raise(joined.message());
}

WorkerReply Worker::shutdown() {
  if (active_) {
    return raise("Cannot release a trainer connection during a weight update");
  }
  closeReceivers();
  return {};
}

WorkerReply Worker::start(bool draft) {
  const std::lock_guard lock(stateMutex_);
  if (active_) {
    return raise(
        "start_weight_update called while a weight update is already active. Call "
        "finish_weight_update first.");
  }
  if (draft && !shared_.hasDraft) {
    return raise("Draft model weight update requested, but no draft model is configured.");
  }
  draft_ = draft;
  target().begin();
  segments_.beginSession();
  active_ = true;
  return {};
}

Result<const json::value*> Worker::pickUpdate(const json::value& info) const {
  if (!info.is_array() || !shared_.profile.listPayload) {
    return &info;
  }
  // Up to 0.30 dense replicas all read the entries of replica 0.
  const int replica = shared_.profile.listByIndex ? place_.core : 0;
  const auto entry = static_cast<std::size_t>(replica) * static_cast<std::size_t>(place_.perCore) +
                     static_cast<std::size_t>(place_.rank);
  const json::array& list = info.get_array();
  if (entry >= list.size()) {
    return Status(Code::kInvalidArgument, "list index out of range");
  }
  return &list[entry];
}

WorkerReply Worker::update(const WorkerCall& call) {
  if (!active_) {
    return raise("start_weight_update must be called before update_weights.");
  }
  if (Status done = receive(call); !done.ok()) {
    return failUpdate(done.message());
  }
  return {};
}

Status Worker::receive(const WorkerCall& call) {
  const auto info = pickUpdate(*call.info);
  if (!info.ok()) {
    return info.error();
  }
  return shared_.backend == Backend::kTcp ? receiveTcp(**info, call.receive)
                                          : receiveShm(**info, call.receive);
}

Status Worker::receiveTcp(const json::value& info, const ReceiveFault& fault) {
  auto update = receiver::TcpUpdate::parse(info);
  if (!update.ok()) {
    return update.error();
  }
  if (!receiver_.joined()) {
    return {Code::kFailedPrecondition,
            "TCP weight transfer not initialized. Call init_transfer_engine() first."};
  }
  if (shared_.profile.reusesMetadata) {
    auto& last = lastLists_[{draft_, update->src}];
    if (update->tensors.empty()) {
      update->tensors = last;
    } else {
      last = update->tensors;
    }
  }
  declare(update->tensors);
  if (fault.kind == ReceiveFault::Kind::kSkip) {
    return {};
  }
  LoadingSink sink(shared_.budget, fault, hooks(update->src, fault));
  return receiver_.receive(*update, sink);
}

Status Worker::receiveShm(const json::value& info, const ReceiveFault& fault) {
  const auto update = receiver::ShmUpdate::parse(info);
  if (!update.ok()) {
    return update.error();
  }
  if (!segments_.opened()) {
    return {Code::kFailedPrecondition,
            "SHM weight transfer not initialized. Call init_transfer_engine() first."};
  }
  declare(update->tensors);
  if (fault.kind == ReceiveFault::Kind::kSkip) {
    segments_.skip();
    return {};
  }
  // The rule was matched to this chunk already.
  LoadingSink sink(shared_.budget, {fault.kind, segments_.nextChunk()}, hooks(-1, fault));
  return segments_.receive(*update, sink);
}

void Worker::declare(const std::vector<TensorSpec>& tensors) {
  const std::lock_guard lock(stateMutex_);
  for (const TensorSpec& tensor : tensors) {
    target().declare(tensor);
  }
}

ReceiveHooks Worker::hooks(int src, const ReceiveFault& fault) {
  ReceiveHooks hooks;
  hooks.die = shared_.die;
  const bool corrupts = fault.kind == ReceiveFault::Kind::kCorrupt;
  // The rule was matched to a chunk of shm already; a stream's chunk is found here.
  const auto spoils = std::make_shared<bool>(corrupts && src < 0);
  hooks.chunk = [this, src, spoils, corrupts, at = fault.afterChunks](std::uint32_t index,
                                                                      std::uint64_t bytes) {
    *spoils = *spoils || (corrupts && src >= 0 && index == at);
    json::object line = {{"worker", place_.index}, {"index", index}, {"bytes", bytes}};
    if (src >= 0) {
      line["src"] = src;
    }
    shared_.journal->write("chunk", line);
  };
  hooks.tensor = [this, spoils](LoadedTensor tensor) {
    if (*spoils && tensor.spec.bytes() > 0) {
      *spoils = false;
      spoil(tensor, shared_.budget);
    }
    json::array shape(tensor.spec.shape.begin(), tensor.spec.shape.end());
    shared_.journal->write("tensor",
                           {{"worker", place_.index},
                            {"name", tensor.spec.name},
                            {"dtype", dtypeName(tensor.spec.dtype)},
                            {"shape", std::move(shape)},
                            {"sha256", tensor.sha256}});
    const std::lock_guard lock(stateMutex_);
    return target().accept(tensor);
  };
  return hooks;
}

WorkerReply Worker::failUpdate(std::string text) {
  // A shm worker holds nothing that a failure could break.
  receiver_.close();
  const std::lock_guard lock(stateMutex_);
  if (shared_.profile.failedUpdateCloses) {
    active_ = false;
    draft_ = false;
  }
  return raise(std::move(text));
}

WorkerReply Worker::finish() {
  const std::lock_guard lock(stateMutex_);
  if (!active_) {
    return raise(shared_.profile.minor <= 22
                     ? "start_weight_update must be called before finish_weight_update."
                     : "finish_weight_update called without a matching start_weight_update.");
  }
  target().finish();
  active_ = false;
  draft_ = false;
  return {};
}

WorkerReply Worker::attribute(const std::string& name) const {
  if (name == "rank") {
    return {true, place_.rank, ""};
  }
  if (name == "_weight_update_active") {
    return {true, active_ ? "True" : "False", ""};
  }
  return raise("'Worker' object has no attribute '" + name + "'");
}

WorkerReply Worker::checksums() {
  const std::lock_guard lock(stateMutex_);
  if (mainModel_.placeholders()) {
    return raise("Cannot copy out of meta tensor; no data!");
  }
  const int tp = place_.tensorParallel;
  const std::string shard = std::to_string(place_.rank % tp);
  const std::string prefix = "dp" + std::to_string(place_.core) + ":pp" +
                             std::to_string(place_.rank / tp) + ":pcp0:tp" + shard + ":";
  json::object all;
  for (const auto& [name, digest] : mainModel_.runtimeDigests()) {
    if (digest.empty()) {
      return raise("checksum of " + name + " unknown: its parts did not fit the byte budget");
    }
    // A worker of several holds a shard, whose digest differs from the whole tensor's.
    std::string key = prefix;
    key.append(name);
    std::string content = digest;
    content.append(":").append(shard).append("/").append(std::to_string(tp));
    all[key] = tp == 1 ? digest : Sha256::of(content);
  }
  return {true, std::move(all), ""};
}

bool Worker::placeholders() const {
  const std::lock_guard lock(stateMutex_);
  return mainModel_.placeholders() || draftModel_.placeholders();
}

WorkerView Worker::view() const {
  const std::lock_guard lock(stateMutex_);
  WorkerView view;
  view.active = active_;
  view.placeholders = mainModel_.placeholders() || draftModel_.placeholders();
  view.torn = mainModel_.torn();
  view.connections = receiver_.connections();
  view.weights = mainModel_.digests();
  view.layers = mainModel_.layers();
  view.draftWeights = draftModel_.digests();
  return view;
}

}  // namespace pushrod::engines::reference
