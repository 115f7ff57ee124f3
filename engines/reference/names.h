// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace pushrod::engines::reference {

/// Where a checkpoint name belongs in the engine.
struct NameParts {
  std::string block;    ///< "model.layers.0"; outside of numbered layers the module
  std::string module;   ///< the unit that is rebuilt as a whole, e.g. "...self_attn.qkv_proj"
  std::string runtime;  ///< the engine's own parameter name, e.g. "...qkv_proj.weight"
  bool fused = false;   ///< a part of q, k, v or of gate, up
  int order = 0;        ///< its place among the parts
};

[[nodiscard]] NameParts splitName(std::string_view name);

}  // namespace pushrod::engines::reference
