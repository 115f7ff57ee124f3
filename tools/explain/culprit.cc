// SPDX-License-Identifier: Apache-2.0
#include "tools/explain/culprit.h"

#include <algorithm>
#include <cctype>
#include <limits>
#include <map>
#include <optional>

#include "common/time_text.h"

namespace pushrod::tools {

namespace {

using orchestrator::FlightEvent;
using orchestrator::FlightKind;

std::string rankText(int rank) {
  return "rank " + std::to_string(rank);
}

std::string sourceOf(int rank) {
  return "the weight source of " + rankText(rank);
}

std::string ago(std::int64_t micros) {
  return common::durationText(std::chrono::microseconds(micros));
}

/// `text` without its numbers, so that the same failure of two ranks compares equal.
std::string shapeOf(const std::string& text) {
  std::string out;
  std::copy_if(text.begin(), text.end(), std::back_inserter(out), [](char c) {
    return std::isdigit(static_cast<unsigned char>(c)) == 0;
  });
  return out;
}

/// Whether a source's text speaks of the ranks' collective: then it waited in it for others.
bool speaksOfCollective(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](char c) {
    return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  });
  return text.find("gather") != std::string::npos || text.find("collective") != std::string::npos ||
         text.find("nccl") != std::string::npos || text.find("gloo") != std::string::npos;
}

bool isSourceOperation(const std::string& name) {
  return name.starts_with("Source");
}

/// The record's first cause, or, where it has none, the first failure that any rank met.
Status firstCause(const FlightFile& file) {
  if (!file.header.firstCause.ok()) {
    return file.header.firstCause;
  }
  const FlightEvent* first = nullptr;
  for (const auto& [rank, record] : file.ranks) {
    (void)rank;
    for (const RecordedEvent& entry : record.events) {
      if (!entry.event.status.ok() && (first == nullptr || entry.event.micros < first->micros)) {
        first = &entry.event;
      }
    }
  }
  return first == nullptr ? Status() : first->status;
}

/// How each rank's last call of its source ended in the attempt that failed first.
struct SourceEnds {
  std::map<int, std::string> texts;  ///< of those that ended with a failure
  std::vector<int> inside;           ///< those that had not come back
  std::string tensor;
};

SourceEnds sourceEnds(const FlightFile& file, int attempt) {
  SourceEnds ends;
  for (const auto& [rank, record] : file.ranks) {
    for (const RecordedEvent& entry : record.events) {
      const FlightEvent& event = entry.event;
      const bool here = attempt == 0 || event.attempt == static_cast<std::uint32_t>(attempt);
      if (event.kind == FlightKind::kOperation && isSourceOperation(event.what) && here) {
        ends.texts.try_emplace(rank, event.status.message());
        ends.tensor = entry.tensor.empty() ? ends.tensor : entry.tensor;
      }
    }
    const bool stays = !record.events.empty() && !ends.texts.contains(rank) &&
                       record.events.back().event.begun > record.events.back().event.returned &&
                       record.events.back().event.phase == Phase::kStream;
    if (stays) {
      ends.inside.push_back(rank);
    }
  }
  return ends;
}

/// The one rank whose source failed in words of its own while the others waited for it.
std::optional<int> oddOne(const SourceEnds& ends) {
  if (ends.inside.size() == 1) {
    return ends.inside.front();
  }
  std::vector<int> alone;
  std::map<std::string, std::vector<int>> groups;
  for (const auto& [rank, text] : ends.texts) {
    groups[shapeOf(text)].push_back(rank);
    if (!speaksOfCollective(text)) {
      alone.push_back(rank);
    }
  }
  if (alone.size() == 1 && ends.texts.size() > 1) {
    return alone.front();
  }
  for (const auto& [text, ranks] : groups) {
    if (ranks.size() == 1 && groups.size() == 2 && ends.texts.size() > 2) {
      return ranks.front();
    }
  }
  return std::nullopt;
}

Culprit ofHungGather(const FlightFile& file, const Status& cause) {
  const SourceEnds ends = sourceEnds(file, cause.origin().attempt);
  Culprit culprit;
  for (const auto& [rank, text] : ends.texts) {
    culprit.evidence.push_back(rankText(rank) + "'s source ended with: " + text);
  }
  for (const int rank : ends.inside) {
    culprit.evidence.push_back(rankText(rank) + "'s source had not come back");
  }
  const std::string at = ends.tensor.empty() ? "" : " at tensor " + ends.tensor;
  if (const auto odd = oddOne(ends)) {
    culprit.who = sourceOf(*odd);
    culprit.why = "it hung" + at + " while the other ranks waited for it in their gather";
    return culprit;
  }
  culprit.who = file.header.ranks == 1 ? sourceOf(0) : "a weight source";
  culprit.why =
      "a gather hung" + at +
      (file.header.ranks == 1
           ? ""
           : " on all ranks and nothing tells which one the others waited for; the limit passed "
             "first on " +
                 rankText(cause.origin().rank));
  return culprit;
}

/// The last call to an engine, and how far it came.
void addEngineEvidence(const FlightFile& file, const std::string& engine, Culprit& culprit) {
  const auto zero = file.ranks.find(0);
  if (zero == file.ranks.end()) {
    return;
  }
  const FlightEvent* request = nullptr;
  for (const RecordedEvent& entry : zero->second.events) {
    const FlightEvent& event = entry.event;
    if (event.who != engine) {
      continue;
    }
    if (event.kind == FlightKind::kRequest) {
      request = &event;
    } else if (event.kind == FlightKind::kReply && !event.status.ok() && request != nullptr) {
      std::string text = event.what + " ended after " + ago(event.micros - request->micros) +
                         " of " + ago(request->limit * 1000) + " with " +
                         (event.http == 0 ? "no answer" : "HTTP " + std::to_string(event.http)) +
                         ": " + event.status.message();
      if (event.declared > 0) {
        text += "; " + std::to_string(event.actual) + " of " + std::to_string(event.declared) +
                " bytes had been written to it";
      }
      culprit.evidence.push_back(text);
      return;
    }
  }
}

Culprit ofEngine(const FlightFile& file, const Status& cause) {
  Culprit culprit;
  culprit.who = "engine " + cause.origin().engine;
  culprit.why = cause.message();
  addEngineEvidence(file, cause.origin().engine, culprit);
  return culprit;
}

/// Whether the cause is that a rank went away, and not something that this rank said itself.
bool isLostRank(const FlightFile& file, const Status& cause) {
  const int rank = cause.origin().rank;
  const bool said = cause.message().find(rankText(rank) + " is gone") != std::string::npos;
  return rank >= 0 && cause.code() == Code::kUnavailable &&
         (said || file.header.missing.contains(rank));
}

Culprit ofLostRank(const FlightFile& file, const Status& cause) {
  const int lost = cause.origin().rank;
  Culprit culprit;
  culprit.who = rankText(lost);
  culprit.why = "it died, was stopped or was cut off: " + cause.message();
  if (const auto missing = file.header.missing.find(lost); missing != file.header.missing.end()) {
    culprit.evidence.push_back("it left no events: " + missing->second);
  }
  for (const auto& [rank, record] : file.ranks) {
    for (const RecordedEvent& entry : record.events) {
      const FlightEvent& event = entry.event;
      if (event.kind == FlightKind::kLink && event.what == "lost" && event.peer == lost) {
        culprit.evidence.push_back(rankText(rank) + " heard in " +
                                   std::string(phaseName(event.phase)) + ": " +
                                   event.status.message());
        break;
      }
    }
  }
  return culprit;
}

bool orders(const FlightEvent& event, std::string_view action) {
  return event.kind == FlightKind::kStep &&
         ("," + event.text + ",").find("," + std::string(action) + ",") != std::string::npos;
}

/// A rank that was still at its own work when the others' vote in that phase ended without it.
std::optional<int> behindInVote(const FlightFile& file, const Origin& where) {
  std::map<int, std::int64_t> cast;
  std::int64_t ended = std::numeric_limits<std::int64_t>::max();
  for (const auto& [rank, record] : file.ranks) {
    for (const RecordedEvent& entry : record.events) {
      const FlightEvent& event = entry.event;
      if (event.phase != where.phase || static_cast<int>(event.attempt) != where.attempt) {
        continue;
      }
      if (orders(event, "Vote")) {
        cast.try_emplace(rank, event.micros);
      } else if (event.kind == FlightKind::kOperation && event.what == "Vote") {
        ended = std::min(ended, event.micros);
      }
    }
  }
  std::vector<int> late;
  for (int rank = 0; rank < file.header.ranks; ++rank) {
    const auto at = cast.find(rank);
    if (at == cast.end() || at->second >= ended) {
      late.push_back(rank);
    }
  }
  return late.size() == 1 && !cast.empty() ? std::optional(late.front()) : std::nullopt;
}

bool ofSource(const FlightFile& file, const Status& cause) {
  const auto rank = file.ranks.find(cause.origin().rank);
  if (rank == file.ranks.end()) {
    return false;
  }
  return std::any_of(
      rank->second.events.begin(), rank->second.events.end(), [&cause](const RecordedEvent& each) {
        const FlightEvent& event = each.event;
        const bool source =
            (event.kind == FlightKind::kOperation && isSourceOperation(event.what)) ||
            (event.kind == FlightKind::kStep &&
             (event.event == orchestrator::EventKind::kSourceItem ||
              event.event == orchestrator::EventKind::kSourceEnd));
        return source && event.status.message() == cause.message();
      });
}

Culprit ofRank(const FlightFile& file, const Status& cause) {
  Culprit culprit;
  const int rank = cause.origin().rank;
  culprit.why = cause.message();
  if (cause.code() == Code::kCancelled) {
    culprit.who = "a stop order" + (rank >= 0 ? ", heard by " + rankText(rank) : std::string());
  } else if (rank >= 0 && ofSource(file, cause)) {
    culprit.who = sourceOf(rank);
  } else {
    culprit.who = rank >= 0 ? rankText(rank) : "nobody in particular";
  }
  return culprit;
}

}  // namespace

Culprit findCulprit(const FlightFile& file) {
  const Status cause = firstCause(file);
  if (cause.ok()) {
    return {"nobody", "the record tells of no failure", {}};
  }
  if (!cause.origin().engine.empty()) {
    return ofEngine(file, cause);
  }
  if (isLostRank(file, cause)) {
    return ofLostRank(file, cause);
  }
  if (cause.code() == Code::kDeadlineExceeded) {
    if (cause.message().find("timeouts.gather") != std::string::npos) {
      return ofHungGather(file, cause);
    }
    if (const auto late = behindInVote(file, cause.origin())) {
      return {rankText(*late),
              "it did not come to a vote that the other ranks waited in: " + cause.message(),
              {}};
    }
  }
  return ofRank(file, cause);
}

}  // namespace pushrod::tools
