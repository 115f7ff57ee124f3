// SPDX-License-Identifier: Apache-2.0
#include "config/loader.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "config/key_table.h"
#include "config/limits.h"
#include "config/map_reader.h"

namespace pushrod::config {

namespace {

Status refused(std::string text) {
  return {Code::kInvalidArgument, std::move(text)};
}

/// Only a regular file: reading anything else may wait for ever.
Result<std::string> readFile(const std::string& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (error || !std::filesystem::exists(status)) {
    return refused(path + ": cannot read the configuration: " +
                   (error ? error.message() : "no such file") + "; check the path");
  }
  if (!std::filesystem::is_regular_file(status)) {
    return refused(path + ": cannot read the configuration: not a regular file");
  }
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  // One byte more than allowed, so that a longer file is seen as one.
  std::string text(kMaxTextBytes + 1, '\0');
  if (file) {
    file.read(text.data(), static_cast<std::streamsize>(text.size()));
  }
  if (!file.is_open() || file.bad()) {
    return refused(path + ": cannot read the configuration: " +
                   std::generic_category().message(errno) + "; check its permissions");
  }
  text.resize(static_cast<std::size_t>(file.gcount()));
  return text;
}

std::vector<std::string> remarkTexts(std::vector<Remark> remarks, const std::string& name) {
  std::stable_sort(remarks.begin(), remarks.end(), [](const Remark& a, const Remark& b) {
    return a.where < b.where;
  });
  std::vector<std::string> texts;
  texts.reserve(remarks.size());
  for (const Remark& remark : remarks) {
    texts.push_back(name + ":" + std::to_string(remark.where.line) + ":" +
                    std::to_string(remark.where.column) + ": " + remark.text);
  }
  return texts;
}

}  // namespace

Result<Config> parseConfig(const std::string& text,
                           const std::string& name,
                           const EnvironmentLookup& environment) {
  FaultList faults;
  auto root = parseTree(text, faults);
  if (!root) {
    return refused(faults.toString(name));
  }
  Config config;
  std::vector<Remark> remarks;
  Reader reader{.faults = faults, .environment = environment};
  if (root->kind == TreeNode::Kind::kMap || root->kind == TreeNode::Kind::kNull) {
    readMap(config, *root, {}, configKeys(), reader);
    checkTogether(config, *root, reader, remarks);
  } else {
    faults.add(root->where, "a configuration must be a section of keys, not " + kindText(*root));
  }
  if (!faults.empty()) {
    return refused(faults.toString(name));
  }
  config.warnings = remarkTexts(std::move(remarks), name);
  return config;
}

Result<std::vector<EngineConfig>> parseEngines(const std::string& text,
                                               const std::string& name,
                                               const EnvironmentLookup& environment) {
  FaultList faults;
  const auto root = parseTree(text, faults);
  std::vector<EngineConfig> engines;
  Reader reader{.faults = faults, .environment = environment};
  if (root && readEngineList(engines, *root, reader, "engines.list") && engines.empty()) {
    faults.add(root->where, "the list of engines is empty; list at least one");
  }
  if (!faults.empty()) {
    return refused(faults.toString(name));
  }
  return engines;
}

Result<std::vector<EngineConfig>> loadEngines(const std::string& path) {
  auto text = readFile(path);
  if (!text) {
    return text.status();
  }
  return parseEngines(*text, path);
}

}  // namespace pushrod::config

namespace pushrod {

Result<Config> Config::load(const std::string& path) {
  auto text = config::readFile(path);
  if (!text) {
    return text.status();
  }
  return config::parseConfig(*text, path);
}

Result<Config> Config::parse(const std::string& text, const std::string& name) {
  return config::parseConfig(text, name);
}

}  // namespace pushrod
