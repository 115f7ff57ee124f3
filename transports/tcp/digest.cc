// SPDX-License-Identifier: Apache-2.0
#include "transports/tcp/digest.h"

#include <xxhash.h>

#include "common/check.h"

namespace pushrod::transports::tcp {

struct ChunkDigest::State {
  XXH3_state_t* xxh3 = XXH3_createState();
};

ChunkDigest::ChunkDigest() : state_(std::make_unique<State>()) {
  PUSHROD_CHECK(state_->xxh3 != nullptr);
  reset();
}

ChunkDigest::~ChunkDigest() {
  XXH3_freeState(state_->xxh3);
}

void ChunkDigest::reset() {
  XXH3_64bits_reset(state_->xxh3);
}

void ChunkDigest::add(std::span<const std::byte> bytes) {
  XXH3_64bits_update(state_->xxh3, bytes.data(), bytes.size());
}

std::uint64_t ChunkDigest::value() const {
  return XXH3_64bits_digest(state_->xxh3);
}

}  // namespace pushrod::transports::tcp
