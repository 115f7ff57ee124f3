// SPDX-License-Identifier: Apache-2.0
#include "transports/utf8.h"

namespace pushrod::transports {

std::size_t utf8Length(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(at);
  if (lead < 0x80U) {
    return 1;
  }
  const std::size_t length = lead >= 0xf0U ? 4 : (lead >= 0xe0U ? 3 : 2);
  if (lead < 0xc2U || lead > 0xf4U || length > text.size() - at) {
    return 0;
  }
  for (std::size_t i = at + 1; i < at + length; ++i) {
    if ((byte(i) & 0xc0U) != 0x80U) {
      return 0;
    }
  }
  // The second byte rules out longer spellings than needed, surrogates and what is above U+10FFFF.
  const unsigned second = byte(at + 1);
  const bool bad = (lead == 0xe0U && second < 0xa0U) || (lead == 0xedU && second > 0x9fU) ||
                   (lead == 0xf0U && second < 0x90U) || (lead == 0xf4U && second > 0x8fU);
  return bad ? 0 : length;
}

std::string_view utf8Prefix(std::string_view text, std::size_t limit) {
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t length = utf8Length(text, at);
    if (length == 0 || at + length > limit) {
      break;
    }
    at += length;
  }
  return text.substr(0, at);
}

bool isUtf8(std::string_view text) {
  return utf8Prefix(text, text.size()).size() == text.size();
}

}  // namespace pushrod::transports
