// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/ledger/content.h"

#include <algorithm>
#include <cctype>
#include <string_view>

namespace pushrod::orchestrator {

namespace {

/// Of a packed linear on a CPU server, among others: its parameter was emptied.
bool blind(const std::string& digest) {
  return digest.empty() || digest == common::kSha256OfNothing;
}

/// The parameter behind "dp0:pp0:pcp0:tp0:"; empty for any other key.
std::string_view parameterOf(std::string_view key) {
  constexpr std::string_view kOnlyWorker = "dp0:pp0:pcp0:tp0:";
  return key.starts_with(kOnlyWorker) ? key.substr(kOnlyWorker.size()) : std::string_view();
}

ContentFinding notComparable(std::string why) {
  return {Proof::kNotComparable, std::move(why)};
}

/// What makes digests of sent tensors useless at this engine; empty: nothing.
std::string obstacle(const EngineIdentity& identity, const common::ContentDigests* sent) {
  if (identity.worldSize != 1) {
    return "its " + std::to_string(identity.worldSize) + " workers hold shards";
  }
  if (!identity.quantization.empty()) {
    return "it quantises what it loads (" + identity.quantization + ")";
  }
  if (sent == nullptr || sent->empty()) {
    return "this rank has no digests of what was sent";
  }
  return {};
}

}  // namespace

ContentFinding compareWithSent(const Checksums& told,
                               const EngineIdentity& identity,
                               const common::ContentDigests* sent) {
  if (told.empty()) {
    return notComparable("it told no parameter");
  }
  if (std::string why = obstacle(identity, sent); !why.empty()) {
    return notComparable(std::move(why));
  }
  std::string open;
  for (const auto& [key, digest] : told) {
    const std::string parameter(parameterOf(key));
    const auto expected = sent->find(parameter);
    if (expected == sent->end()) {
      open = open.empty() ? key + " follows from no tensor alone" : open;
    } else if (digest == expected->second.sha256) {
      continue;
    } else if (blind(digest)) {
      open = open.empty() ? "the digest of " + parameter + " is that of nothing" : open;
    } else if (identity.dtype != dtypeName(expected->second.dtype)) {
      open = open.empty() ? parameter + " may be held in another dtype than it was sent in" : open;
    } else {
      return {Proof::kDiffers,
              "its parameter " + parameter + " does not hold what was sent (SHA-256 " + digest +
                  " instead of " + expected->second.sha256 +
                  "); if it stores that parameter otherwise than the checkpoint, set "
                  "push.verify: version"};
    }
  }
  return open.empty() ? ContentFinding{Proof::kProved, {}} : notComparable(std::move(open));
}

bool sameLayout(const EngineIdentity& one,
                const Checksums& oneTells,
                const EngineIdentity& other,
                const Checksums& otherTells) {
  const auto sameKey = [](const auto& a, const auto& b) { return a.first == b.first; };
  return one.release == other.release && one.worldSize == other.worldSize &&
         one.pipelineStages == other.pipelineStages && one.dataParallel == other.dataParallel &&
         one.dtype == other.dtype && one.quantization == other.quantization && !oneTells.empty() &&
         std::equal(
             oneTells.begin(), oneTells.end(), otherTells.begin(), otherTells.end(), sameKey);
}

std::string firstDifference(const Checksums& one, const Checksums& other) {
  for (const auto& [key, digest] : one) {
    const auto same = other.find(key);
    if (same != other.end() && !blind(digest) && !blind(same->second) && digest != same->second) {
      return key;
    }
  }
  return {};
}

bool anyBlind(const Checksums& told) {
  return std::any_of(
      told.begin(), told.end(), [](const auto& entry) { return blind(entry.second); });
}

}  // namespace pushrod::orchestrator
