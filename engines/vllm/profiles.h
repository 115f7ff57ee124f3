// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>

#include <pushrod/config.h>
#include <pushrod/engine_client.h>
#include <pushrod/result.h>

namespace pushrod::engines::vllm {

/// One dialect of the weight-update routes: the first release that speaks it and what it can do.
/// Releases between two rows are the earlier row's.
struct Profile {
  std::string_view name;  ///< "0.28", or "main"
  int minor = 0;          ///< of the first release, 0.minor
  bool failedUpdateCloses = false;
  bool prefixResetAnswers = false;
  bool hasDraft = false;
  bool hasVersion = false;
  bool ncclPackedInInit = false;
  bool ipcPackedInInit = false;
  bool hasUniqueId = false;
  bool updateIsTyped = false;
  bool hasShutdown = false;
  bool hasChecker = false;
  bool reusesMetadata = false;

  [[nodiscard]] EngineFeatures features() const;
};

/// Every profile, oldest first. The last row, "main", is never chosen from a version text: only by
/// configuration.
[[nodiscard]] std::span<const Profile> profiles();

/// The features to use and, when they are a guess, the warning to log.
struct ProfileChoice {
  EngineFeatures features;
  std::string warning;
};

/// The profile for a server that reports `version`. `configured` is engines.profile: "auto"
/// believes the version; "main" or a release text overrides it. A release counts as the newest
/// known one at or below it. A text that is no release, or one newer than this build knows, follows
/// `unknown`; a release before the first row is refused always.
Result<ProfileChoice> chooseProfile(const std::string& version,
                                    const std::string& configured,
                                    UnknownProfile unknown);

}  // namespace pushrod::engines::vllm
