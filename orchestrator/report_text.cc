// SPDX-License-Identifier: Apache-2.0
// The report as JSON and as a paragraph for people.
#include <algorithm>

#include <boost/json.hpp>

#include <pushrod/report.h>

#include "common/time_text.h"

namespace pushrod {

namespace {

namespace json = boost::json;

template <typename T>
json::value orNull(const std::optional<T>& value) {
  return value ? json::value(*value) : json::value(nullptr);
}

json::value causeJson(const Status& cause) {
  if (cause.ok()) {
    return nullptr;
  }
  const Origin& origin = cause.origin();
  return json::object{
      {"code", codeName(cause.code())},
      {"phase", phaseName(origin.phase)},
      {"rank", origin.rank < 0 ? json::value(nullptr) : json::value(origin.rank)},
      {"engine", origin.engine.empty() ? json::value(nullptr) : json::value(origin.engine)},
      {"attempt", origin.attempt},
      {"message", cause.message()}};
}

json::object engineJson(const EngineReport& engine) {
  return json::object{{"name", engine.name},
                      {"url", engine.url},
                      {"outcome", engine.outcome},
                      {"version", orNull(engine.version)},
                      {"paused", orNull(engine.paused)},
                      {"session", engine.session},
                      {"content", orNull(engine.content)},
                      {"reply_lag", engine.replyLag},
                      {"bytes", engine.bytes},
                      {"error", engine.error},
                      {"remedy", engine.remedy}};
}

std::string engineLine(const EngineReport& engine) {
  std::string line = engine.name + " is " + engine.outcome;
  if (engine.version) {
    line += ", version '" + *engine.version + "'";
  }
  if (engine.paused) {
    line += *engine.paused ? ", paused" : ", generating";
  }
  if (engine.session != "closed") {
    line += ", session " + engine.session;
  }
  if (!engine.remedy.empty()) {
    line += " (" + engine.remedy + ")";
  }
  return line;
}

}  // namespace

std::string PushReport::toJson() const {
  json::object out;
  out["version"] = version;
  out["outcome"] = pushOutcomeName(outcome);
  out["attempts"] = attempts;
  out["resent"] = resent;
  out["started_at"] = startedAt;
  out["duration_s"] = durationSeconds;
  out["paused_s"] = pausedSeconds;
  out["bytes"] = bytes;
  out["tensors"] = tensors;
  out["ranks"] = ranks;
  json::array dropped;
  for (const std::string& name : droppedEngines) {
    dropped.emplace_back(name);
  }
  out["dropped_engines"] = std::move(dropped);
  out["first_cause"] = causeJson(firstCause);
  json::array noteArray;
  for (const std::string& note : notes) {
    noteArray.emplace_back(note);
  }
  out["notes"] = std::move(noteArray);
  json::object phaseObject;
  for (const auto& [name, seconds] : phases) {
    phaseObject[name] = seconds;
  }
  out["phases"] = std::move(phaseObject);
  json::array engineArray;
  for (const EngineReport& engine : engines) {
    engineArray.emplace_back(engineJson(engine));
  }
  out["engines"] = std::move(engineArray);
  out["casts"] = casts;
  return json::serialize(out);
}

std::string PushReport::summary() const {
  std::string text = "push of version '" + version + "': " + std::string(pushOutcomeName(outcome));
  if (outcome == PushOutcome::kDone || outcome == PushOutcome::kRecovered) {
    text += " in " + common::durationText(std::chrono::duration_cast<std::chrono::nanoseconds>(
                         std::chrono::duration<double>(durationSeconds)));
    if (resent) {
      text += ", resent once after: " + firstCause.toString();
    }
    std::size_t dropped = 0;
    for (const EngineReport& engine : engines) {
      const bool out = std::find(droppedEngines.begin(), droppedEngines.end(), engine.name) !=
                       droppedEngines.end();
      if (out) {
        text += (dropped == 0 ? "; left out: " : "; ") + engineLine(engine);
        ++dropped;
      }
    }
    return text;
  }
  text += ". Cause: " + firstCause.toString() + ".";
  if (outcome == PushOutcome::kRefused) {
    text += " No engine was contacted.";
  } else if (!engines.empty()) {
    text += " Engines: ";
    for (std::size_t i = 0; i < engines.size(); ++i) {
      text += (i == 0 ? "" : "; ") + engineLine(engines[i]);
    }
    text += ".";
  }
  return text;
}

}  // namespace pushrod
