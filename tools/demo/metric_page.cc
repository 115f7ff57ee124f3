// SPDX-License-Identifier: Apache-2.0
#include "tools/demo/metric_page.h"

#include <cstdlib>

namespace pushrod::tools {

MetricPage parseMetricPage(std::string_view text) {
  MetricPage page;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    // A label's value may hold spaces; the sample's value follows the last one.
    const std::size_t space = line.rfind(' ');
    if (line.empty() || line.front() == '#' || space == std::string_view::npos) {
      continue;
    }
    const std::string value(line.substr(space + 1));
    char* rest = nullptr;
    const double number = std::strtod(value.c_str(), &rest);
    if (rest != value.c_str() && *rest == '\0') {
      page[std::string(line.substr(0, space))] = number;
    }
  }
  return page;
}

std::vector<MetricMove> movedMetrics(const MetricPage& before,
                                     const MetricPage& after,
                                     const std::vector<std::string>& families) {
  std::vector<MetricMove> moves;
  for (const std::string& family : families) {
    for (auto at = after.lower_bound(family); at != after.end(); ++at) {
      const std::string_view name = std::string_view(at->first).substr(0, at->first.find('{'));
      if (!name.starts_with(family)) {
        break;
      }
      const auto old = before.find(at->first);
      const double was = old == before.end() ? 0 : old->second;
      if (name == family && at->second != was) {
        moves.push_back({at->first, was, at->second});
      }
    }
  }
  return moves;
}

}  // namespace pushrod::tools
