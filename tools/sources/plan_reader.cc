// SPDX-License-Identifier: Apache-2.0
#include "tools/sources/plan_reader.h"

#include <algorithm>
#include <cmath>

namespace pushrod::tools {
namespace {

constexpr std::size_t kMostFaults = 100;

std::string notA(std::string_view wanted, const JsonNode& node) {
  return "must be " + std::string(wanted) + ", not " + std::string(jsonKindText(node.kind));
}

/// A key that could not be mistaken for the path around it stands bare.
std::string keyText(std::string_view key) {
  const bool plain = !key.empty() && std::all_of(key.begin(), key.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
  return plain ? std::string(key) : quotedName(key);
}

}  // namespace

std::string planPath(const std::string& above, std::string_view key) {
  return above.empty() ? keyText(key) : above + "." + keyText(key);
}

std::string planPath(const std::string& above, std::size_t index) {
  return above + "[" + std::to_string(index) + "]";
}

std::string_view jsonKindText(JsonNode::Kind kind) {
  switch (kind) {
    case JsonNode::Kind::kNull:
      return "null";
    case JsonNode::Kind::kBool:
      return "a switch";
    case JsonNode::Kind::kInteger:
      return "a whole number";
    case JsonNode::Kind::kOtherNumber:
      return "a number that is not whole, or too large";
    case JsonNode::Kind::kString:
      return "a text";
    case JsonNode::Kind::kArray:
      return "a list";
    case JsonNode::Kind::kObject:
      return "an object";
  }
  return "?";
}

std::string choiceText(const std::vector<std::string_view>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    text += i == 0 ? "" : i + 1 == names.size() ? " or " : ", ";
    text += names[i];
  }
  return text;
}

void PlanReader::fault(const std::string& path, const std::string& text) {
  ++count_;
  if (faults_.size() < kMostFaults) {
    faults_.push_back(path.empty() ? text : path + ": " + text);
  }
}

std::string PlanReader::text(const std::string& name) const {
  std::string all;
  for (const std::string& each : faults_) {
    all += (all.empty() ? "" : "\n") + name + ": " + each;
  }
  if (count_ > faults_.size()) {
    all += "\n" + name + ": and " + std::to_string(count_ - faults_.size()) + " more faults";
  }
  return all;
}

bool PlanReader::object(const JsonNode& node,
                        const std::string& path,
                        std::initializer_list<std::string_view> keys) {
  if (node.kind != JsonNode::Kind::kObject) {
    fault(path, notA("an object", node));
    return false;
  }
  for (const std::string& key : node.keys) {
    if (std::find(keys.begin(), keys.end(), key) == keys.end()) {
      fault(planPath(path, key), "unknown key; here may stand " + choiceText(keys));
    }
  }
  return true;
}

const JsonNode* PlanReader::member(const JsonNode& parent,
                                   const std::string& above,
                                   std::string_view key,
                                   bool required) {
  const JsonNode* node = parent.find(key);
  if (node == nullptr && required) {
    fault(planPath(above, key), "is missing");
  }
  return node;
}

const JsonNode* PlanReader::list(const JsonNode& parent,
                                 const std::string& above,
                                 std::string_view key,
                                 bool required) {
  const JsonNode* node = member(parent, above, key, required);
  if (node != nullptr && node->kind != JsonNode::Kind::kArray) {
    fault(planPath(above, key), notA("a list", *node));
    return nullptr;
  }
  return node;
}

std::optional<std::string> PlanReader::string(const JsonNode& parent,
                                              const std::string& above,
                                              std::string_view key,
                                              bool required) {
  const JsonNode* node = member(parent, above, key, required);
  if (node == nullptr) {
    return std::nullopt;
  }
  if (node->kind != JsonNode::Kind::kString) {
    fault(planPath(above, key), notA("a text", *node));
    return std::nullopt;
  }
  return node->text;
}

std::optional<std::uint64_t> PlanReader::integer(const JsonNode& parent,
                                                 const std::string& above,
                                                 std::string_view key,
                                                 std::uint64_t smallest,
                                                 std::uint64_t largest,
                                                 bool required) {
  const JsonNode* node = member(parent, above, key, required);
  if (node == nullptr) {
    return std::nullopt;
  }
  if (node->kind != JsonNode::Kind::kInteger) {
    fault(planPath(above, key), notA("a whole number", *node));
    return std::nullopt;
  }
  if (node->negative || node->magnitude < smallest || node->magnitude > largest) {
    fault(planPath(above, key),
          std::string("is ") + (node->negative ? "-" : "") + std::to_string(node->magnitude) +
              ", must be from " + std::to_string(smallest) + " to " + std::to_string(largest));
    return std::nullopt;
  }
  return node->magnitude;
}

std::optional<bool> PlanReader::boolean(const JsonNode& parent,
                                        const std::string& above,
                                        std::string_view key) {
  const JsonNode* node = member(parent, above, key, !kRequired);
  if (node == nullptr) {
    return std::nullopt;
  }
  if (node->kind != JsonNode::Kind::kBool) {
    fault(planPath(above, key), notA("true or false", *node));
    return std::nullopt;
  }
  return node->magnitude != 0;
}

std::optional<Duration> PlanReader::seconds(const JsonNode& parent,
                                            const std::string& above,
                                            std::string_view key,
                                            Duration largest) {
  const JsonNode* node = member(parent, above, key, !kRequired);
  if (node == nullptr) {
    return std::nullopt;
  }
  double value = node->number;
  if (node->kind == JsonNode::Kind::kInteger) {
    value = static_cast<double>(node->magnitude) * (node->negative ? -1 : 1);
  } else if (node->kind != JsonNode::Kind::kOtherNumber) {
    fault(planPath(above, key), notA("a number of seconds", *node));
    return std::nullopt;
  }
  const double most = std::chrono::duration<double>(largest).count();
  if (!(value >= 0 && value <= most)) {
    fault(planPath(above, key),
          "must be from 0 to " + std::to_string(static_cast<long long>(most)) + " seconds");
    return std::nullopt;
  }
  return Duration(static_cast<Duration::rep>(std::ceil(value * 1000)));
}

}  // namespace pushrod::tools
