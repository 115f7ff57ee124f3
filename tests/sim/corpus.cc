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

/// What is sent in two sessions, by several ranks, and compared.
void addLoads(Corpus& corpus) {
  Sweep sweep;
  sweep.ranks = 2;
  sweep.engines = 1;
  sweep.kinds = everyKind();
  sweep.draft = true;
  sweep.replicas = true;
  sweep.checksums = true;
  addSweep(corpus, sweep);
  sweep.replicas = false;
  sweep.checksums = false;
  sweep.owners = 3;
  addSweep(corpus, sweep);
}

void addPlan(Corpus& corpus, const FaultPlan& plan) {
  const Outcome outcome = simulate(plan);
  add(corpus, outcome.rows);
  for (const std::string& broken : outcome.broken) {
    corpus.failures.push_back(broken + "\n  plan: " + plan.text());
  }
}

/// Engines as no sweep finds them.
void addOddEngines(Corpus& corpus) {
  constexpr std::uint64_t kMostCalls = 40;
  FaultPlan unproved{1, 1, FaultKind::k5xxAfter};
  unproved.versions = false;
  unproved.verify = false;
  // Somebody resumes an engine in whose session nothing came yet, and the push ends before it has
  // closed that session: the engine is not put back.
  FaultPlan resumed{1, 1};
  resumed.starts = {{.session = true}};
  Fault byOther;
  byOther.kind = FaultKind::kResumed;
  Fault cancel;
  cancel.kind = FaultKind::kCancel;
  cancel.chained = true;
  resumed.faults = {byOther, cancel};
  for (std::uint64_t k = 1; k < kMostCalls; ++k) {
    unproved.k = k;
    addPlan(corpus, unproved);
    resumed.faults.back().nth = k;
    addPlan(corpus, resumed);
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
  addLoads(corpus);
  addSecondFaults(corpus);
  addOddEngines(corpus);
  const Campaign campaign =
      runSeeds(1, kSeeds, 1, [](const FaultPlan& plan) { return simulate(plan); });
  add(corpus, campaign.rows);
  corpus.failures.insert(corpus.failures.end(), campaign.failures.begin(), campaign.failures.end());
  return corpus;
}

}  // namespace pushrod::sim
