// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/status/stall_report.h"

#include <algorithm>
#include <tuple>

#include "common/time_text.h"

namespace pushrod::orchestrator {

namespace {

std::string rankText(int rank) {
  return "rank " + std::to_string(rank);
}

std::string listed(const std::vector<std::string>& names) {
  constexpr std::size_t kMost = 8;
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), kMost); ++i) {
    text += (i == 0 ? "" : ", ") + names[i];
  }
  return names.size() <= kMost ? text
                               : text + " and " + std::to_string(names.size() - kMost) + " more";
}

/// A place in a push, to be compared by how far it is. Recovery stands behind what it recovers; the
/// draft model's session is between the target's and what comes after both.
auto farness(const VoteKey& key) {
  return std::tuple(
      key.epoch, key.attempt, key.phase > Phase::kFinish, key.ofDraft(), key.phase, key.step);
}

bool isSource(const std::string& operation) {
  return operation.starts_with("Source");
}

bool isVote(const std::string& operation) {
  return operation == "Vote" || operation == "Share" || operation == "Prepare";
}

bool isPlane(const std::string& operation) {
  return operation == "PlanePut" || operation == "PlaneFlush";
}

std::string sinceText(const StallWait& wait) {
  std::string text = " for " + common::durationText(wait.age);
  if (wait.limit > Duration::zero()) {
    text += " of " + common::durationText(wait.limit);
  }
  if (wait.stalled()) {
    text += wait.stuck() ? ": stuck, nothing moved for " + common::durationText(wait.still)
                         : ": slow, it still moves";
  }
  return text;
}

/// The ranks that keep this one waiting: those that have not come as far.
std::vector<const RankStand*> behind(const StallInput& input, bool gathers) {
  std::vector<const RankStand*> ranks;
  for (const RankStand& other : input.others) {
    const bool samePass =
        other.key.phase == Phase::kStream && other.key.ofDraft() == input.own.key.ofDraft();
    const bool less = gathers && samePass ? other.begun < input.own.begun
                                          : farness(other.key) < farness(input.own.key);
    if (less || other.key.epoch != input.own.key.epoch) {
      ranks.push_back(&other);
    }
  }
  return ranks;
}

void awaitRanks(StallWait& wait, const std::vector<const RankStand*>& ranks) {
  std::vector<std::string> names;
  wait.still = wait.age;
  for (const RankStand* rank : ranks) {
    names.push_back(rankText(rank->rank));
    wait.still = std::min(wait.still, std::max(rank->still, rank->silence));
  }
  wait.awaited = listed(names);
}

StallWait ofSource(const StallInput& input, const OwnWait& operation) {
  StallWait wait{operation.name, {}, {}, operation.age, operation.limit, operation.age};
  const auto late = behind(input, true);
  wait.awaited = rankText(input.own.rank) + "'s weight source";
  std::string more;
  if (operation.name == "SourceNext") {
    more = ", tensor " + input.own.tensor;
    if (!late.empty()) {
      awaitRanks(wait, late);
      more += ", which is not begun there";
    }
  }
  wait.text = rankText(input.own.rank) + " waits for " + wait.awaited + " (" + operation.name +
              more + ")" + sinceText(wait);
  return wait;
}

StallWait ofVote(const StallInput& input, const OwnWait& operation) {
  const bool leader = input.own.rank == 0;
  // The others may still be at this phase's work, which rank 0 has behind it.
  const Duration limit = leader ? std::min(input.agreement, operation.limit) : operation.limit;
  StallWait wait{"Vote " + input.own.key.toString(), {}, {}, operation.age, limit, operation.age};
  const auto late = behind(input, false);
  if (!late.empty()) {
    awaitRanks(wait, late);
  } else {
    wait.awaited = leader ? "the other ranks' votes" : "rank 0";
    for (const RankStand& other : input.others) {
      wait.still = other.rank == 0 && !leader ? std::max(other.still, other.silence) : wait.still;
    }
  }
  wait.text = rankText(input.own.rank) + " waits for " + wait.awaited + " (" + operation.name +
              ")" + sinceText(wait);
  return wait;
}

StallWait ofPlane(const StallInput& input, const OwnWait& operation) {
  StallWait wait{operation.name, {}, {}, operation.age, input.progress, operation.age};
  std::vector<std::string> names;
  for (const EngineWork& engine : input.engines) {
    if (engine.actual < engine.declared && engine.still >= operation.age) {
      names.push_back("engine " + engine.name);
    }
  }
  for (const EngineWork& engine : input.engines) {
    // Bytes of a buffer may move long before the operation that waits for room ends.
    wait.still = std::min(wait.still, engine.still);
  }
  wait.age = wait.still;
  wait.awaited = names.empty() ? "room in the channel" : listed(names);
  wait.text = rankText(input.own.rank) + " waits for " + wait.awaited + " to take bytes (" +
              operation.name + ")" + sinceText(wait);
  return wait;
}

StallWait ofOperation(const StallInput& input, const OwnWait& operation) {
  if (isSource(operation.name)) {
    return ofSource(input, operation);
  }
  if (isVote(operation.name)) {
    return ofVote(input, operation);
  }
  if (isPlane(operation.name)) {
    return ofPlane(input, operation);
  }
  StallWait wait{operation.name, {}, {}, operation.age, operation.limit, operation.age};
  wait.awaited = operation.name == "Meet"          ? "the other ranks"
                 : operation.name == "ChannelOpen" ? "the engines to join the channel"
                                                   : rankText(input.own.rank) + "'s own observer";
  wait.text = rankText(input.own.rank) + " waits for " + wait.awaited + " (" + operation.name +
              ")" + sinceText(wait);
  return wait;
}

StallWait ofEngine(const StallInput& input, const EngineWork& engine) {
  const bool moves = engine.call == "update_weights" && engine.declared > 0;
  StallWait wait{"engine " + engine.name + " " + engine.call,
                 {},
                 "engine " + engine.name,
                 engine.age,
                 engine.limit,
                 moves ? std::min(engine.age, engine.still) : engine.age};
  wait.text = rankText(input.own.rank) + " waits for " + wait.awaited + " (" + engine.call +
              (moves ? ", " + std::to_string(engine.actual) + " of " +
                           std::to_string(engine.declared) + " bytes written"
                     : std::string()) +
              ")" + sinceText(wait);
  return wait;
}

std::string rankLine(const RankStand& rank) {
  std::string text = rankText(rank.rank) + ": " + std::string(phaseName(rank.key.phase)) +
                     ", attempt " + std::to_string(rank.key.attempt) + ", " + rank.key.stepText() +
                     ", " + std::string(stageName(rank.stage)) + "; gathers " +
                     std::to_string(rank.begun) + " begun, " + std::to_string(rank.returned) +
                     " returned";
  if (!rank.tensor.empty()) {
    text += "; tensor " + rank.tensor;
  }
  text += "; last progress " + common::durationText(rank.still) + " ago";
  if (rank.kibPerSecond > 0) {
    text += ", " + std::to_string(rank.kibPerSecond) + " KiB/s";
  }
  if (rank.silence > Duration::zero()) {
    text += ", heard " + common::durationText(rank.silence) + " ago";
  }
  return text;
}

std::string engineLine(const EngineWork& engine) {
  std::string text = "engine " + engine.name + ": ";
  if (engine.call.empty()) {
    return text + "not asked yet";
  }
  text += engine.call + (engine.out ? " out for " : " answered, sent ") +
          common::durationText(engine.age) +
          (engine.out ? " of " + common::durationText(engine.limit) : " ago");
  if (engine.declared > 0) {
    text += "; " + std::to_string(engine.actual) + " of " + std::to_string(engine.declared) +
            " bytes written, the last " + common::durationText(engine.still) + " ago";
  }
  return text;
}

}  // namespace

bool StallReport::stalled() const {
  return std::any_of(waits.begin(), waits.end(), [](const auto& wait) { return wait.stalled(); });
}

StallReport makeStallReport(const StallInput& input) {
  StallReport report;
  if (input.operation) {
    report.waits.push_back(ofOperation(input, *input.operation));
  }
  for (const EngineWork& engine : input.engines) {
    if (engine.out) {
      report.waits.push_back(ofEngine(input, engine));
    }
  }
  if (input.drain) {
    StallWait wait{"drain",
                   {},
                   "the other side of the stream",
                   input.drain->age,
                   input.drain->limit,
                   input.drain->age};
    wait.text =
        rankText(input.own.rank) + " waits for " + wait.awaited + " (drain)" + sinceText(wait);
    report.waits.push_back(std::move(wait));
  }
  StallWait whole{"push", {}, "the push", input.pushAge, input.pushLimit, input.own.still};
  whole.text = "push " + input.push + " runs" + sinceText(whole);
  report.waits.push_back(std::move(whole));
  return report;
}

std::vector<std::string> stallLines(const StallInput& input, std::size_t most) {
  std::vector<std::string> lines = {rankLine(input.own)};
  std::vector<const RankStand*> others;
  for (const RankStand& rank : input.others) {
    others.push_back(&rank);
  }
  // Whoever is furthest behind is told of first.
  std::stable_sort(others.begin(), others.end(), [](const RankStand* a, const RankStand* b) {
    return farness(a->key) < farness(b->key);
  });
  for (std::size_t i = 0; i < std::min(most, others.size()); ++i) {
    lines.push_back(rankLine(*others[i]));
  }
  if (others.size() > most) {
    lines.push_back(std::to_string(others.size() - most) + " more ranks are as far or further");
  }
  std::size_t told = 0;
  for (const bool out : {true, false}) {
    for (const EngineWork& engine : input.engines) {
      if (engine.out == out && told++ < most) {
        lines.push_back(engineLine(engine));
      }
    }
  }
  return lines;
}

}  // namespace pushrod::orchestrator
