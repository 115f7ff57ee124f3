// SPDX-License-Identifier: Apache-2.0
#include "config/text_check.h"

#include <cstdint>
#include <string>
#include <utility>

#include <pushrod/coordinator.h>

namespace pushrod::config {

namespace {

/// Bytes of the UTF-8 sequence at the start of `text`, 0 when it is none.
std::size_t sequenceLength(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  if (first < 0x80) {
    return 1;
  }
  std::size_t length = 0;
  std::uint32_t point = 0;
  std::uint32_t smallest = 0;
  if ((first & 0xE0U) == 0xC0U) {
    length = 2;
    point = first & 0x1FU;
    smallest = 0x80;
  } else if ((first & 0xF0U) == 0xE0U) {
    length = 3;
    point = first & 0x0FU;
    smallest = 0x800;
  } else if ((first & 0xF8U) == 0xF0U) {
    length = 4;
    point = first & 0x07U;
    smallest = 0x10000;
  }
  if (length == 0 || text.size() < length) {
    return 0;
  }
  for (std::size_t i = 1; i < length; ++i) {
    const auto next = static_cast<unsigned char>(text[i]);
    if ((next & 0xC0U) != 0x80U) {
      return 0;
    }
    point = (point << 6U) | (next & 0x3FU);
  }
  const bool surrogate = point >= 0xD800 && point <= 0xDFFF;
  return point < smallest || point > 0x10FFFF || surrogate ? 0 : length;
}

bool isControl(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte < 0x20 || byte == 0x7F;
}

}  // namespace

std::optional<TextFault> checkText(std::string_view text) {
  Position where;
  while (!text.empty()) {
    const std::size_t length = sequenceLength(text);
    if (length == 0) {
      return TextFault{where, "the file is not UTF-8 text; save it as UTF-8"};
    }
    const char c = text[0];
    if (isControl(c) && c != '\t' && c != '\n' && c != '\r') {
      return TextFault{where,
                       "control character " + std::to_string(static_cast<int>(c)) +
                           " is not allowed in a configuration; remove it"};
    }
    where.column = c == '\n' ? 1 : where.column + 1;
    where.line += c == '\n' ? 1 : 0;
    text.remove_prefix(length);
  }
  return std::nullopt;
}

Status checkVersion(std::string_view version) {
  const auto refused = [](std::string why) {
    return Status(Code::kInvalidArgument, "the version to push " + std::move(why));
  };
  if (version.empty()) {
    return refused("is empty");
  }
  if (version.size() > kLongestVersion) {
    return refused("has " + std::to_string(version.size()) + " bytes, more than " +
                   std::to_string(kLongestVersion));
  }
  // JSON cannot carry it: engines would refuse it with the last call, their weights half way.
  return isPrintable(version)
             ? Status()
             : refused("is not UTF-8 text without control characters; give another");
}

bool isPrintable(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = sequenceLength(text);
    if (length == 0 || isControl(text[0])) {
      return false;
    }
    text.remove_prefix(length);
  }
  return true;
}

}  // namespace pushrod::config
