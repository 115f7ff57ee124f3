// SPDX-License-Identifier: Apache-2.0
#include "common/ids.h"

#include <random>

namespace pushrod::common {

Id randomId() {
  std::random_device device;
  Id id{};
  for (std::uint8_t& byte : id) {
    byte = static_cast<std::uint8_t>(device() & 0xffU);
  }
  return id;
}

std::string toHex(const Id& id) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(2 * id.size());
  for (const std::uint8_t byte : id) {
    text += kDigits[byte >> 4U];
    text += kDigits[byte & 0xfU];
  }
  return text;
}

std::optional<Id> idFromHex(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  Id id{};
  if (text.size() != 2 * id.size()) {
    return std::nullopt;
  }
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::size_t digit = kDigits.find(text[i]);
    if (digit == std::string_view::npos) {
      return std::nullopt;
    }
    id[i / 2] = static_cast<std::uint8_t>((std::size_t{16} * id[i / 2] + digit) & 0xffU);
  }
  return id;
}

}  // namespace pushrod::common
