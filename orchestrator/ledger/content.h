// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include <pushrod/engine_client.h>

#include "common/content_digests.h"

namespace pushrod::orchestrator {

/// What /weight_checker tells: SHA-256 by "dp0:pp0:pcp0:tp0:PARAMETER".
using Checksums = std::map<std::string, std::string>;

/// What is known of an engine's content after a push (P22).
enum class Proof : std::uint8_t {
  kNone,           ///< not asked
  kProved,         ///< every parameter is what the ranks sent
  kEqual,          ///< every parameter is as in another engine of the same layout
  kNotComparable,  ///< neither can be said
  kDiffers,
};

struct ContentFinding {
  Proof proof = Proof::kNone;
  std::string text;  ///< kNotComparable: why; kDiffers: which parameter
};

/// Compares an engine's parameters with what was sent: proved only when every one of them was
/// compared. `sent` may be null. A parameter that the engine holds in another dtype than was sent,
/// or whose digest is that of nothing, is not comparable.
[[nodiscard]] ContentFinding compareWithSent(const Checksums& told,
                                             const EngineIdentity& identity,
                                             const common::ContentDigests* sent);

/// Whether two engines that say so must hold the same bytes under the same names.
[[nodiscard]] bool sameLayout(const EngineIdentity& one,
                              const Checksums& oneTells,
                              const EngineIdentity& other,
                              const Checksums& otherTells);

/// The first parameter whose digests differ, blind ones left out; empty: none.
[[nodiscard]] std::string firstDifference(const Checksums& one, const Checksums& other);

/// Whether a digest says nothing about its parameter.
[[nodiscard]] bool anyBlind(const Checksums& told);

}  // namespace pushrod::orchestrator
