// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/flight/event.h"

#include <algorithm>
#include <array>
#include <utility>

#include "orchestrator/fsm/push_table.h"

namespace pushrod::orchestrator {

namespace {

/// Length of the UTF-8 character that begins `text`; 0: none does.
std::size_t characterLength(std::string_view text) {
  const auto at = [text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = at(0);
  if (first < 0x80) {
    return 1;
  }
  const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : first >= 0xC2 ? 2 : 0;
  if (length == 0 || first > 0xF4 || text.size() < length) {
    return 0;
  }
  for (std::size_t i = 1; i < length; ++i) {
    if ((at(i) & 0xC0U) != 0x80U) {
      return 0;
    }
  }
  // Overlong forms, surrogates and what lies behind U+10FFFF.
  const bool wrong = (first == 0xE0 && at(1) < 0xA0) || (first == 0xED && at(1) > 0x9F) ||
                     (first == 0xF0 && at(1) < 0x90) || (first == 0xF4 && at(1) > 0x8F);
  return wrong ? 0 : length;
}

/// Behind a JSON string that begins at `from`.
std::size_t stringEnd(std::string_view text, std::size_t from) {
  for (std::size_t i = from + 1; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text[i] == '"') {
      return i + 1;
    }
  }
  return std::string_view::npos;
}

bool secretKey(std::string_view quoted) {
  constexpr std::array<std::string_view, 4> kSecret = {
      R"("channel")", R"("nccl_unique_id_b64")", R"("unique_id")", R"("token")"};
  return std::find(kSecret.begin(), kSecret.end(), quoted) != kSecret.end();
}

}  // namespace

std::string_view flightKindName(FlightKind kind) {
  constexpr std::array<std::string_view, kFlightKindCount> kNames = {
      "step", "plan", "hook", "operation", "request", "reply", "dropped", "link"};
  return kNames.at(static_cast<std::size_t>(kind));
}

std::string flightText(std::string_view text, std::size_t limit) {
  std::string out;
  out.reserve(std::min(text.size(), limit));
  while (!text.empty() && out.size() < limit) {
    const std::size_t length = characterLength(text);
    const bool control = static_cast<unsigned char>(text[0]) < 0x20 || text[0] == 0x7F;
    if (length == 0 || control) {
      out += control && (text[0] == '\n' || text[0] == '\t') ? ' ' : '?';
      text.remove_prefix(1);
      continue;
    }
    if (out.size() + length > limit) {
      break;
    }
    out += text.substr(0, length);
    text.remove_prefix(length);
  }
  return out;
}

Status flightStatus(const Status& status) {
  if (status.ok()) {
    return {};
  }
  Origin origin = status.origin();
  origin.engine = flightText(origin.engine);
  return Status(status.code(), flightText(status.message()), status.outcome()).at(origin);
}

std::string withoutSecrets(std::string_view body) {
  if (body.empty() || body.front() != '{') {
    return {};
  }
  std::string out;
  bool secret = false;  // the value that comes is one
  for (std::size_t at = 0; at < body.size();) {
    if (body[at] != '"') {
      secret = secret && body[at] != ',' && body[at] != '}';
      out += body[at++];
      continue;
    }
    const std::size_t end = stringEnd(body, at);
    if (end == std::string_view::npos) {
      return {};
    }
    const std::string_view quoted = body.substr(at, end - at);
    const std::size_t next = body.find_first_not_of(" \t\r\n", end);
    const bool key = next != std::string_view::npos && body[next] == ':';
    out += secret && !key ? std::string("\"(hidden)\"") : std::string(quoted);
    secret = key ? secretKey(quoted) : secret;
    at = end;
  }
  return out;
}

void advance(PushState& state, const FlightEvent& event) {
  switch (event.kind) {
    case FlightKind::kStep:
      state = step(std::move(state), Event{event.event, event.status, event.verdict}).state;
      return;
    case FlightKind::kPlan:
      state.steps = event.steps;
      state.draftSteps = event.draftSteps;
      state.packs = event.packs;
      return;
    case FlightKind::kHook:
      state.local.merge(event.status);
      return;
    case FlightKind::kOperation:
    case FlightKind::kRequest:
    case FlightKind::kReply:
    case FlightKind::kDropped:
    case FlightKind::kLink:
      return;
  }
}

}  // namespace pushrod::orchestrator
