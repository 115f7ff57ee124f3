// SPDX-License-Identifier: Apache-2.0
#include "engines/reference/digest.h"

#include <algorithm>
#include <array>
#include <openssl/evp.h>

#include "common/check.h"

namespace pushrod::engines::reference {

struct Sha256::Context {
  EVP_MD_CTX* state = EVP_MD_CTX_new();

  Context() = default;
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  ~Context() { EVP_MD_CTX_free(state); }
};

Sha256::Sha256() : context_(std::make_unique<Context>()) {
  PUSHROD_CHECK(context_->state != nullptr);
  PUSHROD_CHECK(EVP_DigestInit_ex(context_->state, EVP_sha256(), nullptr) == 1);
}

Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;
Sha256::~Sha256() = default;

void Sha256::add(const void* data, std::size_t bytes) {
  if (bytes > 0) {
    PUSHROD_CHECK(EVP_DigestUpdate(context_->state, data, bytes) == 1);
  }
}

void Sha256::addZeros(std::uint64_t bytes) {
  static constexpr std::array<unsigned char, 4096> kZeros{};
  while (bytes > 0) {
    const auto piece = static_cast<std::size_t>(std::min<std::uint64_t>(bytes, kZeros.size()));
    add(kZeros.data(), piece);
    bytes -= piece;
  }
}

std::string Sha256::hex() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int length = 0;
  PUSHROD_CHECK(EVP_DigestFinal_ex(context_->state, digest.data(), &length) == 1);
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  text.reserve(std::size_t{length} * 2);
  for (unsigned int i = 0; i < length; ++i) {
    text += kDigits[digest.at(i) >> 4U];
    text += kDigits[digest.at(i) & 15U];
  }
  return text;
}

std::string Sha256::of(std::string_view text) {
  Sha256 digest;
  digest.add(text.data(), text.size());
  return digest.hex();
}

}  // namespace pushrod::engines::reference
