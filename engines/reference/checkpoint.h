// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <pushrod/result.h>

#include "engines/reference/model.h"

namespace pushrod::engines::reference {

/// The digests of a Hugging Face checkpoint folder (safetensors, sharded or not). Reads every byte
/// once, fused parts twice; keeps none. invalidArgument names the file and what is wrong with it.
Result<InitialContent> readCheckpoint(const std::string& folder);

}  // namespace pushrod::engines::reference
