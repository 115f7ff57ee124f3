// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/metrics/page.h"

#include <cmath>
#include <cstdlib>
#include <sstream>

namespace pushrod::metrics::test {
namespace {

/// Reads `{name="value",...}` at `at`, with the escapes \\ \" and \n. False when it is not valid.
bool readLabels(const std::string& line, std::size_t& at, Labels& labels) {
  ++at;
  while (at < line.size() && line[at] != '}') {
    const auto equals = line.find("=\"", at);
    if (equals == std::string::npos) {
      return false;
    }
    const std::string name = line.substr(at, equals - at);
    std::string value;
    for (at = equals + 2; at < line.size() && line[at] != '"'; ++at) {
      if (line[at] != '\\') {
        value += line[at];
        continue;
      }
      if (++at == line.size()) {
        return false;
      }
      value += line[at] == 'n' ? '\n' : line[at];
    }
    if (at == line.size() || !labels.emplace(name, value).second) {
      return false;
    }
    ++at;
    if (at < line.size() && line[at] == ',') {
      ++at;
    }
  }
  return at++ < line.size();
}

bool readSample(const std::string& line, Sample& sample) {
  std::size_t at = line.find_first_of("{ ");
  if (at == std::string::npos || at == 0) {
    return false;
  }
  sample.name = line.substr(0, at);
  if (line[at] == '{' && !readLabels(line, at, sample.labels)) {
    return false;
  }
  if (at >= line.size() || line[at] != ' ') {
    return false;
  }
  const char* begin = line.c_str() + at + 1;
  char* end = nullptr;
  sample.value = std::strtod(begin, &end);
  return end != begin && *end == '\0';
}

}  // namespace

Page::Page(const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string mark;
    std::string kind;
    std::string name;
    if (line.rfind("# ", 0) == 0) {
      words >> mark >> kind >> name;
      std::string rest;
      std::getline(words, rest);
      auto& into = kind == "TYPE" ? types : helps;
      const bool known = kind == "TYPE" || kind == "HELP";
      if (!known || rest.size() < 2 || !into.emplace(name, rest.substr(1)).second) {
        faults.push_back(line);
      }
      continue;
    }
    Sample sample;
    if (readSample(line, sample)) {
      samples.push_back(sample);
    } else {
      faults.push_back(line);
    }
  }
}

double Page::value(const std::string& name, const Labels& labels) const {
  double found = std::nan("");
  int count = 0;
  for (const Sample& sample : samples) {
    if (sample.name == name && sample.labels == labels) {
      found = sample.value;
      ++count;
    }
  }
  return count == 1 ? found : std::nan("");
}

std::vector<Sample> Page::named(const std::string& name) const {
  std::vector<Sample> found;
  for (const Sample& sample : samples) {
    if (sample.name == name) {
      found.push_back(sample);
    }
  }
  return found;
}

}  // namespace pushrod::metrics::test
