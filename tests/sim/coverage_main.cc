// SPDX-License-Identifier: Apache-2.0
// The corpus with gcov's counters in what decides: coverage.py reads them afterwards.
#include <algorithm>
#include <cstdio>
#include <iterator>
#include <string>
#include <string_view>

#include "orchestrator/fsm/push_table.h"
#include "tests/sim/corpus.h"

namespace {

/// Shown by the walk over all states in table_test only: nothing in a world comes in these moments.
constexpr std::string_view kByUnitTest[] = {
    "held-settled",  // whatever makes a step wait also cancels the engines' calls
    "late-lost",     // the driver hears nothing any more once it has finished
    "late-drain",    // the driver disarms the timer when the phase ends
    "old-answered",  // the failure would have to be known to the vote before it is told
};

}  // namespace

int main() {
  const pushrod::sim::Corpus corpus = pushrod::sim::runCorpus();
  for (const std::string& failure : corpus.failures) {
    std::printf("%s\n", failure.c_str());
  }
  bool complete = corpus.failures.empty();
  for (const pushrod::orchestrator::Row& row : pushrod::orchestrator::pushTable()) {
    const bool byUnitTest =
        std::find(std::begin(kByUnitTest), std::end(kByUnitTest), row.id) != std::end(kByUnitTest);
    if (!corpus.rows.contains(row.id) && !byUnitTest) {
      std::printf("row %s of the push table never fired\n", std::string(row.id).c_str());
      complete = false;
    }
  }
  return complete ? 0 : 1;
}
