// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/sweep.h"

#include <cstdlib>
#include <ostream>

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

std::ostream& operator<<(std::ostream& out, const Shape& shape) {
  return out << shape.ranks << " ranks, " << shape.engines << " engines, " << faultName(shape.kind);
}

/// Every how many-th run is made where runs are slow, as under a sanitizer: 1 makes all.
std::uint64_t partOf(const char* variable) {
  const char* text = std::getenv(variable);
  const std::uint64_t value = text == nullptr ? 1 : std::strtoull(text, nullptr, 10);
  return value == 0 ? 1 : value;
}

std::uint64_t share() {
  return partOf("PUSHROD_SIM_SHARE");
}

/// The same of pairs of classes, all of which are run by hand.
std::uint64_t classShare() {
  return partOf("PUSHROD_SIM_CLASS_SHARE");
}

/// Small worlds completely; in larger ones every so many calls, another part for each kind.
std::uint64_t strideOf(const Shape& shape) {
  const int size = shape.ranks * shape.engines;
  const bool wholeRank = !seamOf(shape.kind).has_value();
  if (size <= 2) {
    return 1;
  }
  return static_cast<std::uint64_t>(wholeRank ? 2 * size - 1 : (size + 2) / 3);
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
  const SweepResult result = runSweep(sweep);
  for (const std::string& failure : result.failures) {
    ADD_FAILURE() << failure;
  }
  RecordProperty("runs", static_cast<int>(result.runs));
}

// A second fault while the first one is dealt with: recovery itself fails, or the clean-up.
class EveryPair : public ::testing::TestWithParam<FaultKind> {};

TEST_P(EveryPair, KeepsThePromises) {
  Sweep sweep;
  sweep.ranks = 2;
  sweep.engines = 1;
  sweep.kinds = {GetParam()};
  sweep.seconds = everyKind();
  sweep.stride = 5 * share();
  sweep.secondStride = 7;

  struct Way {
    bool chunked, pass;
  };

  for (const Way way : {Way{false, false}, Way{true, false}, Way{false, true}}) {
    sweep.chunked = way.chunked;
    sweep.pass = way.pass;
    const SweepResult result = runSweep(sweep);
    for (const std::string& failure : result.failures) {
      ADD_FAILURE() << failure;
    }
  }
}

// The same, complete over classes of calls: both transports.
class EveryPairOfClasses : public ::testing::TestWithParam<FaultKind> {};

TEST_P(EveryPairOfClasses, KeepsThePromises) {
  Sweep sweep;
  sweep.ranks = 2;
  sweep.engines = 2;
  sweep.kinds = {GetParam()};
  sweep.seconds = everyKind();
  sweep.stride = share() * classShare();
  sweep.chunked = GetParam() == FaultKind::kPlaneFails;
  const SweepResult result = runPairsOfClasses(sweep);
  for (const std::string& failure : result.failures) {
    ADD_FAILURE() << failure;
  }
  RecordProperty("runs", static_cast<int>(result.runs));
}

std::string nameOf(FaultKind kind) {
  std::string name(faultName(kind));
  for (char& c : name) {
    c = c == '-' ? '_' : c;
  }
  return name;
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
  const SweepResult result = runSweep(sweep);
  for (const std::string& failure : result.failures) {
    ADD_FAILURE() << failure;
  }
}

INSTANTIATE_TEST_SUITE_P(Pairs,
                         EveryPairInQuarantine,
                         ::testing::ValuesIn(everyKind()),
                         [](const auto& each) { return nameOf(each.param); });

INSTANTIATE_TEST_SUITE_P(Pairs,
                         EveryPairOfClasses,
                         ::testing::ValuesIn(everyKind()),
                         [](const auto& each) { return nameOf(each.param); });

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
    for (int engines = 1; engines <= 3; ++engines) {
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
                     std::to_string(each.param.engines) + "_" +
                     std::string(faultName(each.param.kind));
  for (char& c : name) {
    c = c == '-' ? '_' : c;
  }
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
