// SPDX-License-Identifier: Apache-2.0
#include "transports/copy_digest.h"

#include <xxhash.h>

#include "common/check.h"
#include "transports/tensor_bytes.h"

namespace pushrod::transports {

struct CopyDigest::State {
  XXH3_state_t* xxh3 = XXH3_createState();
};

CopyDigest::CopyDigest() : state_(std::make_unique<State>()) {
  PUSHROD_CHECK(state_->xxh3 != nullptr);
}

CopyDigest::~CopyDigest() {
  XXH3_freeState(state_->xxh3);
}

Result<std::uint64_t> CopyDigest::of(const TensorSpec& spec, const TensorView& view) {
  if (view.device.kind != Device::Kind::kCpu) {
    return Status(Code::kInvalidArgument,
                  "tensor '" + spec.describe() +
                      "' is in device memory, and push.check_replicas: digest reads host memory; "
                      "set push.check_replicas: off");
  }
  XXH3_64bits_reset(state_->xxh3);
  forEachPiece(spec, view, scratch_, [this](std::span<const std::byte> bytes) {
    XXH3_64bits_update(state_->xxh3, bytes.data(), bytes.size());
  });
  return static_cast<std::uint64_t>(XXH3_64bits_digest(state_->xxh3));
}

}  // namespace pushrod::transports
