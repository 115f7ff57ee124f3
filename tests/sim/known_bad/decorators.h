// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "tests/sim/world.h"

// Variants of the product with one rule taken out, by decorators over the engine client. The
// invariants must catch each of them.

namespace pushrod::sim::known_bad {

/// Leaves out the empty session: whatever clean opens is only pretended.
std::unique_ptr<EngineClient> withoutEmptySession(std::unique_ptr<EngineClient> inner,
                                                  World& world);

/// Believes every finish, and that the label is what it should be: a resume without proof.
std::unique_ptr<EngineClient> withoutVerify(std::unique_ptr<EngineClient> inner, World& world);

/// Takes every answer to an update for a good one.
std::unique_ptr<EngineClient> withoutUpdateCheck(std::unique_ptr<EngineClient> inner, World& world);

/// Starts again over a session that a failed close left open.
std::unique_ptr<EngineClient> withoutStaleClose(std::unique_ptr<EngineClient> inner, World& world);

}  // namespace pushrod::sim::known_bad
