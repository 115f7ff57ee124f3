// SPDX-License-Identifier: Apache-2.0
#include "transports/sha256.h"

#include <array>
#include <openssl/evp.h>
#include <string_view>

#include "common/check.h"

namespace pushrod::transports {

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

void Sha256::add(std::span<const std::byte> bytes) {
  if (!bytes.empty()) {
    PUSHROD_CHECK(EVP_DigestUpdate(context_->state, bytes.data(), bytes.size()) == 1);
  }
}

std::string Sha256::hex() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int length = 0;
  PUSHROD_CHECK(EVP_DigestFinal_ex(context_->state, digest.data(), &length) == 1);
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  text.reserve(std::size_t{length} * 2);
  for (std::size_t i = 0; i < length; ++i) {
    text += kDigits[digest.at(i) >> 4U];
    text += kDigits[digest.at(i) & 15U];
  }
  return text;
}

}  // namespace pushrod::transports
