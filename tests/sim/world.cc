// SPDX-License-Identifier: Apache-2.0
// What happens in a world: pushes, faults, and what an operator does about them.
#include "tests/sim/world.h"

#include <algorithm>
#include <utility>

#include "tests/sim/scenery.h"
#include "tests/sim/world_job.h"

namespace pushrod::sim {

namespace {

constexpr Duration kNoLimit = std::chrono::hours(168);
constexpr Duration kSlack = std::chrono::seconds(2);
constexpr Duration kStopFor = std::chrono::seconds(20);
/// The trainer's own watchdog comes after timeouts.gather (P35).
constexpr Duration kWatchdog = std::chrono::seconds(10);
constexpr std::size_t kMostEvents = 2'000'000;
/// Between two pushes while faults go on.
constexpr Duration kShortRest{500};
/// Whatever was under way has happened by then: late replies, stalls, stopped ranks.
constexpr Duration kLongRest = std::chrono::seconds(120);
constexpr std::uint64_t kHashBasis = 14695981039346656037U;
constexpr std::uint64_t kHashPrime = 1099511628211U;

}  // namespace

World::World(Options options)
    : options_(std::move(options)),
      pace_(options_.plan.seed),
      config_(theConfig(options_.plan)),
      injector_(options_.plan.list()),
      trace_(kHashBasis) {
  if (options_.without.pushLimit) {
    config_.timeouts.push = kNoLimit;
  }
  buildEngines();
  beginJob();
}

World::~World() = default;

Duration World::sourceLimit() const {
  return config_.timeouts.gather + kWatchdog;
}

Phase World::phase() const {
  const auto& driver = jobs_.back()->ranks.front()->driver;
  return driver == nullptr ? Phase::kIdle : driver->state().phase;
}

bool World::carriesDraft() const {
  const FaultPlan& plan = options_.plan;
  return plan.draft && (pushes_ != plan.targetOnly || jobs_.size() > 1);
}

void World::hash(std::string_view text) {
  for (const char c : text) {
    trace_ = (trace_ ^ static_cast<unsigned char>(c)) * kHashPrime;
  }
}

void World::note(int rank, std::string_view text, std::string_view more) {
  const auto at = executor_.elapsed().count();
  trace_ = (trace_ ^ static_cast<std::uint64_t>(at)) * kHashPrime;
  trace_ = (trace_ ^ static_cast<std::uint64_t>(rank)) * kHashPrime;
  hash(text);
  hash(more);
  if (options_.verbose) {
    log_ += std::to_string(at) + " " + std::to_string(rank) + " " + std::string(text) +
            std::string(more) + "\n";
  }
}

Fault World::seam(const SeamCall& call, const std::string& what) {
  note(call.rank, "> ", what);
  if (healed_) {
    return {};
  }
  SeamCall at = call;
  at.push = pushes_;
  at.phase = phase();
  const auto& driver = jobs_.back()->ranks.front()->driver;
  at.attempt = driver == nullptr ? 0 : driver->state().attempt;
  at.draft = driver != nullptr && driver->state().draft;
  if (options_.keepCalls && pushes_ == 1) {
    calls_.push_back(at);
  }
  const Fault fault = injector_.at(at);
  if (fault.kind == FaultKind::kNone) {
    return fault;
  }
  hits_.push_back(FaultSite{fault, at, what, at.phase, calls_.size()});
  note(call.rank, "! ", faultName(fault.kind));
  if (fault.kind == FaultKind::kHangsDeaf) {
    RankEnd& end = ends_[static_cast<std::size_t>(call.rank)];
    end.blockedUntil = std::max(end.blockedUntil, executor_.now() + sourceLimit());
  }
  if (seamOf(fault.kind)) {
    return fault;
  }
  const int victim = fault.victim < 0 ? call.rank : fault.victim;
  if (fault.delay == Duration::zero()) {
    strike(fault, victim);
  } else {
    executor_.postAt(executor_.now() + fault.delay, [this, fault, victim, push = pushes_] {
      if (push == pushes_) {
        strike(fault, victim);
      }
    });
  }
  return {};
}

void World::kill(Job& job, int victim) {
  job.incomplete = true;
  job.ranks[static_cast<std::size_t>(victim)]->executor.die();
  job.agreements->die(victim);
  job.links->died(victim);
  if (SimPlane* plane = job.planeOf(victim); plane != nullptr) {
    plane->abort(Status(Code::kAborted, "the sender died"));
  }
}

/// A fault of a whole rank.
void World::strike(const Fault& fault, int victim) {
  Job& job = *jobs_.back();
  RankProcess& rank = *job.ranks[static_cast<std::size_t>(victim)];
  RankEnd& end = ends_[static_cast<std::size_t>(victim)];
  if (rank.executor.dead() || end.ended) {
    return;
  }
  switch (fault.kind) {
    case FaultKind::kCancel:
      rank.executor.post([&rank] {
        if (rank.driver != nullptr) {
          rank.driver->cancel(Status(Code::kCancelled, "cancelled"));
        }
      });
      return;
    case FaultKind::kRankDies:
      end.gone = true;
      invariants_->onLoss(executor_.now());
      kill(job, victim);
      return;
    case FaultKind::kRankStops: {
      const Duration time = fault.lasts == Duration::zero() ? kStopFor : fault.lasts;
      const bool noticed = time >= config_.timeouts.agreement;
      end.stopped = end.stopped || noticed;
      end.blockedUntil = std::max(end.blockedUntil, executor_.now() + time);
      if (noticed) {
        invariants_->onLoss(executor_.now());
      }
      job.incomplete = job.incomplete || noticed;
      if (victim == 0 && noticed) {
        wakes_ = executor_.now() + time;
      }
      rank.executor.stop();
      job.links->stopped(victim, time);
      return;
    }
    default:
      return;
  }
}

bool World::allEnded() const {
  return std::all_of(
      ends_.begin(), ends_.end(), [](const RankEnd& end) { return end.ended || end.gone; });
}

void World::loop() {
  // A rank that does not run, or whose source hangs, ends when it can (a short limit is then over).
  const Duration blocked = options_.plan.pushLimit > Duration::zero() ? kLongRest : kSlack;
  const TimePoint latest = executor_.now() + config_.timeouts.push + blocked;
  const auto& planes = jobs_.back()->planes;
  for (std::size_t i = 0; !allEnded(); ++i) {
    if (!executor_.step()) {
      reportHang("nothing left to happen");
      return;
    }
    for (const auto& plane : planes) {
      plane->look();
    }
    invariants_->check(phase());
    if (i == kMostEvents || executor_.now() > latest) {
      reportHang(i == kMostEvents ? "endless events" : "past timeouts.push");
      return;
    }
  }
}

/// `sound`: nothing is wrong when it begins.
void World::push(bool sound) {
  Job& job = *jobs_.back();
  ++pushes_;
  ++job.epoch;
  wakes_ = TimePoint::max();
  ends_.assign(job.ranks.size(), RankEnd{});
  const std::size_t before = hits_.size();
  invariants_->beginPush(pushes_, version(), carriesDraft());
  for (const auto& rank : job.ranks) {
    const auto place = static_cast<std::size_t>(rank->rank);
    const auto& skews = options_.plan.rankSkews;
    const Duration skew = place < skews.size() ? skews[place] : Duration::zero();
    rank->executor.postAt(executor_.now() + skew, [this, &rank = *rank] { start(rank); });
  }
  loop();
  const std::vector<FaultSite> hits(hits_.begin() + static_cast<std::ptrdiff_t>(before),
                                    hits_.end());
  invariants_->checkEnd(ends_, hits, sound);
}

/// Ranks that are gone take the whole job with them: it is started anew.
void World::settle() {
  executor_.runFor(kShortRest);
  Job& job = *jobs_.back();
  if (!job.incomplete) {
    job.gathers->rebuild();
    return;
  }
  for (const auto& rank : job.ranks) {
    if (!rank->executor.dead()) {
      kill(job, rank->rank);
    }
  }
  beginJob();
}

void World::heal() {
  healed_ = true;
  executor_.runFor(kLongRest);
  for (const auto& engine : engines_) {
    engine->heal();
    // A job that knew another model there has to be started anew.
    jobs_.back()->incomplete = jobs_.back()->incomplete || engine->changed();
  }
  settle();
}

Outcome World::run() {
  Outcome outcome;
  push(options_.plan.otherConfig < 0);
  outcome.first = ends_;
  for (int i = 1; i < options_.plan.pushes && !broke(); ++i) {
    settle();
    push(false);
  }
  if (options_.second && !broke()) {
    heal();
    push(true);
  }
  const std::size_t faults = options_.plan.list().size();
  outcome.hit = faults > 0 && injector_.struck(0);
  outcome.secondHit = faults > 1 && injector_.struck(1);
  outcome.hitIn = hits_.empty() ? Phase::kIdle : hits_.front().phase;
  outcome.hits = std::move(hits_);
  outcome.calls = std::move(calls_);
  outcome.broken = invariants_->broken();
  outcome.trace = trace_;
  outcome.lastDraw = pace_.lastDraw();
  outcome.log = std::move(log_);
  outcome.rows = std::move(rows_);
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
