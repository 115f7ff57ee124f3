// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "config/key_table.h"
#include "config/nearest.h"

namespace pushrod::config {

/// Where a map stands: `path` as messages call it ("engines.list[0].expect"), `known` as the
/// suggestions do ("engines.list[].expect"), `relative` as the owner's keys do ("expect").
struct MapPlace {
  std::string path;
  std::string known;
  std::string relative;

  [[nodiscard]] MapPlace below(const std::string& key) const {
    return {join(path, key), join(known, key), join(relative, key)};
  }

  static std::string join(const std::string& parent, const std::string& key) {
    return parent.empty() ? key : parent + "." + key;
  }
};

/// Whether `key`, the latest of its map, may be taken: a text, not a merge, not given before.
bool acceptKey(const TreeNode& key,
               const std::string& path,
               std::map<std::string, Position>& seen,
               Reader& reader);

/// Reads a map and the sections below it into `owner` by its key table. Unknown and repeated keys
/// are faults; reading goes on behind them.
template <typename Owner>
void readMap(Owner& owner,
             const TreeNode& map,
             const MapPlace& place,
             const std::vector<Key<Owner>>& keys,
             Reader& reader) {
  std::map<std::string, Position> seen;
  for (const auto& [name, value] : map.entries) {
    const MapPlace here = place.below(name.text);
    if (!acceptKey(name, here.path, seen, reader)) {
      continue;
    }
    // "push.resend" as one name is no key: written beside a section push it would be a second one.
    const bool dotted = name.text.find('.') != std::string::npos;
    const auto key = std::find_if(keys.begin(), keys.end(), [&](const Key<Owner>& k) {
      return !dotted && k.path == here.relative;
    });
    const bool section = !dotted && std::any_of(keys.begin(), keys.end(), [&](const Key<Owner>& k) {
      return k.path.starts_with(here.relative + ".");
    });
    if (key == keys.end() && !section) {
      reader.faults.add(
          name.where, here.path, "unknown key; " + nearestKeyText(here.known, knownPaths()));
    } else if (value.kind == TreeNode::Kind::kNull) {
      // The scanner places a missing value on the next line.
      TreeNode missing = value;
      missing.where = name.where;
      refuseNull(reader, here.path, missing);
    } else if (key != keys.end()) {
      if (key->read(owner, value, reader, here.path)) {
        reader.written.emplace(here.path, value.where);
      }
    } else if (value.kind == TreeNode::Kind::kMap) {
      readMap(owner, value, here, keys, reader);
    } else {
      reader.faults.add(
          value.where, here.path, "must be a section with keys below it, not " + kindText(value));
    }
  }
}

}  // namespace pushrod::config
