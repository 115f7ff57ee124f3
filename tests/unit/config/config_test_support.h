// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "config/loader.h"

namespace pushrod::config::test {

/// The least that a sound configuration needs.
inline const std::string kEngine = "engines: {list: [{url: \"http://a:1\"}]}\n";

/// An environment of these variables alone.
inline EnvironmentLookup fakeEnvironment(std::map<std::string, std::string> variables = {}) {
  return [variables = std::move(variables)](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional<std::string>(found->second);
  };
}

/// The fault lines of `text`, named f.yaml; empty when it is sound.
inline std::vector<std::string> faultsOf(const std::string& text,
                                         std::map<std::string, std::string> variables = {}) {
  const auto checked = parseConfig(text, "f.yaml", fakeEnvironment(std::move(variables)));
  std::vector<std::string> lines;
  std::string rest = checked ? std::string() : checked.status().message() + "\n";
  while (!rest.empty()) {
    const std::size_t end = rest.find('\n');
    lines.push_back(rest.substr(0, end));
    rest.erase(0, end + 1);
  }
  return lines;
}

}  // namespace pushrod::config::test
