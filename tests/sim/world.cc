// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/world.h"

#include <algorithm>
#include <utility>

#include "tests/sim/scenery.h"

namespace pushrod::sim {

using orchestrator::DriverParts;
using orchestrator::DriverPush;
using orchestrator::EngineSlot;
using orchestrator::PushDriver;

namespace {

constexpr Duration kSlack = std::chrono::seconds(2);
constexpr Duration kStopFor = std::chrono::seconds(20);
constexpr std::size_t kMaxEvents = 200'000;
/// Nothing of the product itself takes as long: a timer beyond it is a limit.
constexpr Duration kShortestLimit = std::chrono::seconds(4);

}  // namespace

/// One rank: its process, and what of the product runs in it.
struct World::RankProcess final : public orchestrator::PushObserver {
  RankProcess(World& owner, int number)
      : world(owner),
        rank(number),
        executor(owner.executor_),
        link(*owner.links_, executor, number) {}

  void onStep(const orchestrator::Event& event, const orchestrator::StepResult& result) override {
    std::string text(eventName(event.kind));
    for (const std::string_view row : result.rows) {
      world.rows_.insert(row);
      text += " " + std::string(row);
    }
    world.note(rank, text);
    if (!result.fault.ok()) {
      world.invariants_->complain("rank " + std::to_string(rank) + ": " + result.fault.message());
    }
  }

  World& world;
  int rank;
  RankExecutor executor;
  SimLink link;
  SimCaller* sim = nullptr;
  std::unique_ptr<orchestrator::Caller> caller;
  std::unique_ptr<PushDriver> driver;
  TimePoint began{};
};

World::World(Options options)
    : options_(std::move(options)),
      config_(theConfig(options_.plan)),
      trace_(14695981039346656037U) {
  const Complain complain = [this](const std::string& text) { invariants_->complain(text); };
  const int ranks = options_.plan.ranks;
  links_ = std::make_unique<LinkHub>(executor_, config_.timeouts.agreement);
  agreements_ = std::make_unique<Agreements>(executor_, ranks, complain);
  gathers_ = std::make_unique<Gathers>(
      executor_, ranks, config_.timeouts.gather + std::chrono::seconds(10), complain);
  buildEngines();
  buildRanks();
}

World::~World() = default;

void World::buildEngines() {
  const Complain complain = [this](const std::string& text) { invariants_->complain(text); };
  std::vector<FakeEngine*> plain;
  for (int i = 0; i < options_.plan.engines; ++i) {
    engines_.push_back(std::make_unique<FakeEngine>(
        executor_, "e" + std::to_string(i), options_.plan.oldProfile, complain));
    plain.push_back(engines_.back().get());
  }
  invariants_ = std::make_unique<Invariants>(plain);
  if (options_.plan.chunked) {
    buildMemories(plain);
  } else {
    plane_ = std::make_unique<SimPlane>(executor_, plain);
  }
  ledgers_.resize(engines_.size());
}

/// Every other engine lives on rank 1's host, where there is a rank 1.
void World::buildMemories(const std::vector<FakeEngine*>& engines) {
  const int packers = std::min(options_.plan.ranks, 2);
  for (int i = 0; i < packers; ++i) {
    memories_.push_back(std::make_unique<SimChunks>(packers, options_.impatient));
  }
  for (std::size_t i = 0; i < engines.size(); ++i) {
    const SimChunks* const memory = memories_[i % memories_.size()].get();
    engines[i]->readFrom([memory](std::size_t tensor) { return memory->read(tensor); });
  }
  plane_ = std::make_unique<SimPlane>(executor_, engines, memories_.front().get());
  if (packers > 1) {
    packer_ = std::make_unique<SimPlane>(executor_, std::vector<FakeEngine*>(), memories_[1].get());
  }
}

SimPlane* World::planeOf(int rank) const {
  return rank == 0 ? plane_.get() : (rank == 1 ? packer_.get() : nullptr);
}

void World::buildRanks() {
  const auto manifest = theManifest();
  for (int i = 0; i < options_.plan.ranks; ++i) {
    ranks_.push_back(std::make_unique<RankProcess>(*this, i));
    RankProcess& rank = *ranks_.back();
    links_->add(&rank.link);
    if (options_.unarmed) {
      rank.executor.ignoreTimersFrom(kShortestLimit);
    }
    CallerWorld callers{rank.executor,
                        i,
                        *agreements_,
                        *gathers_,
                        planeOf(i),
                        manifest,
                        [this, i](Seam where, const std::string& what) {
                          return seam(where, i, what, std::nullopt);
                        },
                        [this](const std::string& text) { invariants_->complain(text); }};
    auto sim = std::make_unique<SimCaller>(std::move(callers));
    rank.sim = sim.get();
    rank.caller = std::move(sim);
    if (options_.decorateCaller) {
      rank.caller = options_.decorateCaller(std::move(rank.caller), i, rank.executor);
    }
  }
  for (std::size_t i = 0; i < engines_.size(); ++i) {
    FakeClient::Hooks hooks{[this, i](const Call& call) {
                              invariants_->onCall(call, engines_[i]->name(), phase());
                              return seam(
                                  Seam::kEngine,
                                  0,
                                  engines_[i]->name() + " " + std::string(callName(call.kind)),
                                  call.kind);
                            },
                            [this, i](bool forEver) {
                              engines_[i]->crash(forEver);
                              plane_->engineGone(i);
                            },
                            [this](const std::string& text) { invariants_->complain(text); }};
    std::unique_ptr<EngineClient> client =
        std::make_unique<FakeClient>(ranks_.front()->executor, *engines_[i], std::move(hooks));
    if (options_.decorate) {
      client = options_.decorate(std::move(client), *this);
    }
    clients_.push_back(std::move(client));
  }
}

Phase World::phase() const {
  const auto& driver = ranks_.front()->driver;
  return driver == nullptr ? Phase::kIdle : driver->state().phase;
}

void World::note(int rank, const std::string& text) {
  const auto at = executor_.elapsed().count();
  const std::string line = std::to_string(at) + " " + std::to_string(rank) + " " + text;
  for (const char c : line) {
    trace_ = (trace_ ^ static_cast<unsigned char>(c)) * 1099511628211U;
  }
  if (options_.verbose) {
    log_ += line + "\n";
  }
}

FaultKind World::seam(Seam where, int rank, const std::string& what, std::optional<CallKind> call) {
  note(rank, "> " + what);
  if (pushes_ != 1) {
    return FaultKind::kNone;
  }
  if (site_.hit) {
    return secondFault(where, rank);
  }
  const FaultPlan& plan = options_.plan;
  const std::uint64_t own = ++counts_[static_cast<std::size_t>(where)];
  ++total_;
  const std::optional<Seam> wanted = seamOf(plan.kind);
  const bool now = wanted ? *wanted == where && own == plan.k : total_ == plan.k;
  if (!now || plan.kind == FaultKind::kNone) {
    return FaultKind::kNone;
  }
  site_ = FaultSite{true, what, rank, phase(), call};
  note(rank, "! " + std::string(faultName(plan.kind)));
  if (!wanted) {
    strike(plan.kind, plan.kind == FaultKind::kCancel ? plan.victim : rank);
    return FaultKind::kNone;
  }
  return plan.kind;
}

FaultKind World::secondFault(Seam where, int rank) {
  const FaultPlan& plan = options_.plan;
  const std::optional<Seam> wanted = seamOf(plan.second);
  if (plan.second == FaultKind::kNone || secondHit_ || (wanted && *wanted != where) ||
      ++afterFirst_ != plan.secondK) {
    return FaultKind::kNone;
  }
  secondHit_ = true;
  note(rank, "! " + std::string(faultName(plan.second)));
  if (!wanted) {
    strike(plan.second, plan.second == FaultKind::kCancel ? plan.victim : rank);
    return FaultKind::kNone;
  }
  return plan.second;
}

/// A fault of a whole rank.
void World::strike(FaultKind kind, int victim) {
  RankProcess& rank = *ranks_[static_cast<std::size_t>(victim)];
  RankEnd& end = ends_[static_cast<std::size_t>(victim)];
  switch (kind) {
    case FaultKind::kCancel:
      rank.executor.post([&rank] {
        if (rank.driver != nullptr) {
          rank.driver->cancel(Status(Code::kCancelled, "cancelled"));
        }
      });
      return;
    case FaultKind::kRankDies:
      end.gone = true;
      rank.executor.die();
      agreements_->die(victim);
      links_->died(victim);
      if (victim == 0) {
        plane_->abort(Status(Code::kAborted, "the sender died"));
      }
      return;
    case FaultKind::kRankStops:
      end.stopped = true;
      rank.executor.stop();
      links_->stopped(victim, kStopFor);
      return;
    default:
      return;
  }
}

std::vector<EngineSlot> World::slots(int number) {
  std::vector<EngineSlot> slots;
  for (std::size_t i = 0; i < clients_.size(); ++i) {
    EngineSlot slot;
    slot.client = clients_[i].get();
    slot.ledger = ledgers_[i].forNextPush();
    slot.facts.version = "v" + std::to_string(number);
    slot.facts.marker = "pushrod-sim-" + std::to_string(number);
    slot.facts.engine = slot.client->name();
    slots.push_back(std::move(slot));
  }
  return slots;
}

void World::start(RankProcess& rank, int number) {
  DriverPush push;
  push.epoch = static_cast<std::uint64_t>(number);
  push.version = "v" + std::to_string(number);
  push.marker = "pushrod-sim-" + std::to_string(number);
  push.agreement = "the same";
  push.compareAgreement = [](std::string_view, std::string_view) { return "it differs"; };
  if (rank.rank == 0) {
    push.engines = slots(number);
  }
  Rank who;
  who.rank = rank.rank;
  who.size = options_.plan.ranks;
  rank.began = executor_.now();
  rank.sim->beginPush(number);
  DriverParts parts{rank.executor,
                    *rank.caller,
                    rank.link,
                    rank,
                    config_,
                    who,
                    planeOf(rank.rank),
                    rank.rank == 0 && !memories_.empty() ? memories_.front().get() : nullptr};
  rank.driver = std::make_unique<PushDriver>(
      parts, std::move(push), [this, &rank](PushDriver::Ending ending) {
        ended(rank, std::move(ending));
      });
  rank.driver->start();
}

void World::ended(RankProcess& rank, PushDriver::Ending ending) {
  RankEnd& end = ends_[static_cast<std::size_t>(rank.rank)];
  end.ended = true;
  end.known = ending.verdictKnown;
  end.agreementDead = rank.driver->state().agreementDead;
  end.took = std::chrono::duration_cast<Duration>(executor_.now() - rank.began);
  end.report = std::move(ending.report);
  if (rank.rank == 0) {
    for (std::size_t i = 0; i < ending.engines.size(); ++i) {
      ledgers_[i] = ending.engines[i].ledger;
    }
  }
  note(rank.rank,
       "= " + std::string(pushOutcomeName(end.report.outcome)) + " " +
           end.report.firstCause.toString());
  rank.driver.reset();
}

bool World::allEnded() const {
  return std::all_of(
      ends_.begin(), ends_.end(), [](const RankEnd& end) { return end.ended || end.gone; });
}

void World::reportHang(const std::string& why) {
  std::string text = "promise 2: a hang (" + why + ")";
  for (const auto& rank : ranks_) {
    if (rank->driver == nullptr || rank->executor.dead()) {
      continue;
    }
    const orchestrator::PushState& state = rank->driver->state();
    text += "; rank " + std::to_string(rank->rank) + " in " + std::string(phaseName(state.phase)) +
            "/" + std::string(orchestrator::stageName(state.stage)) + " waits for " +
            agreements_->waitsFor(rank->rank) + gathers_->waitsFor(rank->rank) +
            (rank->rank == 0 ? plane_->waitsFor() : "") + (state.goalBusy ? " engines" : "");
  }
  invariants_->complain(text);
}

void World::loop() {
  const TimePoint latest = executor_.now() + config_.timeouts.push + kSlack;
  for (std::size_t i = 0; !allEnded(); ++i) {
    if (!executor_.step()) {
      reportHang("nothing left to happen");
      return;
    }
    plane_->look();
    invariants_->check(phase());
    if (i == kMaxEvents || executor_.now() > latest) {
      reportHang(i == kMaxEvents ? "endless events" : "past timeouts.push");
      return;
    }
  }
}

void World::push(int number) {
  pushes_ = number;
  ends_.assign(ranks_.size(), RankEnd{});
  invariants_->beginPush(number);
  for (const auto& rank : ranks_) {
    rank->executor.post([this, &rank = *rank, number] { start(rank, number); });
  }
  loop();
}

Outcome World::run() {
  Outcome outcome;
  push(1);
  invariants_->checkEnd(ends_, options_.plan, site_);
  outcome.first = ends_;
  outcome.hit = site_.hit;
  outcome.hitIn = site_.phase;
  const std::optional<Seam> wanted = seamOf(options_.plan.kind);
  outcome.seams = wanted ? counts_[static_cast<std::size_t>(*wanted)] : total_;
  const auto heals = [](FaultKind kind) {
    return kind != FaultKind::kDead && kind != FaultKind::kRankDies &&
           kind != FaultKind::kRankStops;
  };
  const bool healed = heals(options_.plan.kind) && heals(options_.plan.second);
  outcome.secondHit = secondHit_;
  if (options_.second && healed && invariants_->broken().empty()) {
    // What was left over on the way may still happen: late requests, late answers.
    executor_.runFor(std::chrono::seconds(1));
    gathers_->rebuild();
    push(2);
    FaultPlan after{options_.plan.ranks, options_.plan.engines};
    after.quarantine = options_.plan.quarantine;
    invariants_->checkEnd(ends_, after, FaultSite{});
  }
  outcome.broken = invariants_->broken();
  outcome.trace = trace_;
  outcome.log = log_;
  outcome.rows = rows_;
  return outcome;
}

Outcome simulate(const FaultPlan& plan, bool verbose) {
  World::Options options;
  options.plan = plan;
  options.verbose = verbose;
  World world(std::move(options));
  return world.run();
}

}  // namespace pushrod::sim
