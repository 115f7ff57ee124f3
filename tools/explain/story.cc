// SPDX-License-Identifier: Apache-2.0
#include "tools/explain/story.h"

#include <algorithm>
#include <cstdio>
#include <limits>
#include <map>

#include "tools/explain/culprit.h"
#include "tools/explain/replay.h"

namespace pushrod::tools {

namespace {

using orchestrator::EventKind;
using orchestrator::FlightEvent;
using orchestrator::FlightKind;

constexpr std::size_t kMaxTimeline = 200;

struct Moment {
  std::int64_t micros = 0;
  std::string text;
};

std::string seconds(std::int64_t micros) {
  char text[40];
  constexpr double kMillion = 1e6;
  std::snprintf(text, sizeof text, "%10.3f s", static_cast<double>(micros) / kMillion);
  return text;
}

std::string failureText(const Status& status) {
  return status.message() + " [" + std::string(codeName(status.code())) + "]";
}

/// A text from elsewhere on one line of the terminal.
std::string shown(std::string_view text) {
  constexpr std::size_t kLongest = 300;
  std::string out = orchestrator::flightText(text, kLongest);
  return text.size() > kLongest ? out + "..." : out;
}

std::string stepText(const RecordedEvent& entry, Phase before) {
  const FlightEvent& event = entry.event;
  std::string text;
  if (event.phase != before) {
    const bool draft = VoteKey{0, 0, event.phase, event.voteStep}.ofDraft();
    text = "enters " + std::string(phaseName(event.phase)) + (draft ? " of the draft model" : "");
    text += event.attempt > 1 ? " (attempt " + std::to_string(event.attempt) + ")" : "";
  }
  const Status& failure = event.event == EventKind::kVerdict ? event.verdict.first : event.status;
  if (!failure.ok()) {
    constexpr std::string_view kDecisions[] = {"go on", "resend", "fail"};
    text += (text.empty() ? "" : "; ") + std::string(eventName(event.event));
    if (event.event == EventKind::kVerdict) {
      text += ": " + std::string(kDecisions[static_cast<std::size_t>(event.verdict.decision)]);
    }
    text += entry.tensor.empty() ? "" : ", tensor " + entry.tensor;
    text += ": " + failureText(failure);
  }
  return text;
}

/// What an event says in the timeline; empty: nothing worth a line.
std::string eventText(const RecordedEvent& entry, Phase before) {
  const FlightEvent& event = entry.event;
  switch (event.kind) {
    case FlightKind::kStep:
      return stepText(entry, before);
    case FlightKind::kHook:
      return "its observer of phases failed: " + failureText(event.status);
    case FlightKind::kOperation:
      return event.what + " ended" + (entry.tensor.empty() ? "" : ", tensor " + entry.tensor) +
             ": " + failureText(event.status);
    case FlightKind::kRequest:
      return "-> " + event.who + " " + event.what;
    case FlightKind::kReply:
      return "<- " + event.who + " " + event.what + ": " +
             (event.status.ok() ? (event.text.empty() ? "ok" : "ok, " + event.text)
                                : failureText(event.status));
    case FlightKind::kDropped:
      return "goes on without engine " + event.who + ": " + failureText(event.status);
    case FlightKind::kLink: {
      const std::string about = event.peer >= 0 ? " (rank " + std::to_string(event.peer) + ")" : "";
      return (event.sent ? "tells the ranks: " : "hears: ") + event.what + about +
             (event.status.ok() ? "" : ": " + failureText(event.status));
    }
    case FlightKind::kPlan:
      break;
  }
  return {};
}

std::vector<Moment> moments(const FlightFile& file) {
  std::vector<Moment> all;
  for (const auto& [rank, record] : file.ranks) {
    Phase before = record.base.phase;
    for (const RecordedEvent& entry : record.events) {
      const std::string text = eventText(entry, before);
      if (entry.event.kind == FlightKind::kStep) {
        before = entry.event.phase;
      }
      if (!text.empty()) {
        all.push_back({entry.event.micros, "rank " + std::to_string(rank) + "  " + shown(text)});
      }
    }
  }
  // Clocks of several hosts may differ; within a rank the order is the true one.
  std::stable_sort(
      all.begin(), all.end(), [](const Moment& a, const Moment& b) { return a.micros < b.micros; });
  return all;
}

std::string timeline(const FlightFile& file) {
  const std::vector<Moment> all = moments(file);
  std::string text = "\nTimeline (seconds since the first event; clocks of hosts may differ)\n";
  const std::size_t first = all.size() > kMaxTimeline ? all.size() - kMaxTimeline : 0;
  if (first > 0) {
    text += "  " + std::to_string(first) + " earlier lines are left out\n";
  }
  for (std::size_t i = first; i < all.size(); ++i) {
    text += seconds(all[i].micros - all.front().micros) + "  " + all[i].text + "\n";
  }
  return text;
}

std::string rankEnd(int rank, const RecordedRank& record) {
  std::string text = "  rank " + std::to_string(rank) + ": ";
  if (record.events.empty()) {
    return text + "no events\n";
  }
  // The place from which it came to its end, where its push has ended.
  const RecordedEvent* last = &record.events.back();
  for (const RecordedEvent& entry : record.events) {
    const Phase phase = entry.event.phase;
    if (phase != Phase::kFailed && phase != Phase::kDone && phase != Phase::kFailing &&
        phase != Phase::kVerdict) {
      last = &entry;
    }
  }
  const FlightEvent& event = last->event;
  text += "last at work in " + std::string(phaseName(event.phase)) + " / " +
          std::string(stageName(event.stage)) + ", " +
          VoteKey{0, 0, event.phase, event.voteStep}.stepText() + "; " +
          std::to_string(event.begun) + " gathers begun, " + std::to_string(event.returned) +
          " returned";
  if (record.dropped > 0) {
    text += "; " + std::to_string(record.dropped) + " earlier events are not in the record";
  }
  return text + "\n";
}

std::string engineEnds(const FlightFile& file) {
  std::map<std::string, const FlightEvent*> last;
  std::map<std::string, std::uint64_t> actual;
  for (const auto& [rank, record] : file.ranks) {
    (void)rank;
    for (const RecordedEvent& entry : record.events) {
      const FlightEvent& event = entry.event;
      if (event.kind == FlightKind::kRequest || event.kind == FlightKind::kReply) {
        last[event.who] = &event;
        actual[event.who] = std::max(actual[event.who], event.actual);
      }
    }
  }
  std::string text;
  for (const auto& [name, event] : last) {
    text += "  engine " + shown(name) + ": " + shown(event->what) +
            (event->kind == FlightKind::kRequest ? " was not answered"
             : event->status.ok()                ? " answered"
                                                 : " failed: " + shown(event->status.message())) +
            "; " + std::to_string(actual[name]) + " bytes written to it\n";
  }
  return text;
}

std::string standings(const FlightFile& file) {
  std::string text = "\nWhere each stood\n";
  for (const auto& [rank, record] : file.ranks) {
    text += rankEnd(rank, record);
  }
  for (const auto& [rank, why] : file.header.missing) {
    text += "  rank " + std::to_string(rank) + ": no events, " + shown(why) + "\n";
  }
  return text + engineEnds(file);
}

std::string replayText(const FlightFile& file) {
  std::uint64_t steps = 0;
  std::string faults;
  for (const auto& [rank, replay] : replayAll(file)) {
    steps += replay.steps;
    if (!replay.fault.empty()) {
      faults += "  rank " + std::to_string(rank) + ", " + shown(replay.fault) + "\n";
    }
  }
  const std::string all =
      std::to_string(steps) + " steps of " + std::to_string(file.ranks.size()) + " ranks";
  if (faults.empty()) {
    return "\nReplay: " + all + " through the push table: the recorded states follow.\n";
  }
  return "\nReplay: the recorded states do NOT follow from the push table of this build (" + all +
         " do); was the record made by another version?\n" + faults;
}

}  // namespace

std::string explainFlight(const FlightFile& file) {
  const orchestrator::FlightHeader& header = file.header;
  const Culprit culprit = findCulprit(file);
  std::string text =
      "Push " + std::to_string(header.push) + " of job " + shown(header.job) + ", version " +
      shown(header.version) + ": " + shown(header.outcome) + ", " + std::to_string(header.ranks) +
      " ranks, " + std::to_string(header.engines.size()) + " engines, " + shown(header.startedAt) +
      ", written by rank " + std::to_string(header.writer) + "\n";
  text += "Culprit: " + shown(culprit.who) + ": " + shown(culprit.why) + "\n";
  if (!header.firstCause.ok()) {
    text += "First cause: " + shown(header.firstCause.toString()) + "\n";
  }
  for (const std::string& line : culprit.evidence) {
    text += "  " + shown(line) + "\n";
  }
  return text + timeline(file) + standings(file) + replayText(file);
}

}  // namespace pushrod::tools
