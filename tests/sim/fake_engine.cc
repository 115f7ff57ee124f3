// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/fake_engine.h"

#include <algorithm>
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

FakeEngine::FakeEngine(Executor& executor, std::string name, bool oldProfile, Complain complain)
    : executor_(executor),
      name_(std::move(name)),
      oldProfile_(oldProfile),
      complain_(std::move(complain)) {}

void FakeEngine::submit(Call call, Answer answer) {
  queue_.push_back(Job{std::move(call), std::move(answer)});
  next();
}

void FakeEngine::next() {
  if (serving_ || queue_.empty()) {
    return;
  }
  serving_ = true;
  executor_.postAt(executor_.now() + kWork, [this, life = life_] {
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
  job.answer(std::move(reply));
  next();
}

void FakeEngine::fail(const std::string& text) {
  Reply reply;
  reply.httpStatus = 500;
  reply.status = Status(Code::kUnavailable, text, Outcome::kUnknown);
  done(std::move(reply));
}

Reply FakeEngine::identify() const {
  Reply reply = okReply(CallKind::kIdentify);
  EngineIdentity identity;
  identity.release = oldProfile_ ? "0.22.1" : "0.32.0";
  identity.features.profile = oldProfile_ ? "0.22" : "0.32";
  identity.features.failedUpdateCloses = !oldProfile_;
  identity.features.hasShutdown = !oldProfile_;
  identity.model = "m";
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
      break;
    case CallKind::kReadVersion:
      reply.text = label_;
      break;
    case CallKind::kPause:
      paused_ = true;
      break;
    case CallKind::kResume:
      ++resumes_;
      paused_ = false;
      break;
    case CallKind::kSetVersion:
      label_ = call.version;
      break;
    case CallKind::kShutdown:
      channel_ = 0;
      channelReady_ = false;
      break;
    case CallKind::kInit:
      channel_ = std::stoull(*call.body);
      channelReady_ = false;
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
    case CallKind::kMeasureLag:
    case CallKind::kFlush:
    case CallKind::kWake:
    case CallKind::kChecksums:
      break;
  }
  done(std::move(reply));
}

void FakeEngine::start() {
  if (session_) {
    complain_("a second start reached " + name_ + " inside its session");
    fail("already active");
    return;
  }
  if (!paused_) {
    complain_("a start reached " + name_ + " while it generates");
  }
  ++starts_;
  session_ = true;
  complete_ = false;
  received_ = 0;
  placeholders_ = true;
  std::fill(pieces_.begin(), pieces_.end(), kTorn);
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
  if (memory_ != nullptr) {
    executor_.postAt(executor_.now() + kReading, [this, life = life_] {
      if (life == life_) {
        updateChunk(SimChunks::chunkOf(*queue_.front().call.body));
      }
    });
    return;
  }
  reading_ = true;
  received_ = 0;
}

void FakeEngine::updateChunk(std::size_t tensor) {
  const std::optional<int> content = memory_(tensor);
  if (!content) {
    complain_(name_ + " was told of a chunk whose memory is written again already");
    endUpdate("the chunk is gone");
    return;
  }
  if (tensor != received_) {
    complain_(name_ + " was told of chunk " + std::to_string(tensor) + " after " +
              std::to_string(received_) + " chunks");
  }
  load(tensor, *content);
  complete_ = ++received_ == kTensors;
  done(okReply(CallKind::kUpdate));
}

void FakeEngine::receive(std::size_t tensor, int content) {
  load(tensor, content);
  if (++received_ == kTensors) {
    endUpdate("");
  }
}

void FakeEngine::load(std::size_t tensor, int content) {
  const std::size_t layer = tensor / kPerLayer;
  pieces_[tensor] = content;
  placeholders_ = true;
  if (++counters_[layer] >= kPerLayer) {
    // Complete by count: whatever piece is missing is uninitialised.
    for (std::size_t i = layer * kPerLayer; i < (layer + 1) * kPerLayer; ++i) {
      weights_[i] = pieces_[i];
      pieces_[i] = kTorn;
    }
    counters_[layer] = 0;
  }
}

void FakeEngine::endUpdate(const std::string& error) {
  reading_ = false;
  if (error.empty()) {
    complete_ = true;
    done(okReply(CallKind::kUpdate));
    return;
  }
  session_ = oldProfile_ && session_;
  fail(error);
}

void FakeEngine::finish() {
  const Call& call = queue_.front().call;
  if (!session_) {
    complain_("a finish reached " + name_ + " without a session");
    fail("finish_weight_update without a matching start_weight_update");
    return;
  }
  if (call.hasVersion && !complete_) {
    complain_("promise 5: a version reached " + name_ + " with an incomplete stream");
  }
  for (std::size_t layer = 0; layer < kLayers; ++layer) {
    if (counters_[layer] == 0) {
      continue;
    }
    // Partly loaded: processed as it is. Pieces of this session stand, the others are lost.
    for (std::size_t i = layer * kPerLayer; i < (layer + 1) * kPerLayer; ++i) {
      weights_[i] = pieces_[i];
    }
    counters_[layer] = 0;
  }
  session_ = false;
  placeholders_ = false;
  if (call.hasVersion) {
    label_ = call.version;
  }
  done(okReply(CallKind::kFinish));
}

void FakeEngine::channelOpen(std::uint64_t channel) {
  if (channel_ != channel || channelReady_) {
    return;
  }
  channelReady_ = true;
  if (serving_ && queue_.front().call.kind == CallKind::kInit) {
    done(okReply(CallKind::kInit));
  }
}

void FakeEngine::channelDied(std::uint64_t channel) {
  if (channel_ != channel) {
    return;
  }
  channel_ = 0;
  channelReady_ = false;
  if (reading_) {
    endUpdate("the sender's channel ended");
  } else if (serving_ && queue_.front().call.kind == CallKind::kInit) {
    fail("the sender's channel ended");
  }
}

void FakeEngine::crash(bool forEver) {
  ++life_;
  ++restarts_;
  queue_.clear();
  serving_ = false;
  boot();
  alive_ = !forEver;
}

void FakeEngine::boot() {
  session_ = false;
  paused_ = false;
  label_ = "default";
  channel_ = 0;
  channelReady_ = false;
  reading_ = false;
  complete_ = false;
  placeholders_ = false;
  std::fill(weights_.begin(), weights_.end(), 0);
  std::fill(counters_.begin(), counters_.end(), 0);
}

bool FakeEngine::whole() const {
  return !placeholders_ && weights_.front() != kTorn &&
         std::all_of(weights_.begin(), weights_.end(), [this](int each) {
           return each == weights_.front();
         });
}

}  // namespace pushrod::sim
