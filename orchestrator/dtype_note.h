// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <pushrod/tensor.h>

namespace pushrod::orchestrator {

/// What is to be said where an engine keeps its parameters in another float format than most of
/// the bytes are declared in (P27): they are converted there, and wider ones travel for nothing.
/// `dtype` is what the engine tells of itself. Empty: nothing.
[[nodiscard]] std::string dtypeNote(const Manifest& manifest, const std::string& dtype);

}  // namespace pushrod::orchestrator
