// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>

#include <pushrod/tensor.h>

namespace pushrod::common {

/// SHA-256 of no bytes at all.
inline constexpr std::string_view kSha256OfNothing =
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/// What an engine's parameter must hold after a push.
struct ParameterDigest {
  std::string sha256;
  DType dtype = DType::kBfloat16;
};

/// By the engine's parameter name.
using ContentDigests = std::map<std::string, ParameterDigest>;

}  // namespace pushrod::common
