// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/flight/recorder.h"

#include <utility>

namespace pushrod::orchestrator {

namespace {

/// How much of a body is looked at: what an init request holds as well.
constexpr std::size_t kMaxScanned = std::size_t{64} << 10;

std::string bodyText(const Call& call) {
  if (call.body == nullptr) {
    if (call.draft) {
      return "of the draft model";
    }
    return call.hasVersion || call.kind == CallKind::kSetVersion
               ? flightText("version " + call.version)
               : flightText(call.tag);
  }
  const std::string_view body = *call.body;
  if (call.kind != CallKind::kInit) {
    return flightText(body.substr(0, kMaxFlightText));
  }
  return body.size() > kMaxScanned ? std::string() : flightText(withoutSecrets(body));
}

std::string_view linkName(LinkNews::Kind kind) {
  switch (kind) {
    case LinkNews::Kind::kStop:
      return "stop";
    case LinkNews::Kind::kHalt:
      return "halt";
    case LinkNews::Kind::kLost:
      return "lost";
    case LinkNews::Kind::kVerdict:
      return "verdict";
    case LinkNews::Kind::kOversleep:
      break;
  }
  return "oversleep";
}

/// Whether the event is about one tensor of the stream: the last one gathered, or the one awaited.
std::int64_t tensorOf(EventKind event, Phase phase, std::uint64_t tensors) {
  if (phase != Phase::kStream) {
    return -1;
  }
  switch (event) {
    case EventKind::kSourceItem:
    case EventKind::kPlaneDone:
    case EventKind::kPlaneFailed:
      return static_cast<std::int64_t>(tensors) - 1;
    case EventKind::kSourceFailed:
    case EventKind::kSourceEnd:
      return static_cast<std::int64_t>(tensors);
    default:
      return -1;
  }
}

}  // namespace

void FlightRecorder::begin(const PushState& base,
                           const std::vector<std::string>& engines,
                           std::function<std::uint64_t(std::size_t)> bytesSent) {
  began_ = clock_.now();
  beganMicros_ = std::chrono::duration_cast<std::chrono::microseconds>(
                     std::chrono::system_clock::now().time_since_epoch())
                     .count();
  place_ = base;
  ring_.reset(base);
  bytesSent_ = std::move(bytesSent);
  manifest_ = nullptr;
  draft_ = nullptr;
  operation_.reset();
  drain_.reset();
  engines_.clear();
  for (const std::string& name : engines) {
    engines_.emplace_back();
    engines_.back().name = name;
    engines_.back().movedAt = began_;
  }
  begun_ = returned_ = passBytes_ = 0;
  lastProgress_ = began_;
}

std::string FlightRecorder::encode(std::size_t budget) const {
  return ring_.encode(rank_, {manifest_.get(), draft_.get()}, budget);
}

std::int64_t FlightRecorder::micros() const {
  return beganMicros_ +
         std::chrono::duration_cast<std::chrono::microseconds>(clock_.now() - began_).count();
}

FlightEvent FlightRecorder::fresh(FlightKind kind) const {
  FlightEvent event;
  event.kind = kind;
  event.micros = micros();
  event.phase = place_.phase;
  event.stage = place_.stage;
  event.attempt = place_.attempt;
  event.voteStep = place_.voteStep;
  event.draft = place_.draft;
  event.begun = begun_;
  event.returned = returned_;
  return event;
}

const std::vector<FlightCall>& FlightRecorder::engines() {
  for (std::size_t i = 0; bytesSent_ && i < engines_.size(); ++i) {
    const std::uint64_t sent = bytesSent_(i);
    if (sent != engines_[i].moved) {
      engines_[i].moved = sent;
      engines_[i].movedAt = clock_.now();
    }
  }
  return engines_;
}

std::uint64_t FlightRecorder::declared(std::size_t engine) const {
  const Manifest* pass = manifest(place_.draft);
  return pass == nullptr ? 0 : pass->bytes() * static_cast<std::uint64_t>(engines_[engine].workers);
}

void FlightRecorder::onStep(const Event& event, const StepResult& result) {
  const PushState& state = result.state;
  place_.phase = state.phase;
  place_.stage = state.stage;
  place_.attempt = state.attempt;
  place_.voteStep = state.voteStep;
  place_.stepIndex = state.stepIndex;
  place_.tensors = state.tensors;
  place_.draft = state.draft;
  FlightEvent entry = fresh(FlightKind::kStep);
  entry.stepIndex = state.stepIndex;
  entry.tensors = state.tensors;
  entry.event = event.kind;
  entry.status = flightStatus(event.status);
  entry.verdict = event.verdict;
  entry.verdict.first = flightStatus(event.verdict.first);
  entry.tensor = tensorOf(event.kind, state.phase, state.tensors);
  for (const std::string_view row : result.rows) {
    entry.what += (entry.what.empty() ? "" : ",") + std::string(row);
  }
  for (const Action& action : result.actions) {
    entry.text += (entry.text.empty() ? "" : ",") + std::string(actionName(action.kind));
  }
  ring_.add(std::move(entry));
  next_.onStep(event, result);
}

void FlightRecorder::onOperation(ActionKind kind, Duration limit) {
  operation_ = FlightOperation{actionName(kind), clock_.now(), limit};
  begun_ += kind == ActionKind::kSourceNext ? 1U : 0U;
  next_.onOperation(kind, limit);
}

void FlightRecorder::onOperationEnd(ActionKind kind, const Status& status) {
  operation_.reset();
  if (status.ok()) {
    returned_ += kind == ActionKind::kSourceNext ? 1U : 0U;
    lastProgress_ = clock_.now();
  } else {
    FlightEvent entry = fresh(FlightKind::kOperation);
    entry.what = actionName(kind);
    entry.status = flightStatus(status);
    entry.tensor = kind == ActionKind::kSourceNext ? static_cast<std::int64_t>(place_.tensors) : -1;
    ring_.add(std::move(entry));
  }
  next_.onOperationEnd(kind, status);
}

void FlightRecorder::onDrain(Duration limit) {
  drain_ = FlightOperation{"drain", clock_.now(), limit};
  next_.onDrain(limit);
}

void FlightRecorder::onPlan(const std::vector<std::uint64_t>& steps,
                            const std::vector<std::uint64_t>& draftSteps,
                            bool packs) {
  FlightEvent entry = fresh(FlightKind::kPlan);
  entry.packs = packs;
  entry.steps = steps;
  entry.draftSteps = draftSteps;
  ring_.add(std::move(entry));
  next_.onPlan(steps, draftSteps, packs);
}

void FlightRecorder::onHook(bool running) {
  if (running) {
    operation_ = FlightOperation{"PhaseObserver", clock_.now(), Duration::zero()};
  } else {
    operation_.reset();
  }
  next_.onHook(running);
}

void FlightRecorder::onHookFailed(const Status& status) {
  FlightEvent entry = fresh(FlightKind::kHook);
  entry.status = flightStatus(status);
  ring_.add(std::move(entry));
  next_.onHookFailed(status);
}

void FlightRecorder::onLink(const LinkNews& news) {
  FlightEvent entry = fresh(FlightKind::kLink);
  entry.what = linkName(news.kind);
  entry.sent = news.sent;
  entry.peer = news.rank;
  entry.status = flightStatus(news.status);
  ring_.add(std::move(entry));
  next_.onLink(news);
}

void FlightRecorder::onPhase(Phase left, double seconds, Phase entered, std::uint32_t attempt) {
  drain_.reset();
  if (entered == Phase::kStream) {
    begun_ = returned_ = 0;
    // The draft's bytes are counted on from the target's.
    passBytes_ = place_.draft ? passBytes_ : 0;
    for (FlightCall& engine : engines_) {
      engine.moved = 0;
      engine.movedAt = clock_.now();
    }
  }
  lastProgress_ = clock_.now();
  next_.onPhase(left, seconds, entered, attempt);
}

void FlightRecorder::onCall(std::size_t engine, Goal goal, const Call& call, Deadline deadline) {
  FlightCall& track = engines_[engine];
  track.call = callName(call.kind);
  track.since = clock_.now();
  track.limit = deadline.remaining(clock_);
  track.out = true;
  FlightEvent entry = fresh(FlightKind::kRequest);
  entry.who = flightText(track.name);
  entry.what = track.call;
  entry.text = bodyText(call);
  entry.size = call.body == nullptr ? 0 : call.body->size();
  entry.limit = track.limit.count();
  ring_.add(std::move(entry));
  next_.onCall(engine, goal, call, deadline);
}

void FlightRecorder::onReply(
    std::size_t engine, Goal goal, const Call& call, const Reply& reply, const Ledger& ledger) {
  FlightCall& track = engines_[engine];
  track.out = false;
  if (ledger.identity != nullptr) {
    track.workers = ledger.identity->worldSize;
  }
  FlightEvent entry = fresh(FlightKind::kReply);
  entry.who = flightText(track.name);
  entry.what = callName(call.kind);
  entry.text = reply.flag ? (*reply.flag ? "true" : "false") : flightText(reply.text);
  entry.size = reply.text.size();
  entry.http = reply.httpStatus;
  entry.status = flightStatus(reply.status);
  if (call.kind == CallKind::kUpdate) {
    entry.declared = declared(engine);
    entry.actual = engines()[engine].moved;
  }
  ring_.add(std::move(entry));
  lastProgress_ = clock_.now();
  next_.onReply(engine, goal, call, reply, ledger);
}

void FlightRecorder::onDropped(std::size_t engine, Phase phase, const Status& cause) {
  FlightEvent entry = fresh(FlightKind::kDropped);
  entry.who = flightText(engines_[engine].name);
  entry.status = flightStatus(cause);
  ring_.add(std::move(entry));
  next_.onDropped(engine, phase, cause);
}

void FlightRecorder::onDeclared(const std::shared_ptr<const Manifest>& manifest,
                                const std::shared_ptr<const Manifest>& draft) {
  manifest_ = manifest;
  draft_ = draft;
  next_.onDeclared(manifest, draft);
}

void FlightRecorder::onTensor(std::uint64_t tensors, std::uint64_t bytes) {
  passBytes_ = bytes;
  next_.onTensor(tensors, bytes);
}

}  // namespace pushrod::orchestrator
