// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include <pushrod/result.h>

#include "tools/sources/checkpoint.h"

namespace pushrod::tools {

/// SHA-256 of each tensor's bytes, as lower-case hex.
using TensorDigests = std::map<std::string, std::string>;

/// Reads every tensor of a checkpoint.
Result<TensorDigests> digestCheckpoint(const Checkpoint& checkpoint);

/// One short text for all of them: equal exactly when all are.
Result<std::string> shortDigest(const TensorDigests& digests);

}  // namespace pushrod::tools
