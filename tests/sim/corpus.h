// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace pushrod::sim {

struct Corpus {
  std::set<std::string_view> rows;    ///< of the push table, that were taken
  std::vector<std::string> failures;  ///< each with its replay command
};

/// Runs of every kind, enough of them to meet everything that the orchestrator can decide: a part
/// of the sweeps and random plans.
[[nodiscard]] Corpus runCorpus();

}  // namespace pushrod::sim
