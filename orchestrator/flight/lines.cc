// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/flight/lines.h"

#include <algorithm>
#include <concepts>
#include <string_view>

#include "common/log.h"

namespace pushrod::orchestrator {

namespace {

/// Names of tensors are cut at this many bytes.
constexpr std::size_t kMaxName = 512;

/// Writes one JSON object.
class LineWriter {
 public:
  void raw(std::string_view key, std::string_view value) {
    text_ += text_.size() == 1 ? "" : ",";
    text_ += '"';
    text_ += key;
    text_ += "\":";
    text_ += value;
  }

  void field(std::string_view key, std::string_view value) { raw(key, common::jsonQuoted(value)); }

  template <std::integral Number>
  void field(std::string_view key, Number value) {
    raw(key, std::to_string(value));
  }

  void flag(std::string_view key, bool value) {
    if (value) {
      raw(key, "true");
    }
  }

  /// Left out where it says nothing.
  void unlessEmpty(std::string_view key, std::string_view value) {
    if (!value.empty()) {
      field(key, value);
    }
  }

  template <std::integral Number>
  void unlessZero(std::string_view key, Number value) {
    if (value != 0) {
      field(key, value);
    }
  }

  void status(std::string_view key, const Status& status);

  [[nodiscard]] std::string object() const { return text_ + "}"; }

  [[nodiscard]] std::string line() const { return text_ + "}\n"; }

 private:
  std::string text_ = "{";
};

void LineWriter::status(std::string_view key, const Status& status) {
  if (status.ok()) {
    return;
  }
  LineWriter inner;
  inner.field("code", codeName(status.code()));
  inner.field("outcome", outcomeName(status.outcome()));
  if (status.origin().rank >= 0) {
    inner.field("rank", status.origin().rank);
  }
  inner.unlessEmpty("engine", flightText(status.origin().engine));
  if (status.origin().phase != Phase::kIdle) {
    inner.field("phase", phaseName(status.origin().phase));
  }
  inner.unlessZero("attempt", status.origin().attempt);
  inner.field("message", flightText(status.message()));
  raw(key, inner.object());
}

std::string verdictText(const Verdict& verdict) {
  constexpr std::string_view kDecisions[] = {"go", "resend", "fail"};
  LineWriter inner;
  inner.field("decision", kDecisions[static_cast<std::size_t>(verdict.decision)]);
  if (!verdict.digestsEqual) {
    inner.field("differs", std::max(verdict.differingRank, 0));
  }
  inner.flag("stopped", verdict.stopped);
  inner.status("first", verdict.first);
  return inner.object();
}

template <typename Numbers>
std::string numbersText(const Numbers& numbers) {
  std::string text = "[";
  for (const auto number : numbers) {
    text += (text.size() == 1 ? "" : ",") + std::to_string(number);
  }
  return text + "]";
}

/// The list of a comma separated text.
std::string namesText(std::string_view names) {
  std::string text = "[";
  while (!names.empty()) {
    const std::size_t comma = names.find(',');
    text += (text.size() == 1 ? "" : ",") + common::jsonQuoted(names.substr(0, comma));
    names.remove_prefix(comma == std::string_view::npos ? names.size() : comma + 1);
  }
  return text + "]";
}

std::string tensorText(std::int64_t index, const Manifest* manifest) {
  LineWriter inner;
  inner.field("index", index);
  if (manifest != nullptr && static_cast<std::size_t>(index) < manifest->tensors.size()) {
    const TensorSpec& tensor = manifest->tensors[static_cast<std::size_t>(index)];
    inner.field("name", flightText(tensor.name, kMaxName));
    inner.raw("shape", numbersText(tensor.shape));
    inner.field("bytes", tensor.bytes());
  }
  return inner.object();
}

void writeStep(LineWriter& line, const FlightEvent& event) {
  line.field("on", eventName(event.event));
  line.raw("rows", namesText(event.what));
  if (!event.text.empty()) {
    line.raw("orders", namesText(event.text));
  }
  line.unlessZero("step_index", event.stepIndex);
  line.unlessZero("tensors", event.tensors);
  if (event.event == EventKind::kVerdict) {
    line.raw("verdict", verdictText(event.verdict));
  }
}

void writeEngine(LineWriter& line, const FlightEvent& event) {
  line.unlessEmpty("engine", event.who);
  line.unlessEmpty("call", event.what);
  line.unlessEmpty("text", event.text);
  line.unlessZero("text_bytes", event.size);
  line.unlessZero("http", event.http);
  line.unlessZero("limit_ms", event.limit);
  line.unlessZero("declared", event.declared);
  line.unlessZero("actual", event.actual);
}

void writePlan(LineWriter& line, const FlightEvent& event) {
  line.flag("packs", event.packs);
  line.raw("steps", numbersText(event.steps));
  if (!event.draftSteps.empty()) {
    line.raw("draft_steps", numbersText(event.draftSteps));
  }
}

void writeLink(LineWriter& line, const FlightEvent& event) {
  line.flag("sent", event.sent);
  line.field("message", event.what);
  if (event.peer >= 0) {
    line.field("peer", event.peer);
  }
}

}  // namespace

std::string headerLine(const FlightHeader& header) {
  LineWriter line;
  line.field("flight", kFlightFormat);
  line.field("job", header.job);
  line.field("push", header.push);
  line.field("version", flightText(header.version));
  line.field("outcome", header.outcome);
  line.field("started_at", header.startedAt);
  line.field("ranks", header.ranks);
  line.field("writer", header.writer);
  line.status("first_cause", header.firstCause);
  std::string engines = "[";
  for (const std::string& name : header.engines) {
    engines += (engines.size() == 1 ? "" : ",") + common::jsonQuoted(flightText(name));
  }
  line.raw("engines", engines + "]");
  std::string missing = "[";
  for (const auto& [rank, why] : header.missing) {
    LineWriter inner;
    inner.field("rank", rank);
    inner.field("why", flightText(why));
    missing += (missing.size() == 1 ? "" : ",") + inner.object();
  }
  line.raw("missing", missing + "]");
  line.field("lines", header.lines);
  return line.line();
}

std::string stateLine(int rank, const PushState& state, std::uint64_t dropped) {
  LineWriter line;
  line.field("event", "state");
  line.field("rank", rank);
  line.field("phase", phaseName(state.phase));
  line.field("stage", stageName(state.stage));
  line.field("attempt", state.attempt);
  line.field("step", state.voteStep);
  line.unlessZero("step_index", state.stepIndex);
  line.unlessZero("tensors", state.tensors);
  line.flag("leader", state.leader);
  line.flag("packs", state.packs);
  line.flag("draft", state.draft);
  line.flag("goal_busy", state.goalBusy);
  line.flag("caller_busy", state.callerBusy);
  line.flag("stop_at_end", state.stopAtEnd);
  line.flag("passing_on", state.passingOn);
  line.flag("stop_pass", state.stopPass);
  line.flag("peer_stopped", state.peerStopped);
  line.flag("gather_failed", state.gatherFailed);
  line.flag("agreement_dead", state.agreementDead);
  line.flag("failed", state.failed);
  line.status("local", state.local);
  line.status("pending", state.pending);
  line.status("lost", state.lost);
  line.status("first", state.first);
  if (!state.steps.empty()) {
    line.raw("steps", numbersText(state.steps));
  }
  if (!state.draftSteps.empty()) {
    line.raw("draft_steps", numbersText(state.draftSteps));
  }
  line.unlessZero("dropped", dropped);
  return line.line();
}

std::string eventLine(int rank, const FlightEvent& event, const FlightManifests& manifests) {
  LineWriter line;
  line.field("event", flightKindName(event.kind));
  line.field("t", event.micros);
  line.field("rank", rank);
  line.field("phase", phaseName(event.phase));
  line.field("stage", stageName(event.stage));
  line.field("attempt", event.attempt);
  line.field("step", event.voteStep);
  line.flag("draft", event.draft);
  switch (event.kind) {
    case FlightKind::kStep:
      writeStep(line, event);
      break;
    case FlightKind::kPlan:
      writePlan(line, event);
      break;
    case FlightKind::kHook:
      break;
    case FlightKind::kOperation:
      line.field("operation", event.what);
      break;
    case FlightKind::kRequest:
    case FlightKind::kReply:
    case FlightKind::kDropped:
      writeEngine(line, event);
      break;
    case FlightKind::kLink:
      writeLink(line, event);
      break;
  }
  if (event.tensor >= 0) {
    const Manifest* manifest = event.draft ? manifests.draft : manifests.target;
    line.raw("tensor", tensorText(event.tensor, manifest));
  }
  if (event.begun != 0) {
    line.raw("gathers", numbersText(std::vector<std::uint64_t>{event.begun, event.returned}));
  }
  line.status("status", event.status);
  return line.line();
}

}  // namespace pushrod::orchestrator
