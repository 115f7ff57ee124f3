// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/sweep.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ostream>
#include <tuple>

#include <gtest/gtest.h>

#include "orchestrator/fsm/push_table.h"

namespace pushrod::sim {
namespace {

struct Shape {
  int ranks;
  int engines;
  FaultKind kind;
  bool oldProfile = false;
  bool quarantine = false;
  bool chunked = false;
  bool pass = false;
  bool draft = false;
  bool replicas = false;
  bool checksums = false;
  int owners = 0;
};

/// "lost_reply"
std::string nameOf(FaultKind kind) {
  std::string name(faultName(kind));
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

std::ostream& operator<<(std::ostream& out, const Shape& shape) {
  return out << shape.ranks << " ranks, " << shape.engines << " engines, " << faultName(shape.kind);
}

/// A switch of the environment; 0: it is not set.
std::uint64_t switchOf(const char* variable) {
  const char* text = std::getenv(variable);
  return text == nullptr ? 0 : std::strtoull(text, nullptr, 10);
}

/// Every how many-th run is made where runs are slow, as under a sanitizer: 1 makes all.
std::uint64_t partOf(const char* variable) {
  return std::max<std::uint64_t>(switchOf(variable), 1);
}

std::uint64_t share() {
  return partOf("PUSHROD_SIM_SHARE");
}

/// Which runs are made twice.
std::uint64_t twiceEvery() {
  constexpr std::uint64_t kUsual = 16;
  const std::uint64_t wanted = switchOf("PUSHROD_SIM_TWICE");
  return wanted == 0 ? kUsual : wanted;
}

/// Small worlds completely; in larger ones every so many calls, another part for each kind.
/// PUSHROD_SIM_STRIDE=1: all worlds completely.
std::uint64_t strideOf(const Shape& shape) {
  if (const std::uint64_t wanted = switchOf("PUSHROD_SIM_STRIDE"); wanted != 0) {
    return wanted;
  }
  const int size = shape.ranks * shape.engines;
  const bool wholeRank = !seamOf(shape.kind).has_value();
  if (size <= 2) {
    return 1;
  }
  return static_cast<std::uint64_t>(wholeRank ? 2 * size - 1 : (size + 2) / 3);
}

/// Says at the end how much was run.
class Count : public ::testing::Environment {
 public:
  void TearDown() override { std::printf("%llu runs\n", static_cast<unsigned long long>(runs)); }

  std::uint64_t runs = 0;
};

Count& count() {
  static auto* const made = new Count();
  return *made;
}

const auto* const kAdded = ::testing::AddGlobalTestEnvironment(&count());

void report(const SweepResult& result) {
  count().runs += result.runs;
  for (const std::string& failure : result.failures) {
    ADD_FAILURE() << failure;
  }
}

class EveryFault : public ::testing::TestWithParam<Shape> {};

TEST_P(EveryFault, KeepsThePromises) {
  const Shape& shape = GetParam();
  Sweep sweep;
  sweep.ranks = shape.ranks;
  sweep.engines = shape.engines;
  sweep.kinds = {shape.kind};
  sweep.oldProfile = shape.oldProfile;
  sweep.quarantine = shape.quarantine;
  sweep.chunked = shape.chunked;
  sweep.pass = shape.pass;
  sweep.draft = shape.draft;
  sweep.replicas = shape.replicas;
  sweep.checksums = shape.checksums;
  sweep.owners = shape.owners;
  sweep.stride = strideOf(shape) * share();
  sweep.twiceEvery = twiceEvery();
  report(runSweep(sweep));
}

// A second fault while the first one is dealt with: recovery itself fails, or the clean-up. A share
// of all calls, where the pairs of classes below take the first of each class.
class EveryPair : public ::testing::TestWithParam<FaultKind> {};

TEST_P(EveryPair, KeepsThePromises) {
  Sweep sweep;
  sweep.ranks = 2;
  sweep.engines = 1;
  sweep.kinds = {GetParam()};
  sweep.seconds = everyKind();
  sweep.stride = 9 * share();
  sweep.secondStride = 13;

  struct Way {
    bool chunked, pass;
  };

  for (const Way way : {Way{false, false}, Way{true, false}, Way{false, true}}) {
    sweep.chunked = way.chunked;
    sweep.pass = way.pass;
    report(runSweep(sweep));
  }
}

/// What pairs over classes of calls are run with, and of how many of them one is, usually.
struct Way {
  const char* name;
  std::uint64_t usualShare = 1;
  bool quarantine = false;
  bool chunked = false;
  bool draft = false;
  int owners = 0;
  int ranks = 2;
};

constexpr std::uint64_t kSome = 24;

const Way kWays[] = {
    {.name = "tcp"},
    {.name = "shm", .usualShare = kSome, .chunked = true},
    {.name = "tcp_quarantine", .usualShare = kSome, .quarantine = true},
    {.name = "shm_quarantine", .usualShare = kSome, .quarantine = true, .chunked = true},
    {.name = "draft", .usualShare = kSome, .draft = true},
    {.name = "owners", .usualShare = kSome, .owners = 2},
    {.name = "draft_owners_quarantine",
     .usualShare = kSome,
     .quarantine = true,
     .draft = true,
     .owners = 3,
     .ranks = 3},
};

std::string wayName(const Way& way, FaultKind kind) {
  return std::string(way.name) + "_" + nameOf(kind);
}

/// PUSHROD_SIM_CLASS_SHARE=1: all pairs of every way; N: every so many of each.
std::uint64_t classShare(const Way& way) {
  const std::uint64_t wanted = switchOf("PUSHROD_SIM_CLASS_SHARE");
  return wanted == 0 ? way.usualShare : wanted;
}

// The same, complete over classes of calls.
class EveryPairOfClasses : public ::testing::TestWithParam<std::tuple<Way, FaultKind>> {};

TEST_P(EveryPairOfClasses, KeepsThePromises) {
  const auto& [way, kind] = GetParam();
  Sweep sweep;
  sweep.ranks = way.ranks;
  sweep.engines = 2;
  sweep.kinds = {kind};
  sweep.seconds = everyKind();
  sweep.quarantine = way.quarantine;
  sweep.chunked = way.chunked;
  sweep.draft = way.draft;
  sweep.owners = way.owners;
  sweep.stride = share() * classShare(way);
  report(runPairsOfClasses(sweep));
}

// The same with another engine at hand, which must not suffer.
class EveryPairInQuarantine : public ::testing::TestWithParam<FaultKind> {};

TEST_P(EveryPairInQuarantine, KeepsThePromises) {
  Sweep sweep;
  sweep.ranks = 2;
  sweep.engines = 2;
  sweep.quarantine = true;
  sweep.kinds = {GetParam()};
  sweep.seconds = everyKind();
  sweep.stride = 11 * share();
  sweep.secondStride = 13;
  report(runSweep(sweep));
}

INSTANTIATE_TEST_SUITE_P(Pairs,
                         EveryPairInQuarantine,
                         ::testing::ValuesIn(everyKind()),
                         [](const auto& each) { return nameOf(each.param); });

INSTANTIATE_TEST_SUITE_P(Pairs,
                         EveryPairOfClasses,
                         ::testing::Combine(::testing::ValuesIn(kWays),
                                            ::testing::ValuesIn(everyKind())),
                         [](const auto& each) {
                           return wayName(std::get<0>(each.param), std::get<1>(each.param));
                         });

INSTANTIATE_TEST_SUITE_P(Pairs, EveryPair, ::testing::ValuesIn(everyKind()), [](const auto& each) {
  return nameOf(each.param);
});

/// Pushes with a draft model, with several owners, and with both.
void addLoads(std::vector<Shape>& list, FaultKind kind) {
  list.push_back({.ranks = 1, .engines = 1, .kind = kind, .draft = true});
  list.push_back({.ranks = 2, .engines = 2, .kind = kind, .draft = true, .replicas = true});
  list.push_back({.ranks = 2, .engines = 2, .kind = kind, .checksums = true});
  list.push_back({.ranks = 3, .engines = 2, .kind = kind, .quarantine = true, .draft = true});
  list.push_back({.ranks = 2, .engines = 1, .kind = kind, .pass = true, .draft = true});
  list.push_back({.ranks = 2, .engines = 1, .kind = kind, .owners = 1});
  list.push_back({.ranks = 2, .engines = 2, .kind = kind, .oldProfile = true, .owners = 2});
  list.push_back({.ranks = 4, .engines = 2, .kind = kind, .quarantine = true, .owners = 3});
  list.push_back({.ranks = 3, .engines = 2, .kind = kind, .draft = true, .owners = 2});
  list.push_back(
      {.ranks = 3, .engines = 1, .kind = kind, .pass = true, .draft = true, .owners = 3});
}

std::vector<Shape> shapes() {
  std::vector<Shape> list;
  for (int ranks = 1; ranks <= 4; ++ranks) {
    for (int engines = 1; engines <= 4; ++engines) {
      for (const FaultKind kind : everyKind()) {
        list.push_back(Shape{ranks, engines, kind});
      }
    }
  }
  for (const FaultKind kind : everyKind()) {
    list.push_back(Shape{2, 2, kind, true});
    list.push_back(Shape{1, 2, kind, false, true});
    list.push_back(Shape{2, 2, kind, true, true});
    list.push_back(Shape{3, 3, kind, false, true});
    list.push_back(Shape{1, 1, kind, false, false, true});
    list.push_back(Shape{2, 2, kind, false, false, true});
    list.push_back(Shape{3, 2, kind, false, false, true});
    list.push_back(Shape{2, 3, kind, false, true, true});
    list.push_back(Shape{2, 2, kind, false, false, false, true});
    list.push_back(Shape{3, 2, kind, true, true, false, true});
    list.push_back(Shape{2, 2, kind, false, false, true, true});
    addLoads(list, kind);
  }
  return list;
}

// P33: with push.stop: pass, a failure that is no source's own leaves no rank's pass unfinished.
TEST(StopPass, APassThatFailsInTheMiddleReachesItsEnd) {
  int passes = 0;
  for (const FaultKind kind : {FaultKind::kPlaneFails, FaultKind::k5xxBefore}) {
    for (FaultPlan plan{3, 2, kind, 1}; plan.k < 400; ++plan.k) {
      plan.pass = true;
      const Outcome outcome = simulate(plan);
      for (const std::string& broken : outcome.broken) {
        ADD_FAILURE() << broken << "\n  repeat: " << plan.replay();
      }
      if (!outcome.hit) {
        break;
      }
      EXPECT_FALSE(outcome.rows.contains("pass-cut")) << plan.replay();
      EXPECT_EQ(outcome.rows.contains("pass-on"), outcome.rows.contains("pass-over"))
          << plan.replay();
      passes += outcome.rows.contains("pass-on") ? 1 : 0;
    }
  }
  EXPECT_GE(passes, 4);
}

// P22: an engine that holds other values than it was sent is found out by its checksums and sent to
// again.
TEST(Checksums, OtherValuesAreFoundOutAndSentAgain) {
  FaultPlan plan{2, 2, FaultKind::kCorrupt, 1};
  plan.checksums = true;
  ASSERT_TRUE(plan.provesContent());
  int struck = 0;
  for (; plan.k < 400; ++plan.k) {
    const Outcome outcome = simulate(plan);
    for (const std::string& broken : outcome.broken) {
      ADD_FAILURE() << broken << "\n  repeat: " << plan.replay();
    }
    if (!outcome.hit) {
      break;
    }
    const PushReport& report = outcome.first.front().report;
    if (outcome.hitIn == Phase::kFinish) {
      ++struck;
      EXPECT_EQ(report.outcome, PushOutcome::kRecovered) << plan.replay();
      EXPECT_EQ(report.firstCause.code(), Code::kDataMismatch) << plan.replay();
    }
    for (const EngineReport& engine : report.engines) {
      EXPECT_EQ(engine.content, "proved") << plan.replay();
    }
  }
  EXPECT_EQ(struck, 2);
}

// The sweep would prove nothing if it left nobody out: an engine that dies in any phase is, and the
// push ends well.
TEST(Quarantine, ADeadEngineIsLeftOutInEveryPhase) {
  std::set<Phase> seen;
  for (FaultPlan plan{2, 3, FaultKind::kDead, 1}; plan.k < 400; ++plan.k) {
    plan.quarantine = true;
    const Outcome outcome = simulate(plan);
    for (const std::string& broken : outcome.broken) {
      ADD_FAILURE() << broken << "\n  repeat: " << plan.replay();
    }
    if (!outcome.hit) {
      break;
    }
    EXPECT_EQ(outcome.first.front().report.droppedEngines.size(), 1U) << plan.replay();
    seen.insert(outcome.hitIn);
  }
  for (const Phase phase : {Phase::kConnect,
                            Phase::kPause,
                            Phase::kClean,
                            Phase::kChannel,
                            Phase::kStart,
                            Phase::kStream,
                            Phase::kFinish,
                            Phase::kFlush,
                            Phase::kVerify,
                            Phase::kResume}) {
    EXPECT_TRUE(seen.contains(phase)) << phaseName(phase);
  }
}

INSTANTIATE_TEST_SUITE_P(Sweep, EveryFault, ::testing::ValuesIn(shapes()), [](const auto& each) {
  std::string name = "ranks" + std::to_string(each.param.ranks) + "_engines" +
                     std::to_string(each.param.engines) + "_" + nameOf(each.param.kind);
  name += each.param.oldProfile ? "_old" : "";
  name += each.param.quarantine ? "_quarantine" : "";
  name += each.param.pass ? "_pass" : "";
  name += each.param.draft ? "_draft" : "";
  name += each.param.replicas ? "_replicas" : "";
  name += each.param.checksums ? "_checksums" : "";
  name += each.param.owners > 0 ? "_owners" + std::to_string(each.param.owners) : "";
  return each.param.chunked ? name + "_chunked" : name;
});

}  // namespace
}  // namespace pushrod::sim
