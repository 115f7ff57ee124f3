// SPDX-License-Identifier: Apache-2.0
#include "engines/vllm/reply_text.h"

#include <array>
#include <cstdint>

#include <boost/json/serialize.hpp>

#include "engines/vllm/json.h"

namespace pushrod::engines::vllm {

namespace {

namespace json = boost::json;

/// Bodies above it are quoted, not parsed: no error text needs more.
constexpr std::size_t kMaxParsed = 1 << 20;

/// Length of the valid UTF-8 character at the front, 0 when it is broken.
std::size_t utf8Length(std::string_view text) {
  const auto first = static_cast<unsigned char>(text.front());
  std::size_t length = 1;
  if (first < 0x80) {
    return 1;
  }
  if (first >= 0xC2 && first < 0xE0) {
    length = 2;
  } else if (first >= 0xE0 && first < 0xF0) {
    length = 3;
  } else if (first >= 0xF0 && first < 0xF5) {
    length = 4;
  } else {
    return 0;
  }
  if (text.size() < length) {
    return 0;
  }
  for (std::size_t i = 1; i < length; ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xC0U) != 0x80U) {
      return 0;
    }
  }
  return length;
}

bool isSpace(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\v' || c == '\f';
}

/// FastAPI's list of {"loc", "msg"}, or whatever else stands under "detail".
std::string detailText(const json::value& detail) {
  if (const auto text = stringOf(&detail)) {
    return *text;
  }
  std::string joined;
  if (const json::array* const list = detail.if_array()) {
    for (const json::value& entry : *list) {
      if (const auto text = stringOf(member(entry, "msg"))) {
        joined += (joined.empty() ? "" : "; ") + *text;
      }
    }
  }
  return joined.empty() ? json::serialize(detail) : joined;
}

std::string shapedText(const json::value& body) {
  if (const json::value* const error = member(body, "error")) {
    if (const auto text = stringOf(member(*error, "message"))) {
      return *text;
    }
    if (const auto text = stringOf(error)) {
      return *text;
    }
  }
  if (const json::value* const detail = member(body, "detail")) {
    return detailText(*detail);
  }
  return stringOf(member(body, "message")).value_or("");
}

struct Refusal {
  CallKind kind;
  std::string_view fragment;
  bool before023;  ///< the text of profiles whose failed update keeps the session
  bool from023;
};

constexpr std::array<Refusal, 8> kRefusals = {{
    {CallKind::kStart, "already active", true, true},
    // P31: neither comes with a resend.
    {CallKind::kStart, "no draft model", true, true},
    {CallKind::kStart, "does not support draft model weight updates", true, true},
    {CallKind::kUpdate, "must be called before update_weights", true, true},
    {CallKind::kFinish, "must be called before finish_weight_update", true, false},
    {CallKind::kFinish, "without a matching start_weight_update", false, true},
    // P2: the engine's host will not change in a resend.
    {CallKind::kUpdate, "no shared memory segment for host", true, true},
    {CallKind::kShutdown, "Cannot release a trainer connection", true, true},
}};

constexpr std::string_view kNotConfigured = "Weight transfer not configured";

bool reachesBackend(CallKind kind) {
  return kind == CallKind::kInit || kind == CallKind::kStart || kind == CallKind::kUpdate ||
         kind == CallKind::kFinish || kind == CallKind::kShutdown;
}

}  // namespace

std::string oneLine(std::string_view text) {
  std::string line;
  bool gap = false;
  while (!text.empty()) {
    const std::size_t length = utf8Length(text);
    const std::string_view piece = text.substr(0, length == 0 ? 1 : length);
    text.remove_prefix(piece.size());
    if (piece.size() == 1 && isSpace(piece.front())) {
      gap = !line.empty();
      continue;
    }
    const bool broken =
        length == 0 || static_cast<unsigned char>(piece.front()) < 0x20 || piece == "\x7f";
    if (line.size() + piece.size() + 4 > kMaxQuote) {
      return line + "...";
    }
    if (gap) {
      line += ' ';
      gap = false;
    }
    line += broken ? std::string_view("?") : piece;
  }
  return line;
}

std::string quoted(std::string_view text) {
  return '"' + oneLine(text) + '"';
}

std::string errorText(std::string_view body) {
  std::string text;
  if (body.size() <= kMaxParsed) {
    if (const auto value = parseJson(body)) {
      text = oneLine(shapedText(*value));
    }
  }
  if (text.empty()) {
    text = oneLine(body);
  }
  return text.empty() ? "(empty body)" : text;
}

bool isExecutorText(std::string_view text) {
  return text.find("Call to collective_rpc method failed") != std::string_view::npos ||
         text.find("Worker failed with error") != std::string_view::npos;
}

bool isRefusal(CallKind kind, std::string_view text, const EngineFeatures& features) {
  if (reachesBackend(kind) && text.find(kNotConfigured) != std::string_view::npos) {
    return true;
  }
  for (const Refusal& refusal : kRefusals) {
    const bool spoken = features.failedUpdateCloses ? refusal.from023 : refusal.before023;
    if (refusal.kind == kind && spoken && text.find(refusal.fragment) != std::string_view::npos) {
      return true;
    }
  }
  return false;
}

std::string redacted(std::string text, std::span<const std::string> secrets) {
  constexpr std::string_view kHidden = "<hidden>";
  for (const std::string& secret : secrets) {
    if (secret.empty()) {
      continue;
    }
    for (std::size_t at = text.find(secret); at != std::string::npos;
         at = text.find(secret, at + kHidden.size())) {
      text.replace(at, secret.size(), kHidden);
    }
  }
  return text;
}

}  // namespace pushrod::engines::vllm
