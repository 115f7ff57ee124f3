// SPDX-License-Identifier: Apache-2.0
#include <boost/json.hpp>

#include "orchestrator/status/stall_report.h"

namespace pushrod::orchestrator {

namespace {

namespace json = boost::json;

double seconds(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

json::object rankJson(const RankStand& rank) {
  return json::object{{"rank", rank.rank},
                      {"phase", phaseName(rank.key.phase)},
                      {"attempt", rank.key.attempt},
                      {"step", rank.key.step % VoteKey::kDraftStep},
                      {"draft", rank.key.ofDraft()},
                      {"stage", stageName(rank.stage)},
                      {"tensor", rank.tensor},
                      {"gathers_begun", rank.begun},
                      {"gathers_returned", rank.returned},
                      {"age_s", seconds(rank.age)},
                      {"still_s", seconds(rank.still)},
                      {"silence_s", seconds(rank.silence)},
                      {"kib_per_s", rank.kibPerSecond}};
}

json::object engineJson(const EngineWork& engine) {
  return json::object{{"name", engine.name},
                      {"call", engine.call},
                      {"out", engine.out},
                      {"age_s", seconds(engine.age)},
                      {"limit_s", seconds(engine.limit)},
                      {"declared", engine.declared},
                      {"actual", engine.actual},
                      {"still_s", seconds(engine.still)}};
}

json::object waitJson(const StallWait& wait) {
  return json::object{{"for", wait.awaited},
                      {"text", wait.text},
                      {"age_s", seconds(wait.age)},
                      {"limit_s", seconds(wait.limit)},
                      {"state",
                       !wait.stalled() ? "waiting"
                       : wait.stuck()  ? "stuck"
                                       : "slow"}};
}

}  // namespace

std::string stallJson(const StallInput& input, const StallReport& report) {
  json::object out;
  out["stalled"] = report.stalled();
  json::array waits;
  for (const StallWait& wait : report.waits) {
    waits.emplace_back(waitJson(wait));
  }
  out["waits"] = std::move(waits);
  json::array ranks;
  ranks.emplace_back(rankJson(input.own));
  for (const RankStand& rank : input.others) {
    ranks.emplace_back(rankJson(rank));
  }
  out["ranks"] = std::move(ranks);
  json::array engines;
  for (const EngineWork& engine : input.engines) {
    engines.emplace_back(engineJson(engine));
  }
  out["engines"] = std::move(engines);
  return json::serialize(out);
}

}  // namespace pushrod::orchestrator
