// SPDX-License-Identifier: Apache-2.0
// Proof of content (push.verify: checksum, P22), on rank 0: when it is due, what the engines'
// parameters are compared with, and the comparison of engines with each other.
#include <algorithm>
#include <utility>

#include "orchestrator/driver/push_driver.h"
#include "orchestrator/ledger/content.h"

namespace pushrod::orchestrator {

namespace {

bool hasChecker(const EngineSlot& slot) {
  return slot.ledger.identity != nullptr && slot.ledger.identity->features.hasChecker;
}

/// Why an engine whose target is as it must be counts as not compared.
constexpr std::string_view kNoDraftDigests =
    "its target is as it was sent, but /weight_checker tells nothing of the draft model";

/// Engines that must hold the same, sorted by what they say: each group's digests are equal.
using Groups = std::vector<std::vector<std::size_t>>;

std::vector<Groups> sortByContent(const std::vector<EngineSlot>& slots) {
  std::vector<Groups> layouts;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const Ledger& mine = slots[i].ledger;
    if (mine.dropped || mine.checksums == nullptr) {
      continue;
    }
    const auto fits = [&](const Groups& groups) {
      const Ledger& theirs = slots[groups.front().front()].ledger;
      return sameLayout(*mine.identity, *mine.checksums, *theirs.identity, *theirs.checksums);
    };
    const auto equals = [&](const std::vector<std::size_t>& group) {
      return firstDifference(*mine.checksums, *slots[group.front()].ledger.checksums).empty();
    };
    const auto layout = std::find_if(layouts.begin(), layouts.end(), fits);
    if (layout == layouts.end()) {
      layouts.push_back({{i}});
      continue;
    }
    const auto group = std::find_if(layout->begin(), layout->end(), equals);
    if (group == layout->end()) {
      layout->push_back({i});
    } else {
      group->push_back(i);
    }
  }
  return layouts;
}

}  // namespace

/// At the job's first push, then at every `verify_every`-th, and at every resend.
bool PushDriver::checksumsDue() const {
  const PushConfig& push = parts_.config.push;
  const auto every = static_cast<std::uint64_t>(std::max(push.verifyEvery, 1));
  return state_.leader && push.verify == Verify::kChecksum &&
         (state_.attempt > 1 || (push_.epoch - 1) % every == 0);
}

/// The target's pass begins; engines tell digests of their main model only.
void PushDriver::expectContent() {
  for (EngineSlot& slot : runner_.slots()) {
    slot.facts.checksums = checksumsDue();
    slot.facts.digests = nullptr;
  }
}

/// Hashing costs time: only where an engine can be compared.
bool PushDriver::mustHash() const {
  const auto& slots = runner_.slots();
  return checksumsDue() && !state_.draft &&
         std::any_of(slots.begin(), slots.end(), [](const EngineSlot& slot) {
           return !slot.ledger.dropped && hasChecker(slot) && slot.ledger.identity->worldSize == 1;
         });
}

void PushDriver::takeDigests(const std::shared_ptr<const common::ContentDigests>& digests) {
  if (digests != nullptr) {
    for (EngineSlot& slot : runner_.slots()) {
      slot.facts.digests = digests;
    }
  }
}

/// Among engines of one layout that differ, those that are not of the larger half are at fault;
/// without such a half nobody can tell, and all are.
Status PushDriver::compareReplicas() {
  Status first;
  for (const Groups& groups : sortByContent(runner_.slots())) {
    std::size_t count = 0;
    std::size_t most = 0;
    for (std::size_t i = 0; i < groups.size(); ++i) {
      count += groups[i].size();
      most = groups[i].size() > groups[most].size() ? i : most;
    }
    for (std::size_t i = 0; i < groups.size(); ++i) {
      if (groups.size() == 1 || (i == most && groups[most].size() * 2 > count)) {
        markEqual(groups[i]);
        continue;
      }
      for (const std::size_t engine : groups[i]) {
        first.merge(blameCopy(engine, groups[i == 0 ? 1 : 0].front()));
      }
    }
  }
  return first;
}

void PushDriver::markEqual(const std::vector<std::size_t>& engines) {
  for (const std::size_t engine : engines) {
    Ledger& ledger = runner_.slots()[engine].ledger;
    if (engines.size() > 1 && ledger.proof == Proof::kNotComparable &&
        !anyBlind(*ledger.checksums)) {
      ledger.proof = Proof::kEqual;
    }
  }
}

Status PushDriver::blameCopy(std::size_t engine, std::size_t other) {
  const auto& slots = runner_.slots();
  const std::string parameter =
      firstDifference(*slots[engine].ledger.checksums, *slots[other].ledger.checksums);
  return runner_.blame(engine,
                       Status(Code::kDataMismatch,
                              "its parameter " + parameter + " differs from that of engine " +
                                  slots[other].client->name() + ", though both took the same push",
                              Outcome::kApplied));
}

/// What the report says of contents that were asked for and cannot be compared.
std::vector<std::string> PushDriver::contentNotes() const {
  std::vector<std::string> notes;
  for (const EngineSlot& slot : runner_.slots()) {
    if (slot.ledger.dropped || contentOf(slot) != "not_comparable") {
      continue;
    }
    const bool targetIs = slot.ledger.proof == Proof::kProved || slot.ledger.proof == Proof::kEqual;
    notes.push_back("the content of engine " + slot.client->name() + " is not compared: " +
                    (targetIs                                     ? std::string(kNoDraftDigests)
                     : slot.ledger.proof == Proof::kNotComparable ? slot.ledger.proofText
                     : hasChecker(slot) ? "its workers' replies come late; restart it"
                                        : "release " + slot.ledger.identity->release +
                                              " has no /weight_checker, which came with 0.32"));
  }
  return notes;
}

/// Null: it was not asked, or the push did not get so far.
std::optional<std::string> PushDriver::contentOf(const EngineSlot& slot) const {
  switch (slot.ledger.proof) {
    case Proof::kProved:
      return slot.facts.withDraft ? "not_comparable" : "proved";
    case Proof::kEqual:
      return slot.facts.withDraft ? "not_comparable" : "equal";
    case Proof::kNotComparable:
      return "not_comparable";
    case Proof::kNone:
    case Proof::kDiffers:
      break;
  }
  const bool silent = slot.ledger.identity != nullptr && (!hasChecker(slot) || slot.ledger.lag > 0);
  return slot.facts.checksums && slot.ledger.proved && silent
             ? std::optional<std::string>("not_comparable")
             : std::nullopt;
}

}  // namespace pushrod::orchestrator
