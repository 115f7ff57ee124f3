// SPDX-License-Identifier: Apache-2.0
#include "config/key_table.h"

#include <set>

#include "config/map_reader.h"

namespace pushrod::config {

namespace {

/// Adds `path` and the sections above it, each once.
void addPaths(const std::string& path,
              std::vector<std::string>& paths,
              std::set<std::string>& seen) {
  for (std::size_t dot = path.find('.'); dot != std::string::npos; dot = path.find('.', dot + 1)) {
    if (seen.insert(path.substr(0, dot)).second) {
      paths.push_back(path.substr(0, dot));
    }
  }
  if (seen.insert(path).second) {
    paths.push_back(path);
  }
}

}  // namespace

const std::vector<Key<Config>>& configKeys() {
  static const std::vector<Key<Config>> kKeys = [] {
    std::vector<Key<Config>> all;
    for (auto part : {rankKeys(),
                      engineSectionKeys(),
                      transportKeys(),
                      channelKeys(),
                      pushKeys(),
                      proofKeys(),
                      timeoutKeys(),
                      outputKeys()}) {
      std::move(part.begin(), part.end(), std::back_inserter(all));
    }
    return all;
  }();
  return kKeys;
}

const std::vector<std::string>& knownPaths() {
  static const std::vector<std::string> kPaths = [] {
    std::vector<std::string> paths;
    std::set<std::string> seen = {"engines.list[]"};
    for (const Key<Config>& key : configKeys()) {
      addPaths(key.path, paths, seen);
    }
    for (const Key<EngineConfig>& key : engineKeys()) {
      addPaths("engines.list[]." + key.path, paths, seen);
    }
    return paths;
  }();
  return kPaths;
}

bool acceptKey(const TreeNode& key,
               const std::string& path,
               std::map<std::string, Position>& seen,
               Reader& reader) {
  if (key.kind != TreeNode::Kind::kScalar) {
    reader.faults.add(key.where, "a key must be a text, not " + kindText(key));
    return false;
  }
  if (key.text == "<<") {
    reader.faults.add(key.where, path, "merge keys are not supported; write the keys out");
    return false;
  }
  const auto [first, fresh] = seen.emplace(key.text, key.where);
  if (!fresh) {
    reader.faults.add(key.where,
                      path,
                      "duplicate key, first given at line " + std::to_string(first->second.line) +
                          ", column " + std::to_string(first->second.column) + "; keep one");
  }
  return fresh;
}

}  // namespace pushrod::config
