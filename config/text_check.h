// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <pushrod/status.h>

#include "config/fault.h"

namespace pushrod::config {

struct TextFault {
  Position where;
  std::string text;
};

/// The first thing that makes `text` no plain UTF-8 text file: a byte sequence that is not UTF-8,
/// or a control character other than tab and line end. The YAML scanner would replace the first
/// silently and takes byte 4 for the end of the text.
[[nodiscard]] std::optional<TextFault> checkText(std::string_view text);

/// Whether `text` is UTF-8 without any control character.
[[nodiscard]] bool isPrintable(std::string_view text);

/// Whether engines could be given this version: 1 to kLongestVersion bytes that isPrintable()
/// passes.
[[nodiscard]] Status checkVersion(std::string_view version);

}  // namespace pushrod::config
