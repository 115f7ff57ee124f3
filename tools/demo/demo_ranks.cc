// SPDX-License-Identifier: Apache-2.0
#include "tools/demo/demo_ranks.h"

#include <chrono>
#include <exception>
#include <fcntl.h>
#include <unistd.h>
#include <utility>

#include <boost/json.hpp>

#include "common/log.h"
#include "tools/push_parent.h"

namespace pushrod::tools {
namespace {

namespace json = boost::json;

constexpr Duration kStartLimit = std::chrono::seconds(15);
constexpr Duration kPushLimit = std::chrono::minutes(10);  // The push has its own, shorter ones.

std::string textAt(const json::object& object, const char* key) {
  const json::value* value = object.if_contains(key);
  return value != nullptr && value->is_string() ? std::string(value->get_string()) : "";
}

void readReport(const json::object& report, RankVerdict& verdict) {
  verdict.durationSeconds = report.at("duration_s").to_number<double>();
  verdict.pausedSeconds = report.at("paused_s").to_number<double>();
  for (const auto& phase : report.at("phases").as_object()) {
    verdict.phases[std::string(phase.key())] = phase.value().to_number<double>();
  }
  for (const json::value& engine : report.at("engines").as_array()) {
    const json::object& object = engine.as_object();
    verdict.engines.push_back({textAt(object, "name"),
                               textAt(object, "outcome"),
                               textAt(object, "error"),
                               textAt(object, "remedy")});
  }
  if (const json::object* cause = report.at("first_cause").if_object()) {
    verdict.causeEngine = textAt(*cause, "engine");
    verdict.cause = textAt(*cause, "message");
  }
}

}  // namespace

Result<RankVerdict> parseRankVerdict(const std::string& line) {
  try {
    const json::value value = json::parse(line);
    const json::object& object = value.as_object();
    RankVerdict verdict;
    verdict.exit = object.at("exit").to_number<int>();
    verdict.outcome = textAt(object, "outcome");
    verdict.summary = textAt(object, "summary");
    if (const json::object* report = object.at("report").if_object()) {
      readReport(*report, verdict);
    }
    return verdict;
  } catch (const std::exception& error) {
    return Status(Code::kInternal, std::string("not a rank's verdict: ") + error.what());
  }
}

Result<std::unique_ptr<DemoRanks>> DemoRanks::start(const PushOptions& options,
                                                    const std::string& folder,
                                                    int stop) {
  std::unique_ptr<DemoRanks> ranks(new DemoRanks(stop));
  for (int rank = 0; rank < options.ranks; ++rank) {
    const Status started = ranks->startOne(options, folder, rank);
    if (!started) {
      return started.prefixed("rank " + std::to_string(rank));
    }
  }
  for (std::size_t rank = 0; rank < ranks->members_.size(); ++rank) {
    const Result<std::string> ready = ranks->line(rank, kStartLimit);
    if (!ready) {
      return ready.status();
    }
    json::error_code error;
    const json::value value = json::parse(*ready, error);
    if (rank == 0 && !error && value.is_object()) {
      ranks->metrics_ = "http://" + textAt(value.get_object(), "metrics");
    }
  }
  return ranks;
}

Status DemoRanks::startOne(const PushOptions& options, const std::string& folder, int rank) {
  int in[2];
  int out[2];
  if (::pipe2(in, O_CLOEXEC) != 0) {
    return {Code::kUnavailable, "no pipe"};
  }
  const Descriptor childIn(in[0]);
  Member member;
  member.input = Descriptor(in[1]);
  if (::pipe2(out, O_CLOEXEC) != 0) {
    return {Code::kUnavailable, "no pipe"};
  }
  const Descriptor childOut(out[1]);
  member.output = Descriptor(out[0]);
  const std::string logFile = folder + "/rank-" + std::to_string(rank) + ".log";
  const Descriptor log(::open(logFile.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  Result<std::unique_ptr<ChildProcess>> process =
      ChildProcess::start({.command = rankCommand(options, folder, rank),
                           .input = childIn.get(),
                           .output = childOut.get(),
                           .errors = log.get()});
  if (!process) {
    return process.status();
  }
  member.process = std::move(*process);
  member.lines = std::make_unique<LineReader>(member.output.get());
  members_.push_back(std::move(member));
  return {};
}

Result<std::string> DemoRanks::line(std::size_t rank, Duration limit) {
  auto line = members_[rank].lines->next(Deadline::after(SteadyClock(), limit), stop_);
  if (!line) {
    return Status(Code::kUnavailable, "rank " + std::to_string(rank) + " ended or said nothing");
  }
  return *line;
}

Result<std::vector<RankVerdict>> DemoRanks::push(const std::string& version,
                                                 const std::string& checkpoint) {
  const std::string order = "{\"version\":" + common::jsonQuoted(version) +
                            ",\"checkpoint\":" + common::jsonQuoted(checkpoint) + "}\n";
  for (const Member& member : members_) {
    if (::write(member.input.get(), order.data(), order.size()) !=
        static_cast<ssize_t>(order.size())) {
      return Status(Code::kUnavailable, "a rank is gone");
    }
  }
  std::vector<RankVerdict> verdicts;
  for (std::size_t rank = 0; rank < members_.size(); ++rank) {
    const Result<std::string> text = line(rank, kPushLimit);
    if (!text) {
      return text.status();
    }
    Result<RankVerdict> verdict = parseRankVerdict(*text);
    if (!verdict) {
      return verdict.status();
    }
    verdicts.push_back(std::move(*verdict));
  }
  return verdicts;
}

}  // namespace pushrod::tools
