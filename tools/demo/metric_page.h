// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace pushrod::tools {

/// A page in Prometheus' text format: series with labels -> value. Comments and lines that are no
/// series are skipped.
using MetricPage = std::map<std::string, double>;

[[nodiscard]] MetricPage parseMetricPage(std::string_view text);

/// One series that differs between two pages.
struct MetricMove {
  std::string series;
  double before = 0;
  double after = 0;
};

/// Series of these families that moved, in the order of the families.
[[nodiscard]] std::vector<MetricMove> movedMetrics(const MetricPage& before,
                                                   const MetricPage& after,
                                                   const std::vector<std::string>& families);

}  // namespace pushrod::tools
