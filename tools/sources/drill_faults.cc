// SPDX-License-Identifier: Apache-2.0
// The pushes of a drill plan and their faults.
#include <algorithm>
#include <array>

#include "tools/sources/drill_parts.h"

namespace pushrod::tools {
namespace {

constexpr Duration kLongest = std::chrono::hours(24);
constexpr std::uint64_t kMostTimes = 1000;
constexpr std::size_t kMostFaults = 10'000;

std::optional<FaultKind> readKind(const JsonNode& node,
                                  const std::string& path,
                                  PlanReader& reader) {
  const auto name = reader.string(node, path, "kind", PlanReader::kRequired);
  if (!name) {
    return std::nullopt;
  }
  std::vector<std::string_view> names;
  for (std::size_t i = 0; i < kFaultKindCount; ++i) {
    const auto kind = static_cast<FaultKind>(i);
    if (faultKindName(kind) == *name) {
      return kind;
    }
    names.push_back(faultKindName(kind));
  }
  reader.fault(planPath(path, "kind"),
               quotedName(*name) + " is no kind of fault; give " + choiceText(names));
  return std::nullopt;
}

void readPhase(const JsonNode& at, const std::string& path, DrillFault& fault, PlanReader& reader) {
  const auto name = reader.string(at, path, "phase");
  if (!name) {
    return;
  }
  std::vector<std::string_view> names;
  // Every phase but those in which nothing is done any more, or not yet.
  for (auto i = static_cast<std::size_t>(Phase::kCheck); i <= std::size_t(Phase::kFailing); ++i) {
    const auto phase = static_cast<Phase>(i);
    if (phaseName(phase) == *name) {
      fault.phase = phase;
      return;
    }
    names.push_back(phaseName(phase));
  }
  reader.fault(planPath(path, "phase"),
               quotedName(*name) + " is no phase of a push; give " + choiceText(names));
}

/// Returns whether the place could be read.
bool readAt(const JsonNode& node,
            const std::string& above,
            std::size_t tensors,
            DrillFault& fault,
            PlanReader& reader) {
  const std::string path = planPath(above, "at");
  const JsonNode* at = node.find("at");
  if (at == nullptr) {
    reader.fault(path, "is missing");
    return false;
  }
  if (!reader.object(*at, path, {"tensor", "after", "phase"})) {
    return false;
  }
  if (at->items.size() != 1) {
    reader.fault(path, "must hold exactly one of tensor, after and phase");
    return false;
  }
  if (at->find("tensor") != nullptr && tensors == 0) {
    reader.fault(path, "the plan has no tensors");
    return false;
  }
  if (const auto index = reader.integer(*at, path, "tensor", 0, tensors - 1)) {
    fault.tensor = static_cast<std::size_t>(*index);
  }
  if (const auto after = reader.string(*at, path, "after")) {
    fault.afterLast = *after == "last_tensor";
    if (!fault.afterLast) {
      reader.fault(planPath(path, "after"), quotedName(*after) + " must be \"last_tensor\"");
    }
  }
  readPhase(*at, path, fault, reader);
  return fault.tensor || fault.afterLast || fault.phase;
}

/// Whether that kind can happen at that place.
void checkPlace(const DrillFault& fault,
                const std::string& path,
                std::size_t tensors,
                PlanReader& reader) {
  const std::string place = planPath(path, "at");
  const std::string kind(faultKindName(fault.kind));
  switch (fault.kind) {
    case FaultKind::kThrow:
    case FaultKind::kHang:
    case FaultKind::kExit:
    case FaultKind::kStop:
      return;
    case FaultKind::kExtra:
      if (fault.phase) {
        reader.fault(place, kind + " happens at a tensor or after the last one, not in a phase");
      }
      return;
    case FaultKind::kMissing:
    case FaultKind::kWrongShape:
    case FaultKind::kOtherValues:
    case FaultKind::kReorder:
      if (!fault.tensor) {
        reader.fault(place, kind + " happens at a tensor");
      } else if (fault.kind == FaultKind::kReorder && *fault.tensor + 1 >= tensors) {
        reader.fault(place, "behind the last tensor there is none to change places with");
      }
      return;
  }
}

void readLength(const JsonNode& node,
                const std::string& path,
                DrillFault& fault,
                PlanReader& reader) {
  const std::string place = planPath(path, "seconds");
  const bool given = node.find("seconds") != nullptr;
  const auto length = reader.seconds(node, path, "seconds", kLongest);
  if (fault.kind != FaultKind::kHang && fault.kind != FaultKind::kStop) {
    if (given) {
      reader.fault(place, "only hang and stop last for a time");
    }
    return;
  }
  if (!given && fault.kind == FaultKind::kHang) {
    reader.fault(place, "is missing; a hang lasts so long unless the push ends it");
  } else if (length && *length == Duration::zero()) {
    reader.fault(place, "must be more than 0");
  }
  fault.length = length.value_or(Duration::zero());
}

std::optional<DrillFault> readFault(const JsonNode& node,
                                    const std::string& path,
                                    int ranks,
                                    std::size_t tensors,
                                    bool draft,
                                    PlanReader& reader) {
  if (!reader.object(node, path, {"rank", "at", "kind", "seconds", "times", "draft"})) {
    return std::nullopt;
  }
  DrillFault fault;
  const auto most = static_cast<std::uint64_t>(ranks - 1);
  const auto rank = reader.integer(node, path, "rank", 0, most, PlanReader::kRequired);
  fault.rank = static_cast<int>(rank.value_or(0));
  const bool placed = readAt(node, path, tensors, fault, reader);
  fault.times = static_cast<int>(reader.integer(node, path, "times", 1, kMostTimes).value_or(1));
  const auto kind = readKind(node, path, reader);
  if (!kind) {
    return std::nullopt;
  }
  fault.kind = *kind;
  readLength(node, path, fault, reader);
  fault.draft = reader.boolean(node, path, "draft").value_or(false);
  if (fault.draft && (!draft || fault.phase)) {
    reader.fault(planPath(path, "draft"),
                 draft ? "goes with a tensor or the pass's end, not with a phase"
                       : "the push carries no draft model");
  }
  if (placed) {
    checkPlace(fault, path, tensors, reader);
  }
  return fault;
}

/// Engines could not be told a version with other bytes in it.
bool printable(const std::string& text) {
  return std::none_of(text.begin(), text.end(), [](char c) {
    return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
  });
}

}  // namespace

DrillPush readDrillPush(const JsonNode& node,
                        const std::string& path,
                        int ranks,
                        std::size_t tensors,
                        PlanReader& reader) {
  DrillPush push;
  if (!reader.object(node, path, {"version", "draft", "wait_before_s", "faults"})) {
    return push;
  }
  const auto version = reader.string(node, path, "version", PlanReader::kRequired);
  if (version && (version->empty() || !printable(*version))) {
    reader.fault(planPath(path, "version"), "must be a text that is not empty, in one line");
  }
  push.version = version.value_or("");
  push.draft = reader.boolean(node, path, "draft").value_or(false);
  push.wait = reader.seconds(node, path, "wait_before_s", kLongest).value_or(Duration::zero());
  const JsonNode* faults = reader.list(node, path, "faults");
  if (faults == nullptr) {
    return push;
  }
  const std::string list = planPath(path, "faults");
  if (faults->items.size() > kMostFaults) {
    reader.fault(list, "holds more than " + std::to_string(kMostFaults));
    return push;
  }
  for (std::size_t i = 0; i < faults->items.size(); ++i) {
    if (const auto fault =
            readFault(faults->items[i], planPath(list, i), ranks, tensors, push.draft, reader)) {
      push.faults.push_back(*fault);
    }
  }
  return push;
}

}  // namespace pushrod::tools
