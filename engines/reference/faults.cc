// SPDX-License-Identifier: Apache-2.0
#include "engines/reference/faults.h"

#include <algorithm>
#include <array>
#include <utility>

#include <boost/json/serialize.hpp>

#include "engines/reference/routes.h"

namespace pushrod::engines::reference {

namespace json = boost::json;

namespace {

constexpr std::array<std::pair<std::string_view, Action>, 17> kActions = {
    {{"status", Action::kStatus},
     {"hang", Action::kHang},
     {"delay", Action::kDelay},
     {"reset", Action::kReset},
     {"close", Action::kClose},
     {"die", Action::kDie},
     {"apply_reset", Action::kApplyReset},
     {"raw", Action::kRaw},
     {"trickle", Action::kTrickle},
     {"stop_reading", Action::kStopReading},
     {"fail_after_chunks", Action::kFailAfterChunks},
     {"die_after_chunks", Action::kDieAfterChunks},
     {"ok_without_reading", Action::kOkWithoutReading},
     {"version", Action::kVersion},
     {"worker_fails", Action::kWorkerFails},
     {"freeze_core", Action::kFreezeCore},
     {"corrupt", Action::kCorrupt}}};

bool isReceiveAction(Action action) {
  return action == Action::kStopReading || action == Action::kFailAfterChunks ||
         action == Action::kDieAfterChunks || action == Action::kOkWithoutReading ||
         action == Action::kCorrupt;
}

Status bad(const std::string& text) {
  return {Code::kInvalidArgument, text};
}

std::string asText(const json::value& value) {
  if (value.is_string()) {
    return {value.get_string().data(), value.get_string().size()};
  }
  return json::serialize(value);
}

Status readCount(const json::value& value, std::int64_t least, std::int64_t& into) {
  if (!value.is_int64() || value.get_int64() < least || value.get_int64() > 1'000'000'000) {
    return bad("must be an integer from " + std::to_string(least));
  }
  into = value.get_int64();
  return {};
}

Status readNth(const json::value& value, FaultRule& rule) {
  if (value.is_string() && value.get_string() == "every") {
    rule.every = true;
    return {};
  }
  rule.nth.clear();
  const json::array single = {value};
  for (const json::value& entry : value.is_array() ? value.get_array() : single) {
    std::int64_t number = 0;
    if (Status read = readCount(entry, 1, number); !read.ok()) {
      return bad("must be \"every\", a positive integer or a list of them");
    }
    rule.nth.push_back(static_cast<std::uint64_t>(number));
  }
  return {};
}

Status readAction(const json::value& value, FaultRule& rule) {
  const auto* found = std::find_if(kActions.begin(), kActions.end(), [&](const auto& entry) {
    return value.is_string() && asText(value) == entry.first;
  });
  if (found == kActions.end()) {
    return bad("is no action this engine knows");
  }
  rule.action = found->second;
  return {};
}

Status readNumber(std::string_view key, const json::value& value, FaultRule& rule) {
  std::int64_t number = 0;
  if (key == "seconds") {
    const double seconds = value.is_number() ? value.to_number<double>() : -1;
    if (!(seconds >= 0 && seconds <= 86400)) {
      return bad("must be a number of seconds, at most a day");
    }
    rule.seconds = seconds;
    return {};
  }
  const bool status = key == "status";
  if (Status read = readCount(value, status ? 100 : (key == "per_second" ? 1 : 0), number);
      !read.ok()) {
    return read;
  }
  if (status) {
    rule.status = static_cast<int>(std::min<std::int64_t>(number, 999));
  } else if (key == "after_chunks") {
    rule.afterChunks = static_cast<std::uint32_t>(number);
  } else if (key == "worker") {
    rule.worker = static_cast<int>(number);
  } else {
    rule.perSecond = static_cast<int>(number);
  }
  return {};
}

Status readKey(std::string_view key, const json::value& value, FaultRule& rule) {
  if (key == "nth") {
    return readNth(value, rule);
  }
  if (key == "do") {
    return readAction(value, rule);
  }
  if (key == "seconds" || key == "status" || key == "after_chunks" || key == "worker" ||
      key == "per_second") {
    return readNumber(key, value, rule);
  }
  if (key == "body") {
    rule.body = asText(value);
    return {};
  }
  if (key == "value" && value.is_null()) {
    return {};
  }
  const std::array<std::pair<std::string_view, std::string*>, 3> texts = {
      {{"route", &rule.route}, {"ctype", &rule.contentType}, {"bytes", &rule.bytes}}};
  for (const auto& [name, into] : texts) {
    if (key == name && value.is_string()) {
      *into = asText(value);
      return {};
    }
  }
  if (key == "value" && value.is_string()) {
    rule.value = asText(value);
    return {};
  }
  return bad("is unknown or has the wrong type");
}

Status checkRule(FaultRule& rule) {
  if (!rule.route.empty() && rule.route.front() == '/') {
    rule.route.erase(0, 1);
  }
  if (!isRoute(rule.route)) {
    return bad("route \"" + rule.route + "\" does not exist");
  }
  if (isReceiveAction(rule.action) && rule.route != "update_weights") {
    return bad(std::string(actionName(rule.action)) + " goes with update_weights only");
  }
  if (rule.action == Action::kVersion && rule.route != "finish_weight_update" &&
      rule.route != "weight_info" && rule.route != "update_weight_version") {
    return bad("version goes with finish_weight_update, weight_info and update_weight_version");
  }
  if (rule.action == Action::kWorkerFails && !isCollectiveRoute(rule.route)) {
    return bad("worker_fails goes only with routes that ask the workers");
  }
  return {};
}

Result<FaultRule> parseRule(const json::value& value) {
  if (!value.is_object()) {
    return bad("must be an object");
  }
  FaultRule rule;
  const json::object& object = value.get_object();
  if (!object.contains("route") || !object.contains("do")) {
    return bad("needs route and do");
  }
  for (const auto& entry : object) {
    const std::string_view key(entry.key().data(), entry.key().size());
    if (Status read = readKey(key, entry.value(), rule); !read.ok()) {
      return read.prefixed(key);
    }
  }
  if (Status sound = checkRule(rule); !sound.ok()) {
    return sound;
  }
  return rule;
}

}  // namespace

std::string_view actionName(Action action) {
  for (const auto& [name, known] : kActions) {
    if (known == action) {
      return name;
    }
  }
  return "";
}

Result<FaultTable> FaultTable::parse(const json::value& rules) {
  constexpr std::size_t kMostRules = 1000;
  if (!rules.is_array() || rules.get_array().size() > kMostRules) {
    return bad("faults must be a list of at most 1000 rules");
  }
  FaultTable table;
  for (const json::value& value : rules.get_array()) {
    auto rule = parseRule(value);
    if (!rule.ok()) {
      return rule.error().prefixed("fault " + std::to_string(table.entries_.size() + 1));
    }
    table.entries_.push_back({std::move(*rule), 0});
  }
  return table;
}

std::optional<FaultRule> FaultTable::match(std::string_view route,
                                           std::optional<std::uint32_t> chunk) {
  std::optional<FaultRule> hit;
  for (Entry& entry : entries_) {
    if (entry.rule.route != route) {
      continue;
    }
    const bool ofSession = chunk && isReceiveAction(entry.rule.action);
    entry.seen += ofSession && *chunk != 0 ? 0 : 1;
    const auto& nth = entry.rule.nth;
    const bool mine =
        (entry.rule.every || std::find(nth.begin(), nth.end(), entry.seen) != nth.end()) &&
        (!ofSession || *chunk == entry.rule.afterChunks);
    if (mine && !hit) {
      hit = entry.rule;
    }
  }
  return hit;
}

}  // namespace pushrod::engines::reference
