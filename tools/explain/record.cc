// SPDX-License-Identifier: Apache-2.0
#include "tools/explain/record.h"

#include <algorithm>
#include <utility>

#include "tools/explain/fields.h"

namespace pushrod::tools {

namespace {

namespace flight = orchestrator;
using flight::EventKind;
using flight::FlightEvent;
using flight::FlightKind;
using Kind = JsonNode::Kind;

constexpr std::size_t kMaxValues = 16384;  ///< JSON values of one line
constexpr std::size_t kMaxNames = 64;      ///< rows or orders of one step
constexpr std::uint64_t kMostU32 = std::numeric_limits<std::uint32_t>::max();

Phase phaseIn(Fields& fields) {
  return static_cast<Phase>(fields.choice(
      "phase", kPhaseCount, [](std::size_t i) { return phaseName(static_cast<Phase>(i)); }));
}

flight::Stage stageIn(Fields& fields) {
  return static_cast<flight::Stage>(fields.choice("stage", flight::kStageCount, [](std::size_t i) {
    return flight::stageName(static_cast<flight::Stage>(i));
  }));
}

std::uint32_t attemptIn(Fields& fields) {
  const auto attempt = static_cast<std::uint32_t>(fields.number("attempt", 2));
  return std::max<std::uint32_t>(attempt, 1);
}

std::string readHeader(const JsonNode& node, flight::FlightHeader& header) {
  Fields fields(node);
  if (fields.number("flight") != static_cast<std::uint64_t>(flight::kFlightFormat)) {
    fields.fail("flight", "is a format that this version does not read");
  }
  header.job = fields.text("job");
  header.push = fields.number("push");
  header.version = fields.text("version");
  header.outcome = fields.text("outcome");
  header.startedAt = fields.text("started_at");
  header.ranks = fields.rank("ranks");
  header.writer = fields.rank("writer");
  header.firstCause = fields.status("first_cause");
  if (const JsonNode* engines = fields.node("engines", Kind::kArray)) {
    for (const JsonNode& engine : engines->items) {
      if (engine.kind != Kind::kString) {
        fields.fail("engines", "is no list of names");
      }
      header.engines.push_back(engine.text);
    }
  }
  if (const JsonNode* missing = fields.node("missing", Kind::kArray)) {
    for (const JsonNode& each : missing->items) {
      Fields inner(each, "\"missing\": ");
      const int rank = inner.rank("rank");
      header.missing[rank] = inner.text("why");
      if (const std::string fault = inner.finish(); !fault.empty()) {
        return fault;
      }
    }
  }
  header.lines = fields.number("lines", kMaxFlightLines);
  return fields.finish();
}

std::string readState(Fields& fields, RecordedRank& rank) {
  flight::PushState& state = rank.base;
  state.phase = phaseIn(fields);
  state.stage = stageIn(fields);
  state.attempt = attemptIn(fields);
  state.voteStep = static_cast<std::uint32_t>(fields.number("step", kMostU32));
  state.stepIndex = fields.optionalNumber("step_index");
  state.tensors = fields.optionalNumber("tensors");
  state.leader = fields.flag("leader");
  state.packs = fields.flag("packs");
  state.draft = fields.flag("draft");
  state.goalBusy = fields.flag("goal_busy");
  state.callerBusy = fields.flag("caller_busy");
  state.stopAtEnd = fields.flag("stop_at_end");
  state.passingOn = fields.flag("passing_on");
  state.stopPass = fields.flag("stop_pass");
  state.peerStopped = fields.flag("peer_stopped");
  state.gatherFailed = fields.flag("gather_failed");
  state.agreementDead = fields.flag("agreement_dead");
  state.failed = fields.flag("failed");
  state.local = fields.status("local");
  state.pending = fields.status("pending");
  state.lost = fields.status("lost");
  state.first = fields.status("first");
  if (fields.has("steps")) {
    state.steps = fields.numbers("steps", flight::kMaxFlightSteps);
  }
  if (fields.has("draft_steps")) {
    state.draftSteps = fields.numbers("draft_steps", flight::kMaxFlightSteps);
  }
  rank.dropped = fields.optionalNumber("dropped");
  return fields.finish();
}

void readVerdict(Fields& fields, FlightEvent& event) {
  const JsonNode* node = fields.node("verdict", Kind::kObject);
  if (node == nullptr) {
    return;
  }
  Fields inner(*node, "\"verdict\": ");
  constexpr std::string_view kDecisions[] = {"go", "resend", "fail"};
  event.verdict.decision = static_cast<Decision>(inner.choice(
      "decision", std::size(kDecisions), [&](std::size_t i) { return kDecisions[i]; }));
  event.verdict.digestsEqual = !inner.has("differs");
  event.verdict.differingRank = inner.has("differs") ? inner.rank("differs") : -1;
  event.verdict.stopped = inner.flag("stopped");
  event.verdict.first = inner.status("first");
  if (const std::string fault = inner.finish(); !fault.empty()) {
    fields.fail("verdict", "is wrong: " + fault);
  }
}

void readTensor(Fields& fields, RecordedEvent& entry) {
  const JsonNode* node = fields.node("tensor", Kind::kObject);
  if (node == nullptr) {
    return;
  }
  Fields inner(*node, "\"tensor\": ");
  entry.event.tensor = static_cast<std::int64_t>(inner.number("index"));
  entry.tensor = std::to_string(entry.event.tensor);
  if (inner.has("name")) {
    entry.tensor += " " + inner.text("name");
    std::string shape;
    constexpr std::size_t kMostExtents = 64;
    for (const std::uint64_t extent : inner.numbers("shape", kMostExtents)) {
      shape += (shape.empty() ? "" : ", ") + std::to_string(extent);
    }
    entry.tensor += " [" + shape + "]";
    inner.number("bytes");
  }
  entry.tensor += entry.event.draft ? " of the draft model" : "";
  if (const std::string fault = inner.finish(); !fault.empty()) {
    fields.fail("tensor", "is wrong: " + fault);
  }
}

void readStep(Fields& fields, FlightEvent& event) {
  event.event = static_cast<EventKind>(fields.choice("on", flight::kEventCount, [](std::size_t i) {
    return flight::eventName(static_cast<EventKind>(i));
  }));
  event.what = fields.names("rows", kMaxNames);
  event.text = fields.has("orders") ? fields.names("orders", kMaxNames) : std::string();
  event.stepIndex = fields.optionalNumber("step_index");
  event.tensors = fields.optionalNumber("tensors");
  if (event.event == EventKind::kVerdict) {
    readVerdict(fields, event);
  }
}

void readEngine(Fields& fields, FlightEvent& event) {
  event.who = fields.optionalText("engine");
  event.what = fields.optionalText("call");
  event.text = fields.optionalText("text");
  event.size = fields.optionalNumber("text_bytes");
  event.http = static_cast<int>(fields.optionalNumber("http", 999));
  event.limit = static_cast<std::int64_t>(fields.optionalNumber("limit_ms"));
  event.declared = fields.optionalNumber("declared");
  event.actual = fields.optionalNumber("actual");
}

void readByKind(Fields& fields, FlightEvent& event) {
  switch (event.kind) {
    case FlightKind::kStep:
      readStep(fields, event);
      return;
    case FlightKind::kPlan:
      event.packs = fields.flag("packs");
      event.steps = fields.numbers("steps", flight::kMaxFlightSteps);
      if (fields.has("draft_steps")) {
        event.draftSteps = fields.numbers("draft_steps", flight::kMaxFlightSteps);
      }
      return;
    case FlightKind::kHook:
      return;
    case FlightKind::kOperation:
      event.what = fields.text("operation");
      return;
    case FlightKind::kRequest:
    case FlightKind::kReply:
    case FlightKind::kDropped:
      readEngine(fields, event);
      return;
    case FlightKind::kLink:
      event.sent = fields.flag("sent");
      event.what = fields.text("message");
      event.peer = fields.has("peer") ? fields.rank("peer") : -1;
      return;
  }
}

std::string readEvent(Fields& fields, RecordedEvent& entry) {
  FlightEvent& event = entry.event;
  event.kind =
      static_cast<FlightKind>(fields.choice("event", flight::kFlightKindCount, [](std::size_t i) {
        return flight::flightKindName(static_cast<FlightKind>(i));
      }));
  event.micros = static_cast<std::int64_t>(fields.number("t"));
  event.phase = phaseIn(fields);
  event.stage = stageIn(fields);
  event.attempt = attemptIn(fields);
  event.voteStep = static_cast<std::uint32_t>(fields.number("step", kMostU32));
  event.draft = fields.flag("draft");
  readByKind(fields, event);
  if (fields.has("tensor")) {
    readTensor(fields, entry);
  }
  if (fields.has("gathers")) {
    const std::vector<std::uint64_t> gathers = fields.numbers("gathers", 2);
    if (gathers.size() != 2) {
      fields.fail("gathers", "is no pair");
    } else {
      event.begun = gathers[0];
      event.returned = gathers[1];
    }
  }
  event.status = fields.status("status");
  return fields.finish();
}

/// One line that is not the first; the fault, or empty.
std::string readLine(const JsonNode& node, FlightFile& file) {
  Fields fields(node);
  const int rank = fields.rank("rank");
  const JsonNode* kind = node.find("event");
  if (kind != nullptr && kind->kind == Kind::kString && kind->text == "state") {
    if (file.ranks.contains(rank)) {
      return "rank " + std::to_string(rank) + " begins a second time";
    }
    fields.text("event");
    return readState(fields, file.ranks[rank]);
  }
  const auto known = file.ranks.find(rank);
  if (known == file.ranks.end()) {
    fields.fail("rank", "has no state line before its first event");
    return fields.finish();
  }
  RecordedEvent entry;
  entry.rank = rank;
  const std::string fault = readEvent(fields, entry);
  known->second.events.push_back(std::move(entry));
  return fault;
}

Status refused(const std::string& name, const std::string& why) {
  return {Code::kInvalidArgument, name + ": " + why};
}

}  // namespace

Result<FlightFile> parseFlight(std::string_view text, const std::string& name) {
  if (text.size() > kMaxFlightFile) {
    return refused(name,
                   "is larger than the " + std::to_string(kMaxFlightFile) +
                       " bytes that a flight record may have");
  }
  FlightFile file;
  std::uint64_t line = 0;
  while (!text.empty()) {
    ++line;
    const std::string where = "line " + std::to_string(line);
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos && line > 1) {
      return refused(name, where + " is cut off; is the file complete?");
    }
    if (std::min(end, text.size()) > kMaxFlightLine || line > kMaxFlightLines) {
      return refused(name, where + " is longer, or there are more, than in a flight record");
    }
    const auto node = parseStrictJson(text.substr(0, end), kMaxValues);
    if (!node) {
      return refused(name, where + " is no line of a flight record: " + node.status().message());
    }
    const std::string fault = line == 1 ? readHeader(*node, file.header) : readLine(*node, file);
    if (!fault.empty()) {
      return refused(name, where + " is no line of a flight record: " + fault);
    }
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  if (line == 0) {
    return refused(name, "is empty");
  }
  if (line - 1 != file.header.lines) {
    return refused(name,
                   "has " + std::to_string(line - 1) + " of the " +
                       std::to_string(file.header.lines) +
                       " lines that its first one tells of; is the file complete?");
  }
  return file;
}

}  // namespace pushrod::tools
