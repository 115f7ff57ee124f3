// SPDX-License-Identifier: Apache-2.0
#include "tools/demo/content_digest.h"

#include <array>
#include <cstddef>
#include <new>
#include <openssl/evp.h>
#include <span>
#include <vector>

namespace pushrod::tools {
namespace {

Result<std::string> sha256Hex(std::span<const std::byte> bytes) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned length = 0;
  if (EVP_Digest(bytes.data(), bytes.size(), digest.data(), &length, EVP_sha256(), nullptr) != 1) {
    return Status(Code::kInternal, "OpenSSL cannot compute SHA-256");
  }
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string hex;
  for (unsigned i = 0; i < length; ++i) {
    hex += kDigits[digest.at(i) >> 4U];
    hex += kDigits[digest.at(i) & 15U];
  }
  return hex;
}

}  // namespace

Result<TensorDigests> digestCheckpoint(const Checkpoint& checkpoint) {
  TensorDigests digests;
  std::vector<std::byte> bytes;
  for (const Checkpoint::Tensor& tensor : checkpoint.tensors()) {
    bytes.resize(tensor.stored->bytes);
    const Status read = tensor.file->read(*tensor.stored, 0, bytes);
    if (!read) {
      return read;
    }
    Result<std::string> digest = sha256Hex(bytes);
    if (!digest) {
      return digest.status();
    }
    digests[tensor.stored->name] = std::move(*digest);
  }
  return digests;
}

Result<std::string> shortDigest(const TensorDigests& digests) {
  std::string all;
  for (const auto& [name, digest] : digests) {
    all.append(name).append(" ").append(digest).append("\n");
  }
  Result<std::string> hex = sha256Hex(std::as_bytes(std::span(all)));
  constexpr std::size_t kShown = 12;
  return hex ? Result<std::string>(hex->substr(0, kShown)) : hex;
}

}  // namespace pushrod::tools
