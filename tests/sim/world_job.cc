// SPDX-License-Identifier: Apache-2.0
// What there is in a world: engines, and the processes of the trainers' job.
#include "tests/sim/world_job.h"

#include <algorithm>
#include <utility>

#include "tests/sim/scenery.h"

namespace pushrod::sim {

using orchestrator::DriverParts;
using orchestrator::DriverPush;
using orchestrator::EngineSlot;
using orchestrator::PushDriver;

namespace {

/// Nothing of the product itself takes as long: a timer beyond it is a limit.
constexpr Duration kShortestLimit = std::chrono::seconds(4);
constexpr int kSlow = 10;
constexpr unsigned kChannelBits = 32;

}  // namespace

void World::RankProcess::onStep(const orchestrator::Event& event,
                                const orchestrator::StepResult& result) {
  world.note(rank, eventName(event.kind));
  for (const std::string_view row : result.rows) {
    world.rows_.insert(row);
    world.note(rank, "  ", row);
  }
  if (!result.fault.ok()) {
    world.invariants_->complain("rank " + std::to_string(rank) + ": " + result.fault.message());
  }
}

void World::buildEngines() {
  const FaultPlan& plan = options_.plan;
  const Complain complain = [this](const std::string& text) { invariants_->complain(text); };
  std::vector<FakeEngine*> plain;
  for (int i = 0; i < plan.engines; ++i) {
    FakeEngine::Setup setup;
    setup.name = "e" + std::to_string(i);
    setup.oldProfile = plan.oldProfile;
    setup.versions = plan.versions;
    setup.draft = plan.draft;
    setup.corruptible = plan.provesContent();
    setup.workers = plan.workers;
    setup.slowness = i == plan.slowEngine ? kSlow : 1;
    setup.pauseTakes = plan.pauseTakes;
    engines_.push_back(std::make_unique<FakeEngine>(executor_, pace_, std::move(setup), complain));
    plain.push_back(engines_.back().get());
    plain.back()->dialBy([this](std::uint64_t channel) {
      return std::any_of(
          jobs_.begin(), jobs_.end(), [channel](const auto& job) { return job->carries(channel); });
    });
    if (static_cast<std::size_t>(i) < plan.engineSkews.size()) {
      plain.back()->stall(plan.engineSkews[static_cast<std::size_t>(i)]);
    }
    if (static_cast<std::size_t>(i) < plan.starts.size()) {
      plain.back()->find(plan.starts[static_cast<std::size_t>(i)]);
    }
  }
  invariants_ = std::make_unique<Invariants>(plain, plan);
}

void World::beginJob() {
  const FaultPlan& plan = options_.plan;
  const Complain complain = [this](const std::string& text) { invariants_->complain(text); };
  jobs_.push_back(std::make_unique<Job>());
  Job& job = *jobs_.back();
  const TimeoutsConfig& limits = config_.timeouts;
  const World::Without& without = options_.without;
  job.links = std::make_unique<LinkHub>(
      executor_, pace_, limits.agreement, LinkHub::Hears{!without.fence, !without.losses});
  job.agreements =
      std::make_unique<Agreements>(executor_, pace_, plan.ranks, complain, without.voteKeys);
  job.gathers = std::make_unique<Gathers>(executor_, pace_, plan.ranks, sourceLimit(), complain);
  buildMemories(job);
  if (plan.owners > 0) {
    buildSources(job);
  }
  buildRanks(job);
  buildClients(job);
  job.ledgers.resize(engines_.size());
  job.known.resize(engines_.size());
}

std::vector<FakeEngine*> World::enginesThere() const {
  std::vector<FakeEngine*> engines;
  for (const auto& engine : engines_) {
    engines.push_back(engine.get());
  }
  return engines;
}

/// Every other engine lives on rank 1's host, where there is a rank 1.
void World::buildMemories(Job& job) {
  const std::vector<FakeEngine*> engines = enginesThere();
  const std::uint64_t first = static_cast<std::uint64_t>(jobs_.size()) << kChannelBits;
  const int packers = options_.plan.chunked ? std::min(options_.plan.ranks, 2) : 0;
  for (int i = 0; i < packers; ++i) {
    job.memories.push_back(
        std::make_unique<SimChunks>(packers, options_.without.waitingForReaders));
  }
  for (std::size_t i = 0; i < engines.size() && packers > 0; ++i) {
    const SimChunks* const memory = job.memories[i % job.memories.size()].get();
    engines[i]->readFrom([memory](std::size_t tensor) { return memory->read(tensor); });
  }
  job.planes.push_back(std::make_unique<SimPlane>(
      executor_, pace_, engines, packers > 0 ? job.memories.front().get() : nullptr, first));
  job.planes.front()->keepWhenAborted(options_.without.rebuild);
  if (packers > 1) {
    job.planes.push_back(std::make_unique<SimPlane>(
        executor_, pace_, std::vector<FakeEngine*>(), job.memories[1].get(), first));
  }
}

/// Every rank has a part in a channel of several sources, whether it owns tensors or not.
void World::buildSources(Job& job) {
  const std::uint64_t first = static_cast<std::uint64_t>(jobs_.size()) << kChannelBits;
  for (int rank = 0; rank < options_.plan.ranks; ++rank) {
    if (rank > 0) {
      job.planes.push_back(
          std::make_unique<SimPlane>(executor_, pace_, enginesThere(), nullptr, first));
    }
    SimPlane& plane = *job.planes.back();
    plane.ownedBy(rank);
    job.sources.push_back(std::make_unique<SimSource>(rank, plane, options_.plan.buffer));
  }
}

bool World::Job::carries(std::uint64_t channel) const {
  if (sources.empty()) {
    return planes.front()->carries(channel);
  }
  bool any = false;
  for (const auto& plane : planes) {
    if (plane->isSource() && !plane->carries(channel)) {
      return false;
    }
    any = any || plane->isSource();
  }
  return any;
}

std::unique_ptr<orchestrator::Caller> World::buildCaller(Job& job, RankProcess& rank) {
  const int number = rank.rank;
  CallerWorld callers{
      rank.executor,
      pace_,
      number,
      number == options_.plan.slowRank ? kSlow : 1,
      *job.agreements,
      *job.gathers,
      job.planeOf(number),
      job.sourceOf(number),
      theManifest(options_.plan),
      [this, number](Seam where, orchestrator::ActionKind action, const std::string& what) {
        SeamCall call;
        call.seam = where;
        call.rank = number;
        call.what = actionName(action);
        return seam(call, what);
      },
      [this](const std::string& text) { invariants_->complain(text); }};
  auto sim = std::make_unique<SimCaller>(std::move(callers));
  rank.sim = sim.get();
  std::unique_ptr<orchestrator::Caller> caller = std::move(sim);
  return options_.decorateCaller ? options_.decorateCaller(std::move(caller), number, rank.executor)
                                 : std::move(caller);
}

void World::buildRanks(Job& job) {
  for (int i = 0; i < options_.plan.ranks; ++i) {
    job.ranks.push_back(std::make_unique<RankProcess>(*this, *job.links, i));
    RankProcess& rank = *job.ranks.back();
    job.links->add(&rank.link);
    if (options_.without.limits) {
      rank.executor.ignoreTimersFrom(kShortestLimit);
    }
    rank.caller = buildCaller(job, rank);
  }
}

void World::buildClients(Job& job) {
  for (std::size_t i = 0; i < engines_.size(); ++i) {
    FakeClient::Hooks hooks{[this, i](const Call& call) {
                              SeamCall at;
                              at.engine = static_cast<int>(i);
                              at.call = call.kind;
                              invariants_->onCall(call, i, phase(), executor_.now() >= wakes_);
                              return seam(
                                  at, engines_[i]->name() + " " + std::string(callName(call.kind)));
                            },
                            [this, i, &job](bool forEver) {
                              engines_[i]->crash(forEver);
                              for (const auto& plane : job.planes) {
                                plane->engineGone(i);
                              }
                            },
                            [this](const std::string& text) { invariants_->complain(text); },
                            options_.without.callIds};
    std::unique_ptr<EngineClient> client = std::make_unique<FakeClient>(
        job.ranks.front()->executor, executor_, pace_, *engines_[i], std::move(hooks));
    if (options_.decorate) {
      client = options_.decorate(std::move(client), *this);
    }
    job.clients.push_back(std::move(client));
  }
}

std::string World::version() const {
  return "v" + std::to_string(options_.plan.sameVersion ? 1 : pushes_);
}

std::vector<EngineSlot> World::slots() {
  Job& job = *jobs_.back();
  std::vector<EngineSlot> slots;
  for (std::size_t i = 0; i < job.clients.size(); ++i) {
    EngineSlot slot;
    slot.client = job.clients[i].get();
    slot.ledger = job.ledgers[i].forNextPush();
    slot.facts.version = version();
    slot.facts.marker = "pushrod-sim-" + std::to_string(pushes_);
    slot.facts.markerMode = config_.push.versionMarker;
    slot.facts.verify = options_.plan.verify;
    slot.facts.flush = config_.push.flush;
    slot.facts.wake = config_.engines.wake;
    slot.facts.engine = slot.client->name();
    slot.facts.expected = job.known[i];
    slots.push_back(std::move(slot));
  }
  return slots;
}

void World::start(RankProcess& rank) {
  Job& job = *jobs_.back();
  const bool odd = !healed_ && rank.rank == options_.plan.otherConfig;
  DriverPush push;
  push.epoch = job.epoch;
  push.version = version();
  push.marker = "pushrod-sim-" + std::to_string(pushes_);
  push.agreement = odd ? "something else" : "the same";
  push.draft = carriesDraft();
  push.compareAgreement = [](std::string_view, std::string_view) { return "it differs"; };
  if (rank.rank == 0) {
    push.engines = slots();
  }
  Rank who;
  who.rank = rank.rank;
  who.size = options_.plan.ranks;
  ends_[static_cast<std::size_t>(rank.rank)].began = executor_.now();
  rank.sim->beginPush(pushes_, push.draft ? theDraft(options_.plan) : nullptr);
  const bool leads = rank.rank == 0 && !job.memories.empty();
  DriverParts parts{rank.executor,
                    *rank.caller,
                    rank.link,
                    rank,
                    config_,
                    who,
                    job.planeOf(rank.rank),
                    leads ? job.memories.front().get() : nullptr,
                    job.sourceOf(rank.rank)};
  rank.driver = std::make_unique<PushDriver>(
      parts, std::move(push), [this, &rank](PushDriver::Ending ending) {
        ended(rank, std::move(ending));
      });
  rank.driver->start();
}

void World::ended(RankProcess& rank, PushDriver::Ending ending) {
  Job& job = *jobs_.back();
  RankEnd& end = ends_[static_cast<std::size_t>(rank.rank)];
  end.ended = true;
  end.known = ending.verdictKnown;
  end.agreementDead = rank.driver->state().agreementDead;
  end.endedAt = executor_.now();
  end.report = std::move(ending.report);
  const bool good =
      end.report.outcome == PushOutcome::kDone || end.report.outcome == PushOutcome::kRecovered;
  for (std::size_t i = 0; i < ending.engines.size(); ++i) {
    job.ledgers[i] = ending.engines[i].ledger;
    if (good && !job.ledgers[i].dropped) {
      job.known[i] = job.ledgers[i].identity;
    }
  }
  note(rank.rank,
       "= " + std::string(pushOutcomeName(end.report.outcome)) + " ",
       end.report.firstCause.toString());
  rank.driver.reset();
}

void World::reportHang(const std::string& why) {
  const Job& job = *jobs_.back();
  std::string text = "promise 2: a hang (" + why + ")";
  for (const auto& rank : job.ranks) {
    if (rank->driver == nullptr || rank->executor.dead()) {
      continue;
    }
    const orchestrator::PushState& state = rank->driver->state();
    text += "; rank " + std::to_string(rank->rank) + " in " + std::string(phaseName(state.phase)) +
            "/" + std::string(orchestrator::stageName(state.stage)) + " waits for " +
            job.agreements->waitsFor(rank->rank) + job.gathers->waitsFor(rank->rank) +
            (job.planeOf(rank->rank) != nullptr ? job.planeOf(rank->rank)->waitsFor() : "") +
            (state.goalBusy ? " engines" : "");
  }
  invariants_->complain(text);
}

}  // namespace pushrod::sim
