// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/fake_engine.h"

#include <algorithm>
#include <sstream>
#include <utility>

#include "tests/sim/sim_chunks.h"

namespace pushrod::sim {

namespace {

constexpr Duration kWork{1};
/// Longer than the ranks take to come to the chunk after the next: who writes a region without
/// waiting for the answer is seen.
constexpr Duration kReading{25};

Reply okReply(CallKind kind) {
  Reply reply;
  reply.kind = kind;
  reply.httpStatus = 200;
  return reply;
}

}  // namespace

FakeEngine::FakeEngine(Executor& executor, Pace& pace, Setup setup, Complain complain)
    : executor_(executor), pace_(pace), setup_(std::move(setup)), complain_(std::move(complain)) {}

void FakeEngine::find(const EngineStart& start) {
  label_ = start.label;
  asleep_ = start.asleep;
  cacheAsleep_ = start.asleep;
  session_ = start.session;
  paused_ = start.paused || start.session || start.asleep;
  draft_ = start.draft;
  if (start.session) {
    model().leaveHalf();
  }
}

void FakeEngine::submit(Call call, Answer answer, FaultKind how) {
  if (frozen_ || !alive_) {
    return;
  }
  queue_.push_back(Job{std::move(call), std::move(answer), how});
  next();
}

void FakeEngine::next() {
  if (serving_ || queue_.empty()) {
    return;
  }
  serving_ = true;
  const TimePoint from = std::max(executor_.now(), stalledUntil_);
  executor_.postAt(from + pace_.of(kWork, setup_.slowness), [this, life = life_] {
    if (life == life_) {
      serve();
    }
  });
}

void FakeEngine::done(Reply reply) {
  Job job = std::move(queue_.front());
  queue_.pop_front();
  serving_ = false;
  reply.kind = job.call.kind;
  if (job.answer != nullptr) {
    job.answer(std::move(reply));
  }
  next();
}

void FakeEngine::fail(const std::string& text) {
  // The executor takes the first worker's failure and leaves the others' replies unread (P16).
  lag_ += setup_.workers > 1 && queue_.front().answer != nullptr ? 1 : 0;
  Reply reply;
  reply.httpStatus = 500;
  reply.status = Status(Code::kUnavailable, text, Outcome::kUnknown);
  done(std::move(reply));
}

Reply FakeEngine::identify() const {
  Reply reply = okReply(CallKind::kIdentify);
  EngineIdentity identity;
  identity.release = setup_.oldProfile ? "0.22.1" : "0.32.0";
  identity.features.profile = setup_.oldProfile ? "0.22" : "0.32";
  identity.features.failedUpdateCloses = !setup_.oldProfile;
  identity.features.hasShutdown = !setup_.oldProfile;
  identity.features.hasVersion = setup_.versions;
  identity.features.hasChecker = !setup_.oldProfile;
  identity.dtype = "float32";
  identity.features.hasDraft = !setup_.oldProfile;
  identity.worldSize = setup_.workers;
  identity.asleep = asleep();
  identity.model = model_;
  reply.identity = std::make_shared<const EngineIdentity>(identity);
  return reply;
}

void FakeEngine::serve() {
  const Call& call = queue_.front().call;
  Reply reply = okReply(call.kind);
  switch (call.kind) {
    case CallKind::kIdentify:
      done(identify());
      return;
    case CallKind::kReadPaused:
      reply.flag = paused_;
      break;
    case CallKind::kReadSession:
      reply.flag = session_;
      forgot_ = false;
      break;
    case CallKind::kReadVersion:
      reply.text = label_;
      break;
    case CallKind::kPause:
      servePause();
      break;
    case CallKind::kResume:
      ++resumes_;
      ++pauses_;
      paused_ = false;
      break;
    case CallKind::kSetVersion:
      label_ = call.version;
      break;
    case CallKind::kShutdown:
      channel_ = 0;
      opened_.clear();
      channelReady_ = false;
      break;
    case CallKind::kInit:
      serveInit();
      return;  // answered when the channel is open, or dies
    case CallKind::kStart:
      start();
      return;
    case CallKind::kUpdate:
      update();
      return;
    case CallKind::kFinish:
      finish();
      return;
    case CallKind::kWake:
      (call.tag == "weights" ? asleep_ : cacheAsleep_) = false;
      // Old releases let the scheduler run as soon as a part is awake.
      surprised_ = surprised_ || (paused_ && setup_.oldProfile);
      paused_ = paused_ && !setup_.oldProfile;
      break;
    case CallKind::kMeasureLag:
    case CallKind::kFlush:
      break;
    case CallKind::kChecksums:
      if (lag_ > 0) {
        complain_("P16: " + name() +
                  " was asked for checksums, whose answer would be another call's");
      }
      reply.checksums = checksums();
      break;
  }
  done(std::move(reply));
}

/// Of the target only, as real servers; several workers hold a shard of each tensor.
std::shared_ptr<const std::map<std::string, std::string>> FakeEngine::checksums() const {
  std::map<std::string, std::string> told;
  for (int worker = 0; worker < setup_.workers; ++worker) {
    for (std::size_t i = 0; i < target_.tensors(); ++i) {
      told["dp0:pp0:pcp0:tp" + std::to_string(worker) + ":" + kTargetNames.at(i)] =
          digestOf(target_.weights()[i]);
    }
  }
  return std::make_shared<const std::map<std::string, std::string>>(std::move(told));
}

void FakeEngine::servePause() {
  ++pauses_;
  if (setup_.pauseTakes == Duration::zero()) {
    paused_ = true;
    surprised_ = false;
    return;
  }
  executor_.postAt(executor_.now() + setup_.pauseTakes, [this, life = life_, pause = pauses_] {
    if (life == life_ && pause == pauses_) {
      paused_ = true;
      surprised_ = false;
    }
  });
}

void FakeEngine::serveInit() {
  channelReady_ = false;
  opened_.clear();
  // "7 2": the channel and how many send in it.
  std::istringstream body(*queue_.front().call.body);
  body >> channel_ >> sources_;
  if (queue_.front().how == FaultKind::kOneSided) {
    channel_ = 0;
    done(okReply(CallKind::kInit));
  } else if (!dial_(channel_)) {
    channel_ = 0;
    fail("nobody listens at the sender's address");
  }
}

void FakeEngine::start() {
  const bool twice = queue_.front().answer == nullptr;
  if (session_) {
    if (!twice) {
      complain_("a second start reached " + name() + " inside its session");
    }
    fail("already active");
    return;
  }
  if (!paused_ && !surprised_) {
    complain_("a start reached " + name() + " while it generates");
  }
  if (asleep_) {
    complain_("P9: a start reached " + name() + " asleep");
  }
  ++starts_;
  forgot_ = false;
  session_ = true;
  complete_ = false;
  received_ = 0;
  draft_ = queue_.front().call.draft;
  model().begin();
  done(okReply(CallKind::kStart));
}

void FakeEngine::update() {
  if (!session_) {
    fail("start_weight_update must be called before update_weights");
    return;
  }
  if (!channelReady_) {
    endUpdate("the weight transfer engine is not initialized");
    return;
  }
  const FaultKind how = queue_.front().how;
  if (memory_ != nullptr) {
    if (how == FaultKind::kStopsReading) {
      stall(std::chrono::seconds(90));
    }
    const TimePoint from = std::max(executor_.now(), stalledUntil_);
    // One that stalls is given up, and its chunk's memory with it.
    const bool late = from > executor_.now();
    executor_.postAt(from + kReading, [this, late, life = life_] {
      if (life == life_) {
        updateChunk(SimChunks::chunkOf(*queue_.front().call.body), late);
      }
    });
    return;
  }
  run_ = runOf(*queue_.front().call.body);
  if (how == FaultKind::kAnswersEarly) {
    done(okReply(CallKind::kUpdate));
    return;
  }
  if (!opened_.contains(run_.source)) {
    endUpdate("the source's connection is closed");
    return;
  }
  streaming_ = true;
  reading_ = how != FaultKind::kStopsReading;
}

/// "run 2 4 1": the tensors 2 and 3 come from source 1. Any other body: all of them from the only
/// one.
FakeEngine::Run FakeEngine::runOf(const std::string& body) {
  Run run{0, model().tensors(), 0};
  std::istringstream text(body);
  if (std::string word; text >> word && word == "run") {
    text >> run.first >> run.end >> run.source;
  }
  return run;
}

void FakeEngine::updateChunk(std::size_t tensor, bool late) {
  const std::optional<int> content = memory_(tensor);
  if (!content) {
    if (late) {
      endUpdate("the chunk is gone");
      return;
    }
    complain_(name() + " was told of a chunk whose memory is written again already");
    endUpdate("the chunk is gone");
    return;
  }
  if (tensor != received_) {
    complain_(name() + " was told of chunk " + std::to_string(tensor) + " after " +
              std::to_string(received_) + " chunks");
  }
  model().load(tensor, *content);
  complete_ = ++received_ == model().tensors();
  done(okReply(CallKind::kUpdate));
}

void FakeEngine::receive(std::size_t tensor, int content) {
  if (tensor < run_.first || tensor >= run_.end) {
    complain_(name() + " was sent tensor " + std::to_string(tensor) + " in another's update");
  }
  model().load(tensor, content);
  ++received_;
  if (tensor + 1 == run_.end) {
    endUpdate("");
  }
}

void FakeEngine::endUpdate(const std::string& error) {
  streaming_ = false;
  reading_ = false;
  if (error.empty()) {
    complete_ = received_ == model().tensors();
    done(okReply(CallKind::kUpdate));
    return;
  }
  session_ = setup_.oldProfile && session_;
  fail(error);
}

void FakeEngine::finish() {
  const Call& call = queue_.front().call;
  if (!session_) {
    if (queue_.front().answer != nullptr && !forgot_) {
      complain_("a finish reached " + name() + " without a session");
    }
    fail("finish_weight_update without a matching start_weight_update");
    return;
  }
  if (call.hasVersion && !complete_) {
    complain_("promise 5: a version reached " + name() + " with an incomplete stream");
  }
  if (call.hasVersion && setup_.draft && !draft_) {
    complain_("P31: a version reached " + name() + " before its draft model");
  }
  model().finish();
  if (queue_.front().how == FaultKind::kCorrupt && setup_.corruptible && complete_) {
    target_.corrupt();
  }
  session_ = false;
  if (call.hasVersion && queue_.front().how != FaultKind::kKeepsLabel) {
    label_ = call.version;
  }
  done(okReply(CallKind::kFinish));
}

void FakeEngine::channelOpen(std::uint64_t channel, int source) {
  if (channel_ != channel || !opened_.insert(source).second || opened_.size() < sources_) {
    return;
  }
  channelReady_ = true;
  if (serving_ && queue_.front().call.kind == CallKind::kInit) {
    done(okReply(CallKind::kInit));
  }
}

void FakeEngine::channelDied(std::uint64_t channel, int source) {
  if (channel_ != channel) {
    return;
  }
  opened_.erase(source);
  const bool joins = serving_ && queue_.front().call.kind == CallKind::kInit;
  if (joins || opened_.empty()) {
    channel_ = 0;
    channelReady_ = false;
  }
  // Whoever reads from one source does not notice that another's connection is closed.
  if (streaming_ && run_.source == source) {
    endUpdate("the sender's channel ended");
  } else if (joins) {
    fail("the sender's channel ended");
  }
}

}  // namespace pushrod::sim
