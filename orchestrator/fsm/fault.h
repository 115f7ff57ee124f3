// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace pushrod::orchestrator {

/// What a failure under a goal says about the engine, for decide().
enum class Fault : std::uint8_t {
  kNone,
  kFailed,  ///< it may pass: another attempt can mend it
  kUnfit,   ///< not for this push as it stands: nobody answers there, or it refused
  kLost,    ///< it cannot be used until it is restarted (P16)
};

}  // namespace pushrod::orchestrator
