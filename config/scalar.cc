// SPDX-License-Identifier: Apache-2.0
#include "config/scalar.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "config/environment.h"
#include "config/fault.h"

namespace pushrod::config {

namespace {

struct Unit {
  std::string_view name;
  std::uint64_t factor;
};

constexpr std::array<Unit, 4> kDurations = {
    {{"h", 3'600'000}, {"m", 60'000}, {"s", 1000}, {"ms", 1}}};
constexpr std::array<Unit, 5> kSizes = {{{"TiB", std::uint64_t{1} << 40U},
                                         {"GiB", std::uint64_t{1} << 30U},
                                         {"MiB", std::uint64_t{1} << 20U},
                                         {"KiB", std::uint64_t{1} << 10U},
                                         {"B", 1}}};

Status wrong(std::string text) {
  return {Code::kInvalidArgument, std::move(text)};
}

bool isDigit(char c) {
  return c >= '0' && c <= '9';
}

/// A number with one of `units`; `kind` and `example` word the failures.
template <std::size_t N>
Result<std::uint64_t> parseUnit(std::string_view text,
                                const std::array<Unit, N>& units,
                                const std::string& kind,
                                const std::string& example) {
  const auto digits =
      static_cast<std::size_t>(std::find_if_not(text.begin(), text.end(), isDigit) - text.begin());
  const std::string_view unit = text.substr(digits);
  if (digits > 0 && unit.empty()) {
    return wrong(quoted(text) + " has no unit; write " + kind + " such as " + example);
  }
  const auto* const known =
      std::find_if(units.begin(), units.end(), [&](const Unit& u) { return u.name == unit; });
  const bool leadingZero = digits > 1 && text[0] == '0';
  if (digits == 0 || known == units.end() || leadingZero) {
    return wrong(quoted(text) + " is not " + kind + "; write a whole number and a unit, such as " +
                 example);
  }
  std::uint64_t number = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + digits, number);
  std::uint64_t value = 0;
  constexpr std::uint64_t kLargest = std::uint64_t{1} << 62U;
  if (parsed.ec != std::errc() || __builtin_mul_overflow(number, known->factor, &value) ||
      value > kLargest) {
    return wrong(quoted(text) + " is too large");
  }
  return value;
}

template <std::size_t N>
std::string formatUnit(std::uint64_t value,
                       const std::array<Unit, N>& units,
                       std::string_view zero) {
  if (value == 0) {
    return std::string(zero);
  }
  // Largest unit first; the last divides everything.
  const auto* const unit = std::find_if(
      units.begin(), units.end(), [&](const Unit& u) { return value % u.factor == 0; });
  return std::to_string(value / unit->factor) + std::string(unit->name);
}

bool isPlainWord(const std::string& text) {
  static constexpr std::array<std::string_view, 9> kReserved = {
      "true", "false", "null", "yes", "no", "on", "off", "y", "n"};
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  const auto letter = [&](char c) { return lower(c) >= 'a' && lower(c) <= 'z'; };
  if (text.empty() || !letter(text[0])) {
    return false;
  }
  std::string folded(text.size(), ' ');
  std::transform(text.begin(), text.end(), folded.begin(), lower);
  return std::find(kReserved.begin(), kReserved.end(), folded) == kReserved.end() &&
         std::all_of(text.begin(), text.end(), [&](char c) {
           return letter(c) || isDigit(c) || c == '_' || c == '-' || c == '.' || c == '/';
         });
}

}  // namespace

Result<std::int64_t> parseInteger(std::string_view text) {
  std::string_view digits = text;
  if (!digits.empty() && digits[0] == '-') {
    digits.remove_prefix(1);
  }
  if (digits.empty() || !std::all_of(digits.begin(), digits.end(), isDigit)) {
    return wrong(quoted(text) + " is not a whole number");
  }
  if (digits.size() > 1 && digits[0] == '0') {
    return wrong(quoted(text) + " has a leading zero; write the number in decimal without it");
  }
  std::int64_t value = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), value).ec != std::errc()) {
    return wrong(quoted(text) + " is too large");
  }
  return value;
}

Result<Duration> parseDuration(std::string_view text) {
  auto value = parseUnit(text, kDurations, "a duration", "500ms, 30s, 10m or 2h");
  if (!value) {
    return value.status();
  }
  return Duration(static_cast<Duration::rep>(*value));
}

Result<std::uint64_t> parseSize(std::string_view text) {
  return parseUnit(text, kSizes, "a size", "512KiB, 64MiB or 1GiB");
}

std::string formatDuration(Duration value) {
  return formatUnit(static_cast<std::uint64_t>(value.count()), kDurations, "0s");
}

std::string formatSize(std::uint64_t value) {
  return formatUnit(value, kSizes, "0B");
}

std::string formatText(const std::string& text) {
  if (isPlainWord(text)) {
    return text;
  }
  std::string shown = "\"";
  for (const char c : escapeVariables(text)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7F) {
      constexpr std::string_view kHex = "0123456789ABCDEF";
      shown += "\\x";
      shown += kHex[byte >> 4U];
      shown += kHex[byte & 0xFU];
      continue;
    }
    if (c == '"' || c == '\\') {
      shown += '\\';
    }
    shown += c;
  }
  return shown + '"';
}

}  // namespace pushrod::config
