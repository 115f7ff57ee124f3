// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <queue>
#include <tuple>

#include <gtest/gtest.h>

#include "tests/unit/orchestrator/table_explorer.h"

namespace pushrod::orchestrator {
namespace {

/// The walk is the same for every test, so it is made once per kind of rank.
const TableExplorer& walk(bool leader, bool stopAtEnd) {
  const auto make = [](bool first, bool pass) {
    // With the draft model, whose session is another round of the same rows.
    TableExplorer explorer(first, pass, true);
    explorer.run();
    return explorer;
  };
  static const TableExplorer kLeader = make(true, false);
  static const TableExplorer kFollower = make(false, false);
  static const TableExplorer kLeaderAtEnd = make(true, true);
  static const TableExplorer kFollowerAtEnd = make(false, true);
  if (stopAtEnd) {
    return leader ? kLeaderAtEnd : kFollowerAtEnd;
  }
  return leader ? kLeader : kFollower;
}

/// Rank 0 or another, push.stop: pass or chunk.
class EveryRank : public ::testing::TestWithParam<std::tuple<bool, bool>> {
 protected:
  const TableExplorer& explorer_ = walk(std::get<0>(GetParam()), std::get<1>(GetParam()));
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

// With push.stop: pass a failed pass sends nothing more, and its failure stays until the last vote.
TEST_P(EveryRank, AFailedPassThatGoesOnSendsNothing) {
  for (const auto& edge : explorer_.edges()) {
    const Situation& now = explorer_.situations()[edge.to];
    if (now.state.passingOn && now.state.phase == Phase::kStream) {
      EXPECT_NE(now.state.stage, Stage::kPut) << explorer_.describe(edge.to);
      EXPECT_NE(now.state.stage, Stage::kFlush) << explorer_.describe(edge.to);
      EXPECT_FALSE(now.state.local.ok()) << explorer_.describe(edge.to);
    }
    EXPECT_FALSE(now.state.passingOn && now.state.phase == Phase::kFinish)
        << explorer_.describe(edge.to);
  }
}

INSTANTIATE_TEST_SUITE_P(Table,
                         EveryRank,
                         ::testing::Combine(::testing::Bool(), ::testing::Bool()),
                         [](const auto& rank) {
                           return std::string(std::get<0>(rank.param) ? "Leader" : "Follower") +
                                  (std::get<1>(rank.param) ? "AtEnd" : "");
                         });

TEST(Table, EveryRowIsTaken) {
  for (const Row& row : pushTable()) {
    const bool taken =
        walk(true, false).rows().contains(row.id) || walk(false, false).rows().contains(row.id) ||
        walk(true, true).rows().contains(row.id) || walk(false, true).rows().contains(row.id);
    EXPECT_TRUE(taken) << row.id;
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
