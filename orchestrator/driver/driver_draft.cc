// SPDX-License-Identifier: Apache-2.0
// The draft model that a push may carry besides the target (P31): its pass follows in a session of
// its own, in the same pause, and the version goes with the last of the two.
#include <algorithm>
#include <charconv>
#include <utility>

#include "common/hash.h"
#include "orchestrator/driver/push_driver.h"
#include "transports/manifest_check.h"
#include "transports/owner_runs.h"

namespace pushrod::orchestrator {

namespace {

/// The texts of both manifests as one: the first one's length stands before it.
std::string bothTexts(const Manifest& target, const Manifest* draft) {
  const std::string first = transports::manifestText(target);
  std::string text = std::to_string(first.size()) + "\n" + first;
  return draft == nullptr ? text : text.append(transports::manifestText(*draft));
}

}  // namespace

const std::shared_ptr<const Manifest>& PushDriver::passManifest() const {
  return state_.draft ? draftManifest_ : manifest_;
}

std::uint64_t PushDriver::declaredTensors() const {
  return manifest_->tensors.size() + (draftManifest_ ? draftManifest_->tensors.size() : 0);
}

std::uint64_t PushDriver::declaredBytes() const {
  return manifest_->bytes() + (draftManifest_ ? draftManifest_->bytes() : 0);
}

/// Every rank that owns a tensor of either model.
std::vector<int> PushDriver::owners() const {
  std::vector<int> all = transports::ownersOf(*manifest_);
  if (draftManifest_ != nullptr) {
    const std::vector<int> more = transports::ownersOf(*draftManifest_);
    all.insert(all.end(), more.begin(), more.end());
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
  }
  return all;
}

Status PushDriver::takeManifest(const CallerResult& result) {
  manifest_ = result.manifest;
  draftManifest_ = result.draftManifest;
  manifestText_ = bothTexts(*manifest_, draftManifest_.get());
  manifestDigest_ = common::fnv1a(manifestText_);
  parts_.observer.onManifest(declaredTensors(), declaredBytes());
  parts_.observer.onDeclared(manifest_, draftManifest_);
  const auto check = [this](const Manifest& manifest, const auto& earlier) {
    const Status owned =
        transports::checkOwners(manifest, parts_.owned != nullptr, parts_.rank.size);
    if (!owned.ok() || earlier == nullptr || parts_.config.push.partial) {
      return owned;
    }
    // Engines take a short stream with 200 and serve a mixed model (P18).
    std::set<std::string> missing = *earlier;
    for (const TensorSpec& tensor : manifest.tensors) {
      missing.erase(tensor.name);
    }
    return missing.empty() ? Status()
                           : Status(Code::kInvalidArgument,
                                    "the manifest lacks " + std::to_string(missing.size()) +
                                        " tensors that an earlier push of this job had, first " +
                                        *missing.begin() + "; add them, or set push.partial: true",
                                    Outcome::kNotSent);
  };
  const Status target = check(*manifest_, push_.earlierNames);
  if (!target.ok() || draftManifest_ == nullptr) {
    return target;
  }
  const Status draft = check(*draftManifest_, push_.earlierDraftNames);
  return draft.ok() ? draft : draft.prefixed("the draft model");
}

/// Rank 0's text of both manifests against this rank's, as a clause; empty: no difference.
std::string PushDriver::differenceFrom(const std::string& theirs) const {
  const std::string malformed = "rank 0's manifest is malformed";
  std::size_t size = 0;
  const auto [at, error] = std::from_chars(theirs.data(), theirs.data() + theirs.size(), size);
  const auto begin = static_cast<std::size_t>(at - theirs.data()) + 1;
  if (error != std::errc() || begin > theirs.size() || size > theirs.size() - begin) {
    return malformed;
  }
  const Result<Manifest> target = transports::parseManifestText(theirs.substr(begin, size));
  if (!target.ok()) {
    return target.status().message();
  }
  const std::string difference = transports::firstManifestDifference(*manifest_, *target);
  if (!difference.empty() || draftManifest_ == nullptr) {
    return difference;
  }
  const Result<Manifest> draft = transports::parseManifestText(theirs.substr(begin + size));
  if (!draft.ok()) {
    return draft.status().message();
  }
  const std::string other = transports::firstManifestDifference(*draftManifest_, *draft);
  return other.empty() ? other : "the draft model: " + other;
}

/// A session of the target's or the draft's comes next. The plane counts anew from its begin();
/// what it counted of the target stays.
void PushDriver::beginSession() {
  if (state_.draft && parts_.plane != nullptr) {
    countBytes();
    castsBefore_ = parts_.plane->casts();
    bytesBefore_ = engineBytes_;
  }
  counting_ = false;
  const std::vector<Bodies>& bodies = state_.draft ? draftBodies_ : targetBodies_;
  if (bodies.size() != runner_.slots().size()) {
    return;
  }
  for (std::size_t i = 0; i < bodies.size(); ++i) {
    PushFacts& facts = runner_.slots()[i].facts;
    facts.draft = state_.draft;
    facts.updateBody = bodies[i].update;
    facts.chunkBodies = bodies[i].runs;
  }
}

/// On every rank, before the source begins.
void PushDriver::beginPass() {
  copies_.clear();
  copiesCompared_ = false;
  deliverHalt();
  if (state_.draft) {
    return;
  }
  passBytes_ = 0;
  castsBefore_ = 0;
  std::fill(engineBytes_.begin(), engineBytes_.end(), 0);
  bytesBefore_ = engineBytes_;
  expectContent();
}

}  // namespace pushrod::orchestrator
