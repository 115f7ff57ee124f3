// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

namespace pushrod::metrics::test {

using Labels = std::map<std::string, std::string>;

struct Sample {
  std::string name;
  Labels labels;
  double value = 0;
};

/// A page in Prometheus' text format, read strictly: `faults` names every line that is not valid.
struct Page {
  explicit Page(const std::string& text);

  /// The value of one series; a fault (NaN) when there is not exactly one.
  [[nodiscard]] double value(const std::string& name, const Labels& labels = {}) const;
  [[nodiscard]] std::vector<Sample> named(const std::string& name) const;

  std::map<std::string, std::string> types;
  std::map<std::string, std::string> helps;
  std::vector<Sample> samples;
  std::vector<std::string> faults;
};

}  // namespace pushrod::metrics::test
