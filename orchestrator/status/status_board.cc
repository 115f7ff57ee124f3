// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/status/status_board.h"

#include <boost/json.hpp>

namespace pushrod::orchestrator {

namespace {

namespace json = boost::json;
constexpr std::size_t kMaxReports = 50;

json::object engineJson(const EngineStatus& engine) {
  return json::object{{"name", engine.name},
                      {"url", engine.url},
                      {"release", engine.release},
                      {"version", engine.version},
                      {"session", engine.session},
                      {"paused", engine.paused},
                      {"channel", engine.channel},
                      {"workers", engine.workers},
                      {"reply_lag", engine.replyLag},
                      {"last_call", engine.lastCall},
                      {"last_answer", engine.lastAnswer}};
}

}  // namespace

StatusBoard::StatusBoard(std::string job, int rank, int size)
    : job_(std::move(job)), rank_(rank), size_(size) {}

void StatusBoard::setPhase(Phase phase, std::uint32_t attempt, std::uint64_t epoch) {
  const std::lock_guard lock(mutex_);
  progress_.phase = phase;
  progress_.attempt = static_cast<int>(attempt);
  epoch_ = epoch;
}

void StatusBoard::setVersion(const std::string& version) {
  const std::lock_guard lock(mutex_);
  version_ = version;
}

void StatusBoard::setProgress(const PushProgress& progress) {
  const std::lock_guard lock(mutex_);
  progress_ = progress;
}

void StatusBoard::setEngines(std::vector<EngineStatus> engines) {
  const std::lock_guard lock(mutex_);
  engines_ = std::move(engines);
}

void StatusBoard::setEngine(std::size_t engine, const EngineStatus& status) {
  const std::lock_guard lock(mutex_);
  engines_.at(engine) = status;
}

void StatusBoard::setWaiting(std::string json) {
  const std::lock_guard lock(mutex_);
  waiting_ = std::move(json);
}

void StatusBoard::addReport(const PushReport& report) {
  const std::lock_guard lock(mutex_);
  reports_.push_back(report.toJson());
  if (reports_.size() > kMaxReports) {
    reports_.pop_front();
  }
}

PushProgress StatusBoard::progress() const {
  const std::lock_guard lock(mutex_);
  return progress_;
}

std::string StatusBoard::json() const {
  const std::lock_guard lock(mutex_);
  json::object out;
  out["job"] = job_;
  out["rank"] = rank_;
  out["ranks"] = size_;
  out["push"] = epoch_;
  out["version"] = version_;
  out["phase"] = phaseName(progress_.phase);
  out["attempt"] = progress_.attempt;
  out["tensors"] = progress_.tensors;
  out["total_tensors"] = progress_.totalTensors;
  out["bytes"] = progress_.bytes;
  out["total_bytes"] = progress_.totalBytes;
  json::array engines;
  for (const EngineStatus& engine : engines_) {
    engines.emplace_back(engineJson(engine));
  }
  out["engines"] = std::move(engines);
  out["waiting"] = waiting_.empty() ? json::value() : json::parse(waiting_);
  json::array reports;
  for (const std::string& report : reports_) {
    reports.emplace_back(json::parse(report));
  }
  out["pushes"] = std::move(reports);
  return json::serialize(out);
}

}  // namespace pushrod::orchestrator
