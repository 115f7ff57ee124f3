// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <queue>

#include <gtest/gtest.h>

#include "tests/unit/orchestrator/table_explorer.h"

namespace pushrod::orchestrator {
namespace {

/// The walk is the same for every test, so it is made once per kind of rank.
const TableExplorer& walk(bool leader) {
  const auto make = [](bool first) {
    TableExplorer explorer(first, true);
    explorer.run();
    return explorer;
  };
  static const TableExplorer kLeader = make(true);
  static const TableExplorer kFollower = make(false);
  return leader ? kLeader : kFollower;
}

class EveryRank : public ::testing::TestWithParam<bool> {
 protected:
  const TableExplorer& explorer_ = walk(GetParam());
};

TEST_P(EveryRank, NoLegalOrderOfEventsMeetsAHole) {
  for (const std::string& fault : explorer_.faults()) {
    ADD_FAILURE() << fault;
  }
}

TEST_P(EveryRank, TheEndIsReachableFromEverywhereWithoutTrouble) {
  const std::size_t count = explorer_.situations().size();
  std::vector<std::vector<std::size_t>> back(count);
  for (const auto& edge : explorer_.edges()) {
    if (edge.completion) {
      back[edge.to].push_back(edge.from);
    }
  }
  std::vector<bool> ends(count, false);
  std::queue<std::size_t> queue;
  for (std::size_t i = 0; i < count; ++i) {
    if (explorer_.situations()[i].finished) {
      ends[i] = true;
      queue.push(i);
    }
  }
  ASSERT_FALSE(queue.empty());
  while (!queue.empty()) {
    const std::size_t at = queue.front();
    queue.pop();
    for (const std::size_t from : back[at]) {
      if (!ends[from]) {
        ends[from] = true;
        queue.push(from);
      }
    }
  }
  for (std::size_t i = 0; i < count; ++i) {
    EXPECT_TRUE(ends[i]) << explorer_.describe(i);
  }
}

// Kahn's algorithm over the completions that are no progress: what is left lies on a cycle.
TEST_P(EveryRank, NoCycleWithoutProgress) {
  const std::size_t count = explorer_.situations().size();
  std::vector<std::vector<std::size_t>> out(count);
  std::vector<std::size_t> incoming(count, 0);
  for (const auto& edge : explorer_.edges()) {
    if (edge.completion && !edge.progress) {
      out[edge.from].push_back(edge.to);
      ++incoming[edge.to];
    }
  }
  std::queue<std::size_t> queue;
  for (std::size_t i = 0; i < count; ++i) {
    if (incoming[i] == 0) {
      queue.push(i);
    }
  }
  std::size_t removed = 0;
  while (!queue.empty()) {
    const std::size_t at = queue.front();
    queue.pop();
    ++removed;
    for (const std::size_t to : out[at]) {
      if (--incoming[to] == 0) {
        queue.push(to);
      }
    }
  }
  EXPECT_EQ(removed, count);
}

TEST_P(EveryRank, AtMostTwoAttempts) {
  for (const Situation& now : explorer_.situations()) {
    EXPECT_LE(now.state.attempt, 2U);
  }
}

// Nobody enters a gather once it is known that the pass cannot be completed by all.
TEST_P(EveryRank, NoGatherAfterAStop) {
  for (const auto& edge : explorer_.edges()) {
    const PushState& before = explorer_.situations()[edge.from].state;
    EXPECT_FALSE(edge.gather && before.stopPass && !before.pending.ok())
        << explorer_.describe(edge.from) << " > " << edge.text;
  }
}

// A rank that failed keeps that failure, or has cast it, until a verdict took it over.
TEST_P(EveryRank, AFailedPushNeverEndsAsDone) {
  for (const Situation& now : explorer_.situations()) {
    if (now.state.failed) {
      EXPECT_NE(now.state.phase, Phase::kDone);
      EXPECT_FALSE(now.state.first.ok()) << "a failed push without a cause";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Table, EveryRank, ::testing::Values(true, false), [](const auto& rank) {
  return std::string(rank.param ? "Leader" : "Follower");
});

TEST(Table, EveryRowIsTaken) {
  for (const Row& row : pushTable()) {
    EXPECT_TRUE(walk(true).rows().count(row.id) + walk(false).rows().count(row.id) > 0) << row.id;
  }
}

// Both kinds of rank ask for the same collectives: the votes and gathers that a good push makes.
TEST(Table, LeaderAndFollowerMeetInTheSameCollectives) {
  const auto collectives = [](bool leader) {
    std::vector<ActionKind> list;
    PushState state;
    state.leader = leader;
    std::vector<Event> todo = {Event{EventKind::kBegin, Status(), {}}};
    for (int i = 0; i < 500 && state.phase != Phase::kDone && !todo.empty(); ++i) {
      const Event event = todo.front();
      todo.erase(todo.begin());
      StepResult result = step(state, event);
      EXPECT_TRUE(result.fault.ok()) << result.fault.message();
      state = result.state;
      for (const Action& action : result.actions) {
        switch (action.kind) {
          case ActionKind::kVote:
            todo.push_back(Event{EventKind::kVerdict, Status(), {}});
            break;
          case ActionKind::kPrepare:
            state.steps = {2, 3};
            state.draftSteps = {1};
            [[fallthrough]];
          case ActionKind::kMeet:
          case ActionKind::kSourceManifest:
          case ActionKind::kSourceBegin:
          case ActionKind::kChannelOpen:
            todo.push_back(Event{EventKind::kLocalDone, Status(), {}});
            break;
          case ActionKind::kSourceNext:
            todo.push_back(
                Event{state.stage == Stage::kEnd ? EventKind::kSourceEnd : EventKind::kSourceItem,
                      Status(),
                      {}});
            break;
          case ActionKind::kPlanePut:
          case ActionKind::kPlaneFlush:
            todo.push_back(Event{EventKind::kPlaneDone, Status(), {}});
            break;
          case ActionKind::kStartGoal:
            todo.push_back(Event{EventKind::kGoalReached, Status(), {}});
            break;
          default:
            break;
        }
        const bool collective =
            action.kind == ActionKind::kVote || action.kind == ActionKind::kMeet ||
            action.kind == ActionKind::kSourceManifest || action.kind == ActionKind::kSourceBegin ||
            action.kind == ActionKind::kSourceNext || action.kind == ActionKind::kPrepare;
        if (collective) {
          list.push_back(action.kind);
        }
      }
    }
    EXPECT_EQ(state.phase, Phase::kDone);
    return list;
  };
  EXPECT_EQ(collectives(true), collectives(false));
}

}  // namespace
}  // namespace pushrod::orchestrator
