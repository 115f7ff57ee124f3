// SPDX-License-Identifier: Apache-2.0
#include "tools/sources/made_values.h"

#include <bit>
#include <memory>
#include <openssl/evp.h>
#include <string>

namespace pushrod::tools {

Result<std::vector<std::int8_t>> madeValues(std::string_view name,
                                            std::uint64_t seed,
                                            std::string_view version,
                                            std::size_t count) {
  std::string key(name);
  key += '\0' + std::to_string(seed) + '\0';
  key += version;
  std::vector<std::int8_t> values(count);
  if (count == 0) {
    return values;
  }
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> hash(EVP_MD_CTX_new(),
                                                                     &EVP_MD_CTX_free);
  if (!hash || EVP_DigestInit_ex(hash.get(), EVP_shake128(), nullptr) != 1 ||
      EVP_DigestUpdate(hash.get(), key.data(), key.size()) != 1 ||
      EVP_DigestFinalXOF(
          hash.get(), reinterpret_cast<unsigned char*>(values.data()), values.size()) != 1) {
    return Status(Code::kInternal, "OpenSSL cannot compute SHAKE128");
  }
  std::int8_t* const end = values.data() + values.size();
  for (std::int8_t* value = values.data(); value != end; ++value) {
    *value = static_cast<std::int8_t>((static_cast<unsigned>(*value) & 15U) - 8U);
  }
  return values;
}

std::uint16_t bfloat16Bits(std::int8_t value) {
  // Small integers have few significant bits, so cutting the lower half loses nothing.
  return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(static_cast<float>(value)) >> 16U);
}

}  // namespace pushrod::tools
