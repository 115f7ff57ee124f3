// SPDX-License-Identifier: Apache-2.0
// Written back as YAML and parsed again, so that an override is judged as a file's key is.
#include "tools/drill/config_overrides.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>

#include "common/log.h"
#include "config/tree.h"
#include "tools/sources/plan_reader.h"

namespace pushrod::tools {
namespace {

using config::TreeNode;

TreeNode* childOf(TreeNode& map, const std::string& key) {
  for (auto& [name, value] : map.entries) {
    if (name.text == key) {
      return &value;
    }
  }
  TreeNode name;
  name.kind = TreeNode::Kind::kScalar;
  name.text = key;
  return &map.entries.emplace_back(std::move(name), TreeNode()).second;
}

/// Sets the scalar at a dotted path, making sections where there are none.
bool set(TreeNode& root, const DrillOverride& change) {
  TreeNode* node = &root;
  std::istringstream path(change.key);
  std::string key;
  while (std::getline(path, key, '.')) {
    if (node->kind == TreeNode::Kind::kNull) {
      node->kind = TreeNode::Kind::kMap;
    }
    if (key.empty() || node->kind != TreeNode::Kind::kMap) {
      return false;
    }
    node = childOf(*node, key);
  }
  if (node == &root) {
    return false;
  }
  *node = TreeNode();
  node->kind = TreeNode::Kind::kScalar;
  node->text = change.value;
  // What no plain YAML scalar can carry is quoted; the rest is read as a file's text would be.
  node->quoted = change.value.find_first_of("\n#:\"'{}[],&*!|>%@`") != std::string::npos &&
                 change.value.find("${") == std::string::npos;
  node->quoted = node->quoted || change.value.empty();
  return true;
}

void write(std::string& out, const TreeNode& node, std::size_t indent);

std::string scalarText(const TreeNode& node) {
  return node.quoted ? common::jsonQuoted(node.text) : node.text;
}

void writeValue(std::string& out, const TreeNode& node, std::size_t indent) {
  if (node.kind == TreeNode::Kind::kScalar) {
    out += " " + scalarText(node) + "\n";
  } else if (node.kind == TreeNode::Kind::kMap && node.entries.empty()) {
    out += " {}\n";
  } else if (node.kind == TreeNode::Kind::kSequence && node.items.empty()) {
    out += " []\n";
  } else {
    out += "\n";
    write(out, node, indent + 2);
  }
}

void write(std::string& out, const TreeNode& node, std::size_t indent) {
  const std::string margin(indent, ' ');
  for (const auto& [key, value] : node.entries) {
    out += margin + scalarText(key) + ":";
    writeValue(out, value, indent);
  }
  for (const TreeNode& item : node.items) {
    out += margin + "-";
    writeValue(out, item, indent);
  }
}

/// Faults of the rewritten text have no place in any file: it is left out.
std::string withoutPlaces(const std::string& faults, const std::string& name) {
  std::istringstream lines(faults);
  std::string all;
  std::string line;
  while (std::getline(lines, line)) {
    if (line.starts_with(name + ":")) {
      const std::size_t end = line.find(": ", name.size());
      line = name + (end == std::string::npos ? "" : line.substr(end));
    }
    all += (all.empty() ? "" : "\n") + line;
  }
  return all;
}

}  // namespace

Result<Config> overriddenConfig(const std::string& path, const DrillPlan& plan, int rank) {
  Result<Config> plain = Config::load(path);
  const auto changes = plan.overrides.find(rank);
  if (!plain || changes == plan.overrides.end()) {
    return plain;
  }
  std::ifstream file(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  config::FaultList faults;
  std::optional<TreeNode> root = config::parseTree(text, faults);
  if (!root) {
    return Status(Code::kInvalidArgument, faults.toString(path));
  }
  const std::string place = planPath("config_overrides", std::to_string(rank));
  for (const DrillOverride& change : changes->second) {
    if (!set(*root, change)) {
      return Status(
          Code::kInvalidArgument,
          planPath(place, change.key) + ": is no path to a key, such as transport.buffer");
    }
  }
  std::string rewritten;
  write(rewritten, *root, 0);
  const Result<Config> changed = Config::parse(rewritten, place);
  if (!changed) {
    return Status(Code::kInvalidArgument, withoutPlaces(changed.status().message(), place));
  }
  return changed;
}

Status checkOverrides(const std::string& path, const DrillPlan& plan, const std::string& planName) {
  std::string all;
  for (const auto& [rank, changes] : plan.overrides) {
    const Result<Config> config = overriddenConfig(path, plan, rank);
    std::istringstream lines(config ? "" : config.status().message());
    std::string line;
    while (std::getline(lines, line)) {
      all += (all.empty() ? "" : "\n") + planName + ": " + line;
    }
  }
  return all.empty() ? Status() : Status(Code::kInvalidArgument, all);
}

}  // namespace pushrod::tools
