// SPDX-License-Identifier: Apache-2.0
#include "python/src/coordinator_object.h"

#include <nanobind/stl/string.h>

#include "python/src/finalizing.h"
#include "python/src/interrupt_watch.h"

namespace pushrod::python {

namespace nb = nanobind;

namespace {

void require(const Status& status) {
  if (!status.ok()) {
    throw StatusError(status);
  }
}

Status wrongState(const std::string& text) {
  return Status(Code::kFailedPrecondition, text, Outcome::kNotSent);
}

Result<Rank> rankOf(const CoordinatorArguments& arguments) {
  if (!arguments.rank || !arguments.worldSize) {
    return Rank::fromEnvironment();
  }
  Result<Rank> rank = Rank::of(*arguments.rank, *arguments.worldSize);
  if (rank.ok() && arguments.localRank) {
    rank->localRank = *arguments.localRank;
  }
  return rank;
}

}  // namespace

/// While it lives the GIL is given away and the call is counted. Once the interpreter ends the GIL
/// is not asked for again.
class CoordinatorObject::Call {
 public:
  explicit Call(CoordinatorObject& owner) : owner_(owner), thread_(PyEval_SaveThread()) {
    const std::lock_guard lock(owner_.mutex_);
    ++owner_.calls_;
  }

  ~Call() {
    const bool last = isFinalizing();
    if (!last) {
      PyEval_RestoreThread(thread_);
    }
    {
      const std::lock_guard lock(owner_.mutex_);
      --owner_.calls_;
      owner_.changed_.notify_all();
    }
    if (last) {
      park();
    }
  }

  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

 private:
  CoordinatorObject& owner_;
  PyThreadState* thread_;
};

/// One thread's turn at what only one may do at a time.
class CoordinatorObject::Turn {
 public:
  explicit Turn(CoordinatorObject& owner) : owner_(owner) {
    owner.requireUsable();
    if (owner.busy_) {
      throw StatusError(wrongState(
          *owner.busy_ == std::this_thread::get_id()
              ? "the weights' iterator called the coordinator that is pushing them"
              : "another thread is in a push of this coordinator; push from one thread at a time"));
    }
    owner.busy_ = std::this_thread::get_id();
  }

  ~Turn() { owner_.busy_.reset(); }

  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  CoordinatorObject& owner_;
};

CoordinatorObject::CoordinatorObject(Config config, CoordinatorArguments arguments)
    : log_(std::move(arguments.log)) {
  Result<Rank> rank = rankOf(arguments);
  require(rank.status());
  rank_ = *rank;
  if (arguments.store) {
    config.ranks.store = *arguments.store;
  }
  const bool quiet = config.log.ranks == LogRanks::kFirst && rank_.rank != 0;
  const LogLevel level =
      quiet && config.log.level < LogLevel::kWarning ? LogLevel::kWarning : config.log.level;
  Status failed;
  {
    const nb::gil_scoped_release released;
    outbox_ = std::make_unique<Outbox>([this](const Message& message) { deliver(message); });
    sink_ = std::make_unique<OutboxSink>(*outbox_, level);
    CoordinatorOptions options;
    options.logSink = sink_.get();
    options.flightRecord = arguments.flightRecord;
    auto made = PushCoordinator::create(config, rank_, options);
    if (made.ok()) {
      coordinator_ = std::move(*made);
    } else {
      failed = made.status();
      outbox_.reset();
    }
  }
  require(failed);
}

CoordinatorObject::~CoordinatorObject() {
  // No call is out: each holds a reference to the object.
  static_cast<void>(end(Duration::zero()));
}

void CoordinatorObject::requireUsable() const {
  if (forked()) {
    throw StatusError(
        wrongState("this process was forked off the one that made the coordinator, and has none of "
                   "its threads and connections; make a new coordinator here"));
  }
  if (closing_) {
    throw StatusError(wrongState("the coordinator is closed"));
  }
}

void CoordinatorObject::abandon() {
  static_cast<void>(coordinator_.release());
  static_cast<void>(sink_.release());
  static_cast<void>(outbox_.release());
}

void CoordinatorObject::deliver(const Message& message) {
  try {
    switch (message.kind) {
      case Message::Kind::kLog:
        log_(rank_.rank, static_cast<int>(message.level), message.text);
        return;
      case Message::Kind::kAbort:
        if (abort_.is_valid()) {
          abort_();
        }
        return;
      case Message::Kind::kProgress:
        if (progress_.is_valid()) {
          const PushProgress& now = message.progress;
          progress_(std::string(phaseName(now.phase)),
                    now.attempt,
                    now.tensors,
                    now.bytes,
                    now.totalTensors,
                    now.totalBytes,
                    now.engines,
                    now.enginesReady);
        }
        return;
    }
  } catch (nb::python_error& error) {
    error.discard_as_unraisable("a function given to pushrod");
  }
}

void CoordinatorObject::connect() {
  const Turn turn(*this);
  Status status;
  {
    const Call call(*this);
    status = coordinator_->connect();
  }
  require(status);
}

Result<PushReport> CoordinatorObject::run(const PushRequest& request, bool watchInterrupt) {
  const Call call(*this);
  std::optional<InterruptWatch> watch;
  if (watchInterrupt) {
    watch.emplace([this] { coordinator_->cancel("interrupted (SIGINT)"); });
  }
  Result<PushReport> result = coordinator_->push(request);
  watch.reset();
  // What was said during the push is said before it returns.
  outbox_->flush(std::chrono::seconds(1));
  return result;
}

PushAnswer CoordinatorObject::push(PushArguments arguments) {
  const Turn turn(*this);
  abort_ = arguments.abort;
  progress_ = arguments.progress;
  PythonSource target(std::move(arguments.source), manifest_, outbox_.get());
  std::optional<PythonSource> draft;
  PushRequest request;
  request.version = arguments.version;
  request.weights = &target;
  if (arguments.draft) {
    draft.emplace(std::move(*arguments.draft), draftManifest_, outbox_.get());
    request.draftWeights = &*draft;
  }
  if (progress_.is_valid()) {
    request.progress = [this](const PushProgress& progress) {
      Message message;
      message.kind = Message::Kind::kProgress;
      message.progress = progress;
      outbox_->post(std::move(message));
    };
  }
  const Result<PushReport> result = run(request, arguments.watchInterrupt);
  target.closePass();
  PushAnswer told = answer(result);
  told.error = target.error();
  // All ranks have one outcome, so all skip the extra pass next time, or none does.
  const bool good = result.ok() && (result->outcome == PushOutcome::kDone ||
                                    result->outcome == PushOutcome::kRecovered);
  manifest_ = good ? target.declared() : nullptr;
  if (draft) {
    draft->closePass();
    draftManifest_ = good ? draft->declared() : nullptr;
    if (!told.error.is_valid()) {
      told.error = draft->error();
    }
  }
  abort_.reset();
  progress_.reset();
  return told;
}

PushAnswer CoordinatorObject::answer(const Result<PushReport>& result) {
  PushAnswer answer;
  if (!result.ok()) {
    answer.code = codeName(result.status().code());
    answer.message = result.status().message();
    return answer;
  }
  answer.report = result->toJson();
  answer.summary = result->summary();
  answer.outcome = pushOutcomeName(result->outcome);
  answer.code = codeName(result->firstCause.code());
  answer.message = result->firstCause.message();
  return answer;
}

void CoordinatorObject::setEngines(const std::vector<EngineConfig>& engines) {
  const Turn turn(*this);
  Status status;
  {
    const Call call(*this);
    status = coordinator_->setEngines(engines);
  }
  require(status);
}

void CoordinatorObject::cancel(const std::string& reason) {
  requireUsable();
  coordinator_->cancel(reason);
}

void CoordinatorObject::logState() {
  requireUsable();
  coordinator_->logState();
}

std::string CoordinatorObject::metricsAddress() const {
  requireUsable();
  return coordinator_->metricsAddress();
}

bool CoordinatorObject::close(Duration limit) {
  if (!forked() && busy_ && *busy_ == std::this_thread::get_id()) {
    throw StatusError(wrongState("the weights' iterator closes the coordinator that pushes them"));
  }
  return end(limit);
}

bool CoordinatorObject::end(Duration limit) {
  if (forked()) {
    abandon();
    return true;
  }
  closing_ = true;
  const nb::gil_scoped_release released;
  std::unique_lock lock(mutex_);
  if (calls_ != 0) {
    coordinator_->cancel("the coordinator is closed");
    changed_.wait_for(lock, limit, [this] { return calls_ == 0; });
  }
  const bool ended = calls_ == 0;
  lock.unlock();
  if (!ended) {
    abandon();
    return false;
  }
  coordinator_.reset();
  if (outbox_ != nullptr) {
    outbox_->flush(isFinalizing() ? Duration::zero() : Duration(1000));
  }
  sink_.reset();
  outbox_.reset();
  return true;
}

}  // namespace pushrod::python
