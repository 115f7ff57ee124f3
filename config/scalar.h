// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <pushrod/deadline.h>
#include <pushrod/result.h>

namespace pushrod::config {

/// A decimal whole number without sign, except "-", and without leading zeros. Failures say what is
/// wrong with the text, for use after "KEY: ".
[[nodiscard]] Result<std::int64_t> parseInteger(std::string_view text);
/// A whole number with ms, s, m or h.
[[nodiscard]] Result<Duration> parseDuration(std::string_view text);
/// A whole number with B, KiB, MiB, GiB or TiB.
[[nodiscard]] Result<std::uint64_t> parseSize(std::string_view text);

/// The shortest exact text that parses back, e.g. "90s", "2h".
[[nodiscard]] std::string formatDuration(Duration value);
[[nodiscard]] std::string formatSize(std::uint64_t value);
/// `text` as a YAML scalar that reads back as this text: plain where nothing could be mistaken.
[[nodiscard]] std::string formatText(const std::string& text);

}  // namespace pushrod::config
