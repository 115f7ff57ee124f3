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

/// Reads whatever version an engine reports as the pushed one.
std::unique_ptr<EngineClient> withAnyVersion(std::unique_ptr<EngineClient> inner, World& world);
std::unique_ptr<EngineClient> withAnyContent(std::unique_ptr<EngineClient> inner, World& world);

/// Resumes each engine as soon as its own finish was answered well.
std::unique_ptr<EngineClient> withEarlyResume(std::unique_ptr<EngineClient> inner, World& world);

/// Publishes the version as soon as the update was answered well, before the ranks agree.
std::unique_ptr<EngineClient> withEarlyVersion(std::unique_ptr<EngineClient> inner, World& world);

/// Closes every session with the version.
std::unique_ptr<EngineClient> withVersionInEveryClose(std::unique_ptr<EngineClient> inner,
                                                      World& world);

/// Leaves the sessions of a failed push as they are.
std::unique_ptr<EngineClient> withoutLastClose(std::unique_ptr<EngineClient> inner, World& world);

/// Takes every engine for a paused one.
std::unique_ptr<EngineClient> withoutPause(std::unique_ptr<EngineClient> inner, World& world);

/// Sends a finish again whose answer was no good one.
std::unique_ptr<EngineClient> withBlindRepeat(std::unique_ptr<EngineClient> inner, World& world);

/// Sets no marker over a version that is there already.
std::unique_ptr<EngineClient> withoutMarker(std::unique_ptr<EngineClient> inner, World& world);

/// Takes a version for another that begins alike but for its first letter's case.
std::unique_ptr<EngineClient> withLooseVersion(std::unique_ptr<EngineClient> inner, World& world);

/// Looks once whether an engine is paused, and goes on whatever it sees.
std::unique_ptr<EngineClient> withOneLook(std::unique_ptr<EngineClient> inner, World& world);

/// Resumes an engine that the push goes on without, once its session is closed.
std::unique_ptr<EngineClient> withResumeOfLeftOut(std::unique_ptr<EngineClient> inner,
                                                  World& world);

/// Publishes the version with the target, before its draft model.
std::unique_ptr<EngineClient> withVersionOfTarget(std::unique_ptr<EngineClient> inner,
                                                  World& world);

/// Leaves out the empty session of the draft model.
std::unique_ptr<EngineClient> withoutEmptyDraft(std::unique_ptr<EngineClient> inner, World& world);

/// Opens the draft model's session as one of the target.
std::unique_ptr<EngineClient> withLostDraftFlag(std::unique_ptr<EngineClient> inner, World& world);

}  // namespace pushrod::sim::known_bad
