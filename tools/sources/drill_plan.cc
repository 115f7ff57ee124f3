// SPDX-License-Identifier: Apache-2.0
#include "tools/sources/drill_plan.h"

#include <array>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "tools/sources/drill_parts.h"
#include "tools/sources/plan_reader.h"

namespace pushrod::tools {
namespace {

constexpr std::size_t kMostValues = 4'000'000;
constexpr std::uintmax_t kMostBytes = std::uintmax_t{64} << 20;
constexpr std::size_t kMostPushes = 1000;

void readPushes(const JsonNode& root, int ranks, DrillPlan& plan, PlanReader& reader) {
  const JsonNode* pushes = reader.list(root, "", "pushes", PlanReader::kRequired);
  if (pushes == nullptr) {
    return;
  }
  if (pushes->items.empty() || pushes->items.size() > kMostPushes) {
    reader.fault("pushes",
                 pushes->items.empty() ? "is empty; give at least one push"
                                       : "holds more than " + std::to_string(kMostPushes));
    return;
  }
  for (std::size_t i = 0; i < pushes->items.size(); ++i) {
    plan.pushes.push_back(
        readDrillPush(pushes->items[i], planPath("pushes", i), ranks, plan.tensors.size(), reader));
  }
}

/// A JSON value as it would stand in a YAML file; nullopt where none can.
std::optional<std::string> yamlScalar(const JsonNode& node) {
  switch (node.kind) {
    case JsonNode::Kind::kBool:
      return node.magnitude != 0 ? "true" : "false";
    case JsonNode::Kind::kInteger:
      return (node.negative ? "-" : "") + std::to_string(node.magnitude);
    case JsonNode::Kind::kString:
      return node.text;
    default:
      return std::nullopt;
  }
}

/// A rank number in decimal text; nullopt: not one of the job's.
std::optional<int> rankOfKey(const std::string& key, int ranks) {
  for (int rank = 0; rank < ranks; ++rank) {
    if (key == std::to_string(rank)) {
      return rank;
    }
  }
  return std::nullopt;
}

void readOverrides(const JsonNode& root, int ranks, DrillPlan& plan, PlanReader& reader) {
  const JsonNode* all = root.find("config_overrides");
  if (all == nullptr) {
    return;
  }
  if (all->kind != JsonNode::Kind::kObject) {
    reader.fault("config_overrides",
                 "must be an object, not " + std::string(jsonKindText(all->kind)));
    return;
  }
  for (std::size_t i = 0; i < all->items.size(); ++i) {
    const std::string path = planPath("config_overrides", all->keys[i]);
    const auto rank = rankOfKey(all->keys[i], ranks);
    if (!rank) {
      reader.fault(path, "is no rank of a job of " + std::to_string(ranks));
    }
    const JsonNode& keys = all->items[i];
    if (keys.kind != JsonNode::Kind::kObject) {
      reader.fault(path, "must be an object, not " + std::string(jsonKindText(keys.kind)));
      continue;
    }
    for (std::size_t k = 0; k < keys.items.size(); ++k) {
      const auto value = yamlScalar(keys.items[k]);
      if (!value) {
        reader.fault(planPath(path, keys.keys[k]),
                     "must be a text, a whole number or true or false, not " +
                         std::string(jsonKindText(keys.items[k].kind)));
      } else if (rank) {
        plan.overrides[*rank].push_back({keys.keys[k], *value});
      }
    }
  }
}

Status unreadable(const std::string& path, const std::string& why) {
  return {Code::kInvalidArgument, path + ": cannot read the drill plan: " + why};
}

}  // namespace

std::string_view faultKindName(FaultKind kind) {
  constexpr std::array<std::string_view, kFaultKindCount> kNames = {"throw",
                                                                    "hang",
                                                                    "exit",
                                                                    "stop",
                                                                    "missing",
                                                                    "extra",
                                                                    "reorder",
                                                                    "wrong_shape",
                                                                    "other_values"};
  return kNames.at(static_cast<std::size_t>(kind));
}

std::string DrillFault::describe() const {
  std::string text(faultKindName(kind));
  if (tensor) {
    return text + " at tensor " + std::to_string(*tensor);
  }
  return phase ? text + " in phase " + std::string(phaseName(*phase)) : text + " after the last";
}

Manifest DrillPlan::manifest() const {
  Manifest manifest;
  manifest.tensors.reserve(tensors.size());
  for (const DrillTensor& tensor : tensors) {
    manifest.tensors.push_back(tensor.spec);
  }
  return manifest;
}

Result<DrillPlan> parseDrillPlan(std::string_view text, const std::string& name, int ranks) {
  const Result<JsonNode> root = parseStrictJson(text, kMostValues);
  if (!root) {
    return root.status().prefixed(name);
  }
  DrillPlan plan;
  PlanReader reader;
  if (reader.object(*root, "", {"tensors", "repeat", "pushes", "config_overrides"})) {
    plan.tensors = readDrillTensors(*root, reader);
    readPushes(*root, ranks, plan, reader);
    readOverrides(*root, ranks, plan, reader);
  }
  if (!reader.clean()) {
    return Status(Code::kInvalidArgument, reader.text(name));
  }
  return plan;
}

Result<DrillPlan> loadDrillPlan(const std::string& path, int ranks) {
  std::error_code error;
  // Only a regular file: reading anything else may wait for ever.
  const bool regular = std::filesystem::is_regular_file(path, error);
  if (error || !regular) {
    return unreadable(path, error ? error.message() : "not a regular file");
  }
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  if (error || size > kMostBytes) {
    return unreadable(path, error ? error.message() : "larger than 64 MiB");
  }
  std::string text(size, '\0');
  std::ifstream file(path, std::ios::binary);
  if (!file || !file.read(text.data(), static_cast<std::streamsize>(size))) {
    return unreadable(path, "it cannot be opened or read; check its permissions");
  }
  return parseDrillPlan(text, path, ranks);
}

}  // namespace pushrod::tools
