// SPDX-License-Identifier: Apache-2.0
// The table of docs/report.md is what the page has.
#include <fstream>
#include <regex>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "metrics/push_metrics.h"
#include "tests/unit/metrics/page.h"

namespace pushrod::metrics::test {
namespace {

using Names = std::set<std::string>;

/// What stands between single backquotes.
Names quotedIn(const std::string& text) {
  static const std::regex kQuoted("`([^`]+)`");
  Names found;
  for (std::sregex_iterator at(text.begin(), text.end(), kQuoted), end; at != end; ++at) {
    found.insert((*at)[1]);
  }
  return found;
}

struct Row {
  Names metrics;
  std::string type;
  Names labels;
};

std::vector<Row> documented() {
  // Names; type; labels, whose values may stand behind them in brackets.
  static const std::regex kRow(R"(\| (`pushrod_[^|]*) \| (\w+)([^|]*) \|[^|]*\|)");
  static const std::regex kValues(R"(\([^)]*\))");
  std::ifstream file(PUSHROD_SOURCE_DIR "/docs/report.md");
  std::vector<Row> rows;
  for (std::string line; std::getline(file, line);) {
    std::smatch parts;
    if (std::regex_match(line, parts, kRow)) {
      rows.push_back({quotedIn(parts[1]),
                      parts[2],
                      quotedIn(std::regex_replace(parts[3].str(), kValues, ""))});
    }
  }
  return rows;
}

Names labelsOf(const Page& page, const Names& metrics) {
  Names labels;
  for (const Sample& sample : page.samples) {
    const bool meant = std::any_of(metrics.begin(), metrics.end(), [&](const std::string& name) {
      return sample.name == name || sample.name == name + "_count";
    });
    for (const auto& [label, value] : meant ? sample.labels : Labels()) {
      labels.insert(label);
    }
  }
  return labels;
}

TEST(MetricsDocument, ListsWhatThePageHas) {
  const PushMetrics metrics(TransportKind::kTcp, {"e0"});
  const Page page(metrics.render());
  std::map<std::string, std::string> types;
  for (const Row& row : documented()) {
    for (const std::string& name : row.metrics) {
      EXPECT_TRUE(types.emplace(name, row.type).second) << name << " stands there twice";
    }
    EXPECT_EQ(labelsOf(page, row.metrics), row.labels) << *row.metrics.begin();
  }
  EXPECT_EQ(types, page.types);
}

}  // namespace
}  // namespace pushrod::metrics::test
