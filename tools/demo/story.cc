// SPDX-License-Identifier: Apache-2.0
#include "tools/demo/story.h"

#include <algorithm>
#include <cmath>

#include <pushrod/phase.h>

#include "tools/console.h"

namespace pushrod::tools {
namespace {

constexpr std::size_t kWidth = 96;

std::string padded(std::string text, std::size_t width) {
  text.resize(std::max(text.size(), width), ' ');
  return text;
}

const char* meaning(Phase phase) {
  switch (phase) {
    case Phase::kCheck:
      return "all ranks have the same configuration and manifest";
    case Phase::kConnect:
      return "engines reached and identified";
    case Phase::kPrepare:
      return "plan made, bodies encoded: all that needs no pause";
    case Phase::kPause:
      return "generation paused on every engine";
    case Phase::kClean:
      return "left-over sessions closed, half-loaded pieces cleared";
    case Phase::kChannel:
      return "every worker connected to the sender";
    case Phase::kStart:
      return "update sessions opened";
    case Phase::kStream:
      return "each tensor gathered by all ranks, packed and sent";
    case Phase::kAgree:
      return "vote: did every rank and engine get to the end?";
    case Phase::kFinish:
      return "sessions closed with the version";
    case Phase::kFlush:
      return "prefix caches reset";
    case Phase::kVerify:
      return "every engine asked which version it serves";
    case Phase::kConfirm:
      return "vote: is every engine proved?";
    case Phase::kResume:
      return "generation resumed";
    case Phase::kVerdict:
      return "vote: one outcome for all ranks";
    case Phase::kRecover:
      return "channel thrown away, second and last attempt begins";
    case Phase::kFailing:
      return "last clean-up; nobody is resumed on half-new weights";
    case Phase::kIdle:
    case Phase::kDone:
    case Phase::kFailed:
      break;
  }
  return "";
}

std::string numberText(double value) {
  const bool whole = value == std::floor(value) && std::abs(value) < 1e15;
  return fixedText(value, whole ? 0 : 2);
}

}  // namespace

std::string phaseLines(const RankVerdict& verdict) {
  std::string text;
  for (std::size_t i = 0; i < kPhaseCount; ++i) {
    const auto phase = static_cast<Phase>(i);
    const std::string name(phaseName(phase));
    const auto at = verdict.phases.find(name);
    if (at == verdict.phases.end() || meaning(phase)[0] == '\0') {
      continue;
    }
    std::string time = fixedText(at->second * 1000, 0) + " ms";
    time.insert(0, time.size() < 8 ? 8 - time.size() : 0, ' ');
    text += "     " + padded(name, 9) + time + "   " + meaning(phase) + "\n";
  }
  return text;
}

std::string rankLines(const std::vector<RankVerdict>& verdicts) {
  std::string text;
  for (std::size_t rank = 0; rank < verdicts.size(); ++rank) {
    text += (rank == 0 ? "" : ", ") + std::to_string(rank) + " " + verdicts[rank].outcome;
  }
  return "   ranks      " + text + "\n";
}

std::string engineLine(const std::string& name,
                       const Result<EngineState>& state,
                       const std::string& checkpointDigest) {
  const std::string head = "   " + padded(name, 11);
  if (!state) {
    return head + "does not answer any more\n";
  }
  const Result<std::string> digest = shortDigest(state->weights);
  const std::string content = digest ? *digest : "unknown";
  return head + padded("version " + state->version, 16) +
         padded(state->paused ? "paused" : "generating", 12) + "content " + content +
         (content == checkpointDigest ? " = checkpoint" : " differs from the checkpoint") +
         (state->torn ? ", torn" : "") + "\n";
}

std::string metricLines(const MetricPage& before, const MetricPage& after) {
  static const std::vector<std::string> kFamilies = {"pushrod_pushes_total",
                                                     "pushrod_resends_total",
                                                     "pushrod_channel_rebuilds_total",
                                                     "pushrod_failures_total",
                                                     "pushrod_bytes_sent_total",
                                                     "pushrod_generation_paused_seconds_total",
                                                     "pushrod_engine_up",
                                                     "pushrod_engine_paused",
                                                     "pushrod_engine_current"};
  std::string text;
  for (const MetricMove& move : movedMetrics(before, after, kFamilies)) {
    text += "     " + move.series + "  " + numberText(move.before) + " -> " +
            numberText(move.after) + "\n";
  }
  return text.empty() ? text : "   metrics that moved\n" + text;
}

std::string remedyLines(const RankVerdict& verdict) {
  std::string text;
  for (const ReportedEngine& engine : verdict.engines) {
    if (!engine.remedy.empty()) {
      text += wrapped(engine.name + " is " + engine.outcome + ": " + engine.remedy, 5);
    }
  }
  return text.empty() ? text : "   what to do, as the report says\n" + text;
}

std::string wrapped(const std::string& text, std::size_t indent) {
  std::string out;
  std::string line(indent, ' ');
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    if (line.size() > indent && line.size() + 1 + word.size() > kWidth) {
      out += line + "\n";
      line.assign(indent, ' ');
    }
    line += (line.size() > indent ? " " : "") + word;
    begin = end + 1;
  }
  return out + line + "\n";
}

}  // namespace pushrod::tools
