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

}  // namespace pushrod::common
