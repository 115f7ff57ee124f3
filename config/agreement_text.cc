// SPDX-License-Identifier: Apache-2.0
#include "config/agreement_text.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "config/key_table.h"

namespace pushrod::config {

namespace {

std::vector<std::pair<std::string, std::string>> splitLines(std::string_view text) {
  std::vector<std::pair<std::string, std::string>> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    const std::size_t colon = std::min(line.find(": "), line.size());
    lines.emplace_back(line.substr(0, colon), line.substr(std::min(colon + 2, line.size())));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

}  // namespace

std::string agreementText(const Config& config) {
  std::string text;
  for (const Key<Config>& key : configKeys()) {
    if (key.ranks == Ranks::kMustAgree) {
      text += key.path;
      text += ": ";
      text += key.write(config, 0);
      text += '\n';
    }
  }
  return text;
}

std::string firstDifference(std::string_view mine, std::string_view rank0) {
  const auto here = splitLines(mine);
  const auto there = splitLines(rank0);
  const std::map<std::string, std::string> hereByKey(here.begin(), here.end());
  const std::map<std::string, std::string> thereByKey(there.begin(), there.end());
  for (const auto& [key, value] : here) {
    const auto other = thereByKey.find(key);
    if (other == thereByKey.end()) {
      return key + ": known here, not on rank 0; the ranks run different builds";
    }
    if (other->second != value) {
      return key + ": " + value + " here, " + other->second + " on rank 0";
    }
  }
  for (const auto& [key, value] : there) {
    if (!hereByKey.contains(key)) {
      return key + ": known on rank 0, not here; the ranks run different builds";
    }
  }
  return {};
}

}  // namespace pushrod::config
