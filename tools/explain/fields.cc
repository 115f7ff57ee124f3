// SPDX-License-Identifier: Apache-2.0
#include "tools/explain/fields.h"

#include <pushrod/phase.h>

namespace pushrod::tools {

namespace {

using Kind = JsonNode::Kind;
constexpr int kMostRanks = 1 << 20;

}  // namespace

Fields::Fields(const JsonNode& node, std::string where) : node_(node), where_(std::move(where)) {
  if (node.kind != Kind::kObject) {
    fault_ = where_ + "is no object";
  }
}

void Fields::fail(std::string_view key, const std::string& what) {
  if (fault_.empty()) {
    fault_ = where_ + quotedName(key) + " " + what;
  }
}

const JsonNode* Fields::node(std::string_view key, Kind kind) {
  read_.emplace(key);
  const JsonNode* member = node_.find(key);
  if (member == nullptr) {
    fail(key, "is missing");
  } else if (member->kind != kind) {
    fail(key, "has another type than it must have");
    member = nullptr;
  }
  return member;
}

std::string Fields::text(std::string_view key) {
  const JsonNode* member = node(key, Kind::kString);
  return member == nullptr ? std::string() : member->text;
}

std::uint64_t Fields::number(std::string_view key, std::uint64_t most) {
  const JsonNode* member = node(key, Kind::kInteger);
  if (member == nullptr) {
    return 0;
  }
  if (member->negative || member->magnitude > most) {
    fail(key, "is out of range");
    return 0;
  }
  return member->magnitude;
}

int Fields::rank(std::string_view key) {
  return static_cast<int>(number(key, kMostRanks));
}

bool Fields::flag(std::string_view key) {
  if (!has(key)) {
    return false;
  }
  const JsonNode* member = node(key, Kind::kBool);
  return member != nullptr && member->magnitude == 1;
}

std::uint64_t Fields::optionalNumber(std::string_view key, std::uint64_t most) {
  return has(key) ? number(key, most) : 0;
}

std::string Fields::optionalText(std::string_view key) {
  return has(key) ? text(key) : std::string();
}

std::vector<std::uint64_t> Fields::numbers(std::string_view key, std::size_t most) {
  std::vector<std::uint64_t> list;
  const JsonNode* member = node(key, Kind::kArray);
  if (member == nullptr) {
    return list;
  }
  for (const JsonNode& item : member->items) {
    if (item.kind != Kind::kInteger || item.negative || list.size() == most) {
      fail(key, "is no list of at most " + std::to_string(most) + " numbers");
      return {};
    }
    list.push_back(item.magnitude);
  }
  return list;
}

std::string Fields::names(std::string_view key, std::size_t most) {
  const JsonNode* member = node(key, Kind::kArray);
  std::string joined;
  for (std::size_t i = 0; member != nullptr && i < member->items.size(); ++i) {
    const JsonNode& item = member->items[i];
    if (item.kind != Kind::kString || i == most) {
      fail(key, "is no list of at most " + std::to_string(most) + " names");
      return {};
    }
    joined += (i == 0 ? "" : ",") + item.text;
  }
  return joined;
}

Status Fields::status(std::string_view key) {
  if (!has(key)) {
    return {};
  }
  const JsonNode* member = node(key, Kind::kObject);
  if (member == nullptr) {
    return {};
  }
  Fields inner(*member, where_ + quotedName(key) + ": ");
  const auto code = static_cast<Code>(
      inner.choice("code", static_cast<std::size_t>(Code::kInternal) + 1, [](std::size_t i) {
        return codeName(static_cast<Code>(i));
      }));
  const auto outcome = static_cast<Outcome>(
      inner.choice("outcome", static_cast<std::size_t>(Outcome::kUnknown) + 1, [](std::size_t i) {
        return outcomeName(static_cast<Outcome>(i));
      }));
  Origin origin;
  origin.rank = inner.has("rank") ? inner.rank("rank") : -1;
  origin.engine = inner.optionalText("engine");
  if (inner.has("phase")) {
    origin.phase = static_cast<Phase>(inner.choice(
        "phase", kPhaseCount, [](std::size_t i) { return phaseName(static_cast<Phase>(i)); }));
  }
  constexpr std::uint64_t kMostAttempts = 2;
  origin.attempt = static_cast<int>(inner.optionalNumber("attempt", kMostAttempts));
  const std::string message = inner.text("message");
  if (code == Code::kOk) {
    inner.fail("code", "is ok, which is left out");
  }
  if (const std::string fault = inner.finish(); !fault.empty() && fault_.empty()) {
    fault_ = fault;
  }
  return Status(code, message, outcome).at(origin);
}

std::string Fields::finish() {
  for (const std::string& key : node_.keys) {
    if (!read_.contains(key)) {
      fail(key, "is no member of such a line");
    }
  }
  return fault_;
}

}  // namespace pushrod::tools
