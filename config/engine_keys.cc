// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include "config/effective.h"
#include "config/key_table.h"
#include "config/map_reader.h"

namespace pushrod::config {

namespace {

constexpr std::size_t kMaxEngines = 10'000;
constexpr std::size_t kLongestName = 128;

Wrong checkName(std::string& name) {
  if (name.empty() || name.size() > kLongestName) {
    return "must have 1 to " + std::to_string(kLongestName) + " characters";
  }
  return std::nullopt;
}

/// Reads the entries of one list, remembering names and addresses.
class EntryReader {
 public:
  explicit EntryReader(Reader& reader) : reader_(reader) {}

  /// nullopt after adding a fault.
  std::optional<EngineConfig> read(const TreeNode& item, const std::string& path) {
    if (item.kind != TreeNode::Kind::kMap) {
      reader_.faults.add(item.where, path, "must be a section with a url, not " + kindText(item));
      return std::nullopt;
    }
    EngineConfig engine;
    readMap(engine, item, {path, "engines.list[]", ""}, engineKeys(), reader_);
    if (engine.url.empty()) {
      const auto isUrl = [](const auto& entry) { return entry.first.text == "url"; };
      if (std::none_of(item.entries.begin(), item.entries.end(), isUrl)) {
        reader_.faults.add(item.where, path, "has no url; every engine needs one");
      }
      return std::nullopt;
    }
    const std::string address = engineAddress(engine.url);
    if (engine.name.empty()) {
      engine.name = address;
    }
    const Position urlPlace = placeOf(path + ".url", item.where);
    const Position namePlace = placeOf(path + ".name", urlPlace);
    const bool sound =
        isFirst(addresses_, address, path + ".url", urlPlace, "the address " + quoted(address)) &&
        isFirst(names_, engine.name, path + ".name", namePlace, "the name " + quoted(engine.name));
    return sound ? std::optional<EngineConfig>(std::move(engine)) : std::nullopt;
  }

 private:
  [[nodiscard]] Position placeOf(const std::string& path, Position otherwise) const {
    const auto place = reader_.written.find(path);
    return place == reader_.written.end() ? otherwise : place->second;
  }

  bool isFirst(std::map<std::string, std::string>& seen,
               const std::string& text,
               const std::string& path,
               Position where,
               const std::string& what) {
    const auto [first, fresh] = seen.emplace(text, path);
    if (!fresh) {
      reader_.faults.add(where, path, what + " is already that of " + first->second);
    }
    return fresh;
  }

  Reader& reader_;
  std::map<std::string, std::string> names_;
  std::map<std::string, std::string> addresses_;
};

/// What all keys of an entry have in common: left out of the effective text where they hold
/// nothing.
Key<EngineConfig> asEntryKey(Key<EngineConfig> key) {
  key.ranks = Ranks::kMayDiffer;  // rank 0 alone reads the list
  key.write = [write = key.write](const EngineConfig& engine, std::size_t indent) {
    std::string text = write(engine, indent);
    return text == R"("")" ? std::string() : text;
  };
  return key;
}

}  // namespace

const std::vector<Key<EngineConfig>>& engineKeys() {
  using E = EngineConfig;
  static const std::vector<Key<E>> kKeys = [] {
    std::vector<Key<E>> keys = {
        textKey<E>(
            {"url", "Address of the server; path prefixes, IPv6 and host names are allowed."},
            "`http://HOST:PORT` or `https://HOST:PORT`",
            [](std::string& url) { return checkEngineUrl(url); },
            [](auto& e) -> auto& { return e.url; }),
        textKey<E>(
            {"name", "Label in metrics and reports; the address when left out."},
            "text",
            checkName,
            [](auto& e) -> auto& { return e.name; }),
        choiceKey<E, TransportKind>(
            {"transport", "Takes the place of `transport.kind` for this engine."},
            {{TransportKind::kNccl, "nccl"},
             {TransportKind::kIpc, "ipc"},
             {TransportKind::kTcp, "tcp"},
             {TransportKind::kShm, "shm"}},
            [](auto& e) -> auto& { return e.transport; }),
        textKey<E>(
            {"expect.model", "Refuses a server that serves another model id; empty: any."},
            "text",
            anyText,
            [](auto& e) -> auto& { return e.expect.model; }),
        integerKey<E>(
            {"expect.world_size", "Refuses a server with another number of workers."},
            1,
            65536,
            [](auto& e) -> auto& { return e.expect.worldSize; }),
        integerKey<E>(
            {"expect.pipeline_stages", "Refuses a server with other pipeline stages."},
            1,
            65536,
            [](auto& e) -> auto& { return e.expect.pipelineStages; }),
        textKey<E>(
            {"dp_group",
             "Engines of one external data-parallel group report the whole group's size: give "
             "them the same text and it is counted once."},
            "text",
            anyText,
            [](auto& e) -> auto& { return e.dpGroup; }),
    };
    std::transform(keys.begin(), keys.end(), keys.begin(), asEntryKey);
    return keys;
  }();
  return kKeys;
}

bool readEngineList(std::vector<EngineConfig>& engines,
                    const TreeNode& node,
                    Reader& reader,
                    const std::string& path) {
  if (node.kind != TreeNode::Kind::kSequence || node.items.size() > kMaxEngines) {
    reader.faults.add(node.where,
                      path,
                      node.kind != TreeNode::Kind::kSequence
                          ? "must be a list of engines, each with its url, not " + kindText(node)
                          : "has more than " + std::to_string(kMaxEngines) + " engines");
    return false;
  }
  EntryReader entries(reader);
  for (std::size_t i = 0; i < node.items.size(); ++i) {
    auto engine = entries.read(node.items[i], path + "[" + std::to_string(i) + "]");
    if (engine) {
      engines.push_back(std::move(*engine));
    }
  }
  return engines.size() == node.items.size();
}

std::string writeEngineList(const std::vector<EngineConfig>& engines, std::size_t indent) {
  if (engines.empty()) {
    return "[]";
  }
  std::string text;
  for (const EngineConfig& engine : engines) {
    std::string item = writeKeys(engine, engineKeys(), indent + 2);
    item.replace(indent, 2, "- ");
    text += "\n" + item;
  }
  return text;
}

}  // namespace pushrod::config
