// SPDX-License-Identifier: Apache-2.0
#include "engines/vllm/profiles.h"

#include <array>
#include <charconv>
#include <optional>

#include "engines/vllm/reply_text.h"

namespace pushrod::engines::vllm {

namespace {

// Columns in the order of Profile's members.
constexpr std::array<Profile, 10> kProfiles = {{
    // name, minor, closes, prefix, draft, version, nccl, ipc, id, typed, shutdown, checker, reuse
    {"0.22", 22, false, false, false, false, false, false, false, false, false, false, false},
    {"0.23", 23, true, false, false, false, false, false, false, false, false, false, false},
    {"0.25", 25, true, false, false, false, false, false, false, false, false, false, false},
    {"0.26", 26, true, true, true, false, false, false, false, false, false, false, false},
    {"0.27", 27, true, true, true, true, false, true, false, false, false, false, false},
    {"0.28", 28, true, true, true, true, true, true, false, false, false, false, false},
    {"0.30", 30, true, true, true, true, true, true, true, false, false, false, false},
    {"0.32", 32, true, true, true, true, true, true, true, true, true, true, false},
    {"0.33", 33, true, true, true, true, true, true, true, true, true, true, true},
    {"main", 34, true, true, true, true, true, true, true, true, true, true, true},
}};

constexpr const Profile& kMain = kProfiles.back();
constexpr const Profile& kNewestRelease = kProfiles[kProfiles.size() - 2];
constexpr std::size_t kReleases = kProfiles.size() - 1;

struct Release {
  int major = 0;
  int minor = 0;
};

/// Reads "0.28", "v0.28.1", "0.32.0+cpu", "0.33.1.dev5+g12ab"; what follows the second number is
/// not looked at, but must begin with a character that can end a number.
std::optional<Release> parseRelease(std::string_view text) {
  if (text.starts_with('v')) {
    text.remove_prefix(1);
  }
  if (text.starts_with('-')) {
    return std::nullopt;  // "-0" would read as 0
  }
  Release release;
  const char* const end = text.data() + text.size();
  const auto major = std::from_chars(text.data(), end, release.major);
  if (major.ec != std::errc() || major.ptr == end || *major.ptr != '.') {
    return std::nullopt;
  }
  const auto minor = std::from_chars(major.ptr + 1, end, release.minor);
  if (minor.ec != std::errc() || release.minor < 0) {
    return std::nullopt;
  }
  constexpr std::string_view kAfterNumber = ".+-_abrpd";
  if (minor.ptr != end && kAfterNumber.find(*minor.ptr) == std::string_view::npos) {
    return std::nullopt;
  }
  return release;
}

bool newerThanKnown(const Release& release) {
  return release.major > 0 || release.minor > kNewestRelease.minor;
}

const Profile* atOrBelow(const Release& release) {
  const Profile* found = nullptr;
  for (std::size_t i = 0; i < kReleases; ++i) {
    if (kProfiles[i].minor <= release.minor) {
      found = &kProfiles[i];
    }
  }
  return found;
}

Result<ProfileChoice> configuredProfile(const std::string& configured) {
  if (configured == kMain.name) {
    return ProfileChoice{kMain.features(), ""};
  }
  const std::optional<Release> release = parseRelease(configured);
  if (!release) {
    return Status(Code::kInvalidArgument,
                  "engines.profile is " + quoted(configured) +
                      ", which is neither auto, main nor a vLLM release such as 0.28");
  }
  if (newerThanKnown(*release)) {
    return ProfileChoice{kNewestRelease.features(), ""};
  }
  const Profile* const profile = atOrBelow(*release);
  if (profile == nullptr) {
    return Status(Code::kInvalidArgument,
                  "engines.profile is " + quoted(configured) +
                      ", but the oldest known release is " + std::string(kProfiles.front().name));
  }
  return ProfileChoice{profile->features(), ""};
}

Result<ProfileChoice> unknownRelease(const std::string& why, UnknownProfile unknown) {
  if (unknown == UnknownProfile::kRefuse) {
    return Status(Code::kFailedPrecondition,
                  why +
                      " and engines.unknown_profile is refuse; set engines.profile to the release "
                      "whose routes it speaks, or engines.unknown_profile to newest",
                  Outcome::kRejected);
  }
  return ProfileChoice{kNewestRelease.features(),
                       why + "; it is treated as " + std::string(kNewestRelease.name) +
                           " (engines.unknown_profile: newest)"};
}

}  // namespace

EngineFeatures Profile::features() const {
  return {.profile = std::string(name),
          .hasVersion = hasVersion,
          .failedUpdateCloses = failedUpdateCloses,
          .hasShutdown = hasShutdown,
          .prefixResetAnswers = prefixResetAnswers,
          .updateIsTyped = updateIsTyped,
          .ncclPackedInInit = ncclPackedInInit,
          .ipcPackedInInit = ipcPackedInInit,
          .hasUniqueId = hasUniqueId,
          .hasChecker = hasChecker,
          .hasDraft = hasDraft,
          .reusesMetadata = reusesMetadata,
          .wakeAnswers = updateIsTyped};  // both came with the routes' new home, in 0.32
}

std::span<const Profile> profiles() {
  return kProfiles;
}

Result<ProfileChoice> chooseProfile(const std::string& version,
                                    const std::string& configured,
                                    UnknownProfile unknown) {
  if (!configured.empty() && configured != "auto") {
    return configuredProfile(configured);
  }
  const std::optional<Release> release = parseRelease(version);
  if (!release) {
    return unknownRelease("the server reports version " + quoted(version) + ", which is no release",
                          unknown);
  }
  if (newerThanKnown(*release)) {
    return unknownRelease("the server reports version " + quoted(version) +
                              ", newer than this build knows (" + std::string(kNewestRelease.name) +
                              ")",
                          unknown);
  }
  const Profile* const profile = atOrBelow(*release);
  if (profile == nullptr) {
    return Status(Code::kFailedPrecondition,
                  "the server reports version " + quoted(version) + ", older than " +
                      std::string(kProfiles.front().name) +
                      ", the first release that Pushrod can push to; upgrade the server",
                  Outcome::kRejected);
  }
  return ProfileChoice{profile->features(), ""};
}

}  // namespace pushrod::engines::vllm
