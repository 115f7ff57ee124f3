// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/fault_plan.h"

#include <array>

namespace pushrod::sim {

namespace {

constexpr std::uint8_t kAny = 0xFF;

struct KindRow {
  std::string_view name;
  std::uint8_t seam = kAny;
};

constexpr std::uint8_t at(Seam seam) {
  return static_cast<std::uint8_t>(seam);
}

constexpr std::array<KindRow, kFaultKinds> kKinds = {{
    {"none"},
    {"refused", at(Seam::kEngine)},
    {"4xx", at(Seam::kEngine)},
    {"5xx-before", at(Seam::kEngine)},
    {"5xx-after", at(Seam::kEngine)},
    {"lost-reply", at(Seam::kEngine)},
    {"lost-request", at(Seam::kEngine)},
    {"restart", at(Seam::kEngine)},
    {"dead", at(Seam::kEngine)},
    {"throws", at(Seam::kSource)},
    {"hangs", at(Seam::kSource)},
    {"hangs-deaf", at(Seam::kSource)},
    {"ends-early", at(Seam::kSource)},
    {"mismatch", at(Seam::kSource)},
    {"plane-fails", at(Seam::kPlane)},
    {"verdict-lost", at(Seam::kVote)},
    {"rank-dies"},
    {"rank-stops"},
    {"cancel"},
    {"restart-after", at(Seam::kEngine)},
    {"restart-later", at(Seam::kEngine)},
    {"other-server", at(Seam::kEngine)},
    {"late-reply", at(Seam::kEngine)},
    {"twice", at(Seam::kEngine)},
    {"stalls", at(Seam::kEngine)},
    {"frozen", at(Seam::kEngine)},
    {"lost", at(Seam::kEngine)},
    {"resumed", at(Seam::kEngine)},
    {"keeps-label", at(Seam::kEngine)},
    {"answers-early", at(Seam::kEngine)},
    {"stops-reading", at(Seam::kEngine)},
    {"one-sided", at(Seam::kEngine)},
    {"other-manifest", at(Seam::kSource)},
    {"stale-vote", at(Seam::kVote)},
    {"no-memory", at(Seam::kVote)},
    {"plane-stalls", at(Seam::kPlane)},
    {"other-values", at(Seam::kSource)},
    {"corrupt", at(Seam::kEngine)},
}};

/// Kinds that only some calls can suffer.
bool suits(FaultKind kind, const SeamCall& at) {
  switch (kind) {
    case FaultKind::kTwice:
      return at.call != CallKind::kUpdate && at.call != CallKind::kInit;
    case FaultKind::kKeepsLabel:
    case FaultKind::kCorrupt:
      return at.call == CallKind::kFinish;
    case FaultKind::kAnswersEarly:
    case FaultKind::kStopsReading:
      return at.call == CallKind::kUpdate;
    case FaultKind::kOneSided:
      return at.call == CallKind::kInit;
    case FaultKind::kOtherManifest:
      return at.what == "SourceManifest";
    case FaultKind::kOtherValues:
      return at.what == "SourceNext";
    case FaultKind::kNoMemory:
      return at.what == "Prepare";
    case FaultKind::kStaleVote:
      return at.what == "Vote";
    default:
      return true;
  }
}

std::string skewText(std::string_view who, const std::vector<Duration>& skews) {
  std::string text = skews.empty() ? "" : " " + std::string(who) + " late by";
  for (const Duration each : skews) {
    text += " " + std::to_string(each.count());
  }
  return text;
}

std::string number(std::string_view name, std::int64_t value, std::int64_t usual) {
  return value == usual ? "" : " " + std::string(name) + " " + std::to_string(value);
}

}  // namespace

std::string_view faultName(FaultKind kind) {
  return kKinds.at(static_cast<std::size_t>(kind)).name;
}

std::optional<FaultKind> faultFromName(std::string_view name) {
  for (std::size_t i = 0; i < kKinds.size(); ++i) {
    if (kKinds.at(i).name == name) {
      return static_cast<FaultKind>(i);
    }
  }
  return std::nullopt;
}

std::optional<Seam> seamOf(FaultKind kind) {
  const std::uint8_t seam = kKinds.at(static_cast<std::size_t>(kind)).seam;
  return seam == kAny ? std::nullopt : std::optional(static_cast<Seam>(seam));
}

bool Fault::harmless() const {
  constexpr Duration kShort{2000};
  const bool waits = kind == FaultKind::kStalls || kind == FaultKind::kPlaneStalls;
  return kind == FaultKind::kNone || kind == FaultKind::kTwice || (waits && lasts <= kShort);
}

bool Fault::fits(const SeamCall& at) const {
  const std::optional<Seam> wanted = seamOf(kind);
  const int place = at.seam == Seam::kEngine && wanted ? at.engine : at.rank;
  return kind != FaultKind::kNone && push == at.push && (!wanted || *wanted == at.seam) &&
         (!call || call == at.call) && (where < 0 || where == place) && suits(kind, at);
}

std::string Fault::text() const {
  std::string text(faultName(kind));
  text += " at call " + std::to_string(nth);
  text += call ? " of " + std::string(callName(*call)) : "";
  const bool engine = seamOf(kind) == Seam::kEngine;
  text += where < 0 ? "" : (engine ? " to e" : " of rank ") + std::to_string(where);
  text += push == 1 ? "" : " in push " + std::to_string(push);
  text += chained ? ", counted from the fault before" : "";
  text += victim < 0 ? "" : ", of rank " + std::to_string(victim);
  text += delay.count() == 0 ? "" : ", " + std::to_string(delay.count()) + " ms after it";
  return text + (lasts.count() == 0 ? "" : ", for " + std::to_string(lasts.count()) + " ms");
}

/// Engines with one worker, all of whose tensors rank 0 sends.
bool FaultPlan::provesContent() const {
  return checksums && verify && versions && workers == 1 && owners == 0 && !oldProfile;
}

std::vector<Fault> FaultPlan::list() const {
  std::vector<Fault> all = faults;
  if (kind != FaultKind::kNone) {
    Fault first;
    first.kind = kind;
    first.nth = k;
    first.victim = kind == FaultKind::kCancel ? victim : -1;
    all.push_back(first);
    if (second != FaultKind::kNone) {
      Fault next;
      next.kind = second;
      next.nth = secondK;
      next.victim = second == FaultKind::kCancel ? victim : -1;
      next.chained = true;
      all.push_back(next);
    }
  }
  return all;
}

std::string FaultPlan::text() const {
  std::string text = std::to_string(ranks) + " ranks, " + std::to_string(engines) + " engines" +
                     (chunked ? ", chunked" : "") + (oldProfile ? ", old profile" : "") +
                     (quarantine ? ", quarantine" : "") + (pass ? ", stops after the pass" : "") +
                     (draft ? ", draft" : "") + (replicas ? ", replicas" : "") +
                     (checksums ? ", checksums" : "") + (tight ? ", tight" : "") +
                     (resend ? "" : ", no resend") + (flush ? "" : ", no flush") +
                     (versions ? "" : ", no versions") + (verify ? "" : ", no verify") +
                     (sameVersion ? ", the same version each time" : "");
  text += number("owners", owners, 0) + number("without a draft push", targetOnly, 0) +
          number("wave", wave, 1) + number("min_healthy", minHealthy.value, 1) +
          number("buffer", static_cast<std::int64_t>(buffer), 20) + number("workers", workers, 1) +
          number("slow rank", slowRank, -1) + number("slow engine", slowEngine, -1) +
          number("other configuration", otherConfig, -1) + number("pushes", pushes, 1) +
          number("marker", static_cast<int>(marker), 0) +
          number("wake", static_cast<int>(wake), 0) + number("push limit", pushLimit.count(), 0) +
          number("pause takes", pauseTakes.count(), 0);
  text += skewText("ranks", rankSkews) + skewText("engines", engineSkews);
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const EngineStart& start = starts[i];
    text += "; e" + std::to_string(i) + " '" + start.label + "'" + (start.paused ? " paused" : "") +
            (start.session ? (start.draft ? " in a draft's session" : " in session") : "") +
            (start.asleep ? " asleep" : "");
  }
  for (const Fault& fault : faults) {
    text += "\n    " + fault.text();
  }
  return text;
}

std::string FaultPlan::replay() const {
  if (seed) {
    std::string keep = !kept ? "" : kept->empty() ? " --keep none" : " --keep ";
    for (std::size_t i = 0; kept && i < kept->size(); ++i) {
      keep += (i == 0 ? "" : ",") + std::to_string((*kept)[i]);
    }
    return "pushrod_sim --seed " + std::to_string(*seed) + keep + " --ranks " +
           std::to_string(ranks) + " --engines " + std::to_string(engines);
  }
  return "pushrod_sim --ranks " + std::to_string(ranks) + " --engines " + std::to_string(engines) +
         " --kind " + std::string(faultName(kind)) + " --k " + std::to_string(k) +
         (victim == 0 ? "" : " --victim " + std::to_string(victim)) +
         (second == FaultKind::kNone ? ""
                                     : " --second " + std::string(faultName(second)) +
                                           " --second-k " + std::to_string(secondK)) +
         (oldProfile ? " --old-profile" : "") + (quarantine ? " --quarantine" : "") +
         (chunked ? " --chunked" : "") + (pass ? " --pass" : "") + (draft ? " --draft" : "") +
         (replicas ? " --replicas" : "") + (checksums ? " --checksums" : "") +
         (owners == 0 ? "" : " --owners " + std::to_string(owners));
}

}  // namespace pushrod::sim
