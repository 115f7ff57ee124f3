// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/corpus.h"

#include "tests/sim/campaign.h"
#include "tests/sim/sweep.h"

namespace pushrod::sim {

namespace {

constexpr std::uint64_t kSeeds = 5000;

void add(Corpus& corpus, const std::set<std::string_view>& rows) {
  corpus.rows.insert(rows.begin(), rows.end());
}

void addSweep(Corpus& corpus, const Sweep& sweep) {
  const SweepResult result = runSweep(sweep);
  add(corpus, result.rows);
  corpus.failures.insert(corpus.failures.end(), result.failures.begin(), result.failures.end());
}

/// What needs one fault at the right moment after another.
void addSecondFaults(Corpus& corpus) {
  Sweep sweep;
  sweep.ranks = 2;
  sweep.engines = 1;
  sweep.kinds = {FaultKind::kThrows};
  sweep.seconds = {FaultKind::kCancel};
  addSweep(corpus, sweep);
  sweep.seconds = {FaultKind::kPlaneFails};
  sweep.chunked = true;
  sweep.kinds = {FaultKind::kLostReply, FaultKind::kStopsReading};
  addSweep(corpus, sweep);
  sweep.kinds = {FaultKind::kStopsReading, FaultKind::kStalls};
  sweep.seconds = {FaultKind::kThrows, FaultKind::kEndsEarly};
  addSweep(corpus, sweep);
}

/// A cancel between a put's end and its completion, by an engine that is slow to answer.
void addRaces(Corpus& corpus) {
  constexpr std::uint64_t kRaces = 600;
  for (std::uint64_t seed = 1; seed <= kRaces; ++seed) {
    FaultPlan plan;
    plan.seed = seed;
    plan.slowEngine = 0;
    plan.buffer = 1000;
    Fault cancel;
    cancel.kind = FaultKind::kCancel;
    cancel.nth = 31 + seed % 6;
    cancel.delay = Duration(static_cast<Duration::rep>(1 + seed % 7));
    plan.faults.push_back(cancel);
    const Outcome outcome = simulate(plan);
    add(corpus, outcome.rows);
    for (const std::string& broken : outcome.broken) {
      corpus.failures.push_back(broken + "\n  with " + plan.text());
    }
  }
}

}  // namespace

Corpus runCorpus() {
  Corpus corpus;
  for (const bool chunked : {false, true}) {
    Sweep sweep;
    sweep.ranks = 2;
    sweep.engines = 1;
    sweep.chunked = chunked;
    sweep.kinds = everyKind();
    addSweep(corpus, sweep);
    sweep.ranks = 3;
    sweep.engines = 2;
    sweep.quarantine = true;
    sweep.oldProfile = chunked;
    sweep.stride = 3;
    addSweep(corpus, sweep);
  }
  addSecondFaults(corpus);
  addRaces(corpus);
  const Campaign campaign =
      runSeeds(1, kSeeds, 1, [](const FaultPlan& plan) { return simulate(plan); });
  add(corpus, campaign.rows);
  corpus.failures.insert(corpus.failures.end(), campaign.failures.begin(), campaign.failures.end());
  return corpus;
}

}  // namespace pushrod::sim
