// SPDX-License-Identifier: Apache-2.0
#include "transports/manifest_check.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "transports/cast.h"

namespace pushrod::transports {

namespace {

Status mismatch(std::size_t index, const std::string& text) {
  return {Code::kDataMismatch, "tensor " + std::to_string(index) + " of the pass " + text};
}

std::string quoted(std::string_view text) {
  std::string result = "'";
  result.append(text).append("'");
  return result;
}

std::string bytesText(std::optional<std::int64_t> count, DType dtype) {
  return count.has_value()
             ? std::to_string(static_cast<std::uint64_t>(*count) * itemSize(dtype)) + " bytes"
             : std::string("no valid size");
}

/// Whether every element's distance from the first fits the address arithmetic.
bool stridesReachable(const TensorView& view) {
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  const auto size = static_cast<std::int64_t>(itemSize(view.dtype));
  std::int64_t room = kMost / size;
  for (std::size_t i = 0; i < view.strides.size(); ++i) {
    const std::int64_t steps = view.shape[i] - 1;
    const std::int64_t stride = view.strides[i];
    if (stride == std::numeric_limits<std::int64_t>::min()) {
      return false;
    }
    const std::int64_t step = stride < 0 ? -stride : stride;
    if (steps > 0 && step > room / steps) {
      return false;
    }
    room -= steps > 0 ? step * steps : 0;
  }
  return true;
}

Status checkMemory(std::size_t index, const TensorView& view) {
  const auto count = elementCount(view.shape);
  if (!view.strides.empty() && view.strides.size() != view.shape.size()) {
    return mismatch(index,
                    quoted(view.describe()) + " has " + std::to_string(view.strides.size()) +
                        " strides for " + std::to_string(view.shape.size()) + " dimensions");
  }
  if (count.value_or(0) == 0) {
    return {};
  }
  if (!stridesReachable(view)) {
    return mismatch(index, quoted(view.describe()) + " has strides beyond any address");
  }
  if (view.data == nullptr) {
    return mismatch(index, quoted(view.describe()) + " has elements but no memory (null data)");
  }
  return {};
}

}  // namespace

Status ManifestChecker::check(std::size_t index, const TensorView& view) {
  if (index >= manifest_.tensors.size()) {
    return mismatch(index,
                    quoted(view.describe()) + " is extra: the manifest declares only " +
                        std::to_string(manifest_.tensors.size()) + " tensors");
  }
  const TensorSpec& spec = manifest_.tensors[index];
  if (spec.name != view.name) {
    return nameFault(index, view);
  }
  if (spec.shape != view.shape) {
    return mismatch(index,
                    "differs in shape: declared " + quoted(spec.describe()) + ", streamed " +
                        quoted(view.describe()));
  }
  if (Status memory = checkMemory(index, view); !memory.ok()) {
    return memory;
  }
  return spec.dtype == view.dtype ? Status() : checkDtype(index, view);
}

Status ManifestChecker::checkDtype(std::size_t index, const TensorView& view) {
  const TensorSpec& spec = manifest_.tensors[index];
  const auto count = elementCount(view.shape);
  const std::string both = "declared " + quoted(spec.describe()) + " (" +
                           bytesText(count, spec.dtype) + "), streamed " + quoted(view.describe()) +
                           " (" + bytesText(count, view.dtype) + ")";
  if (policy_ == DtypeMismatch::kRefuse) {
    return mismatch(index,
                    "differs in dtype: " + both +
                        "; push.dtype_mismatch is refuse, so declare what is streamed or set cast");
  }
  if (!isCastable(spec.dtype) || !isCastable(view.dtype)) {
    return mismatch(index,
                    "differs in dtype: " + both +
                        "; only float64, float32, float16 and bfloat16 are cast to each other");
  }
  casts_ += 1;
  if (castNote_.empty()) {
    castNote_ = "tensor " + std::to_string(index) + " is cast: " + both;
  }
  return {};
}

Status ManifestChecker::nameFault(std::size_t index, const TensorView& view) const {
  const TensorSpec& expected = manifest_.tensors[index];
  const std::string both =
      "declared " + quoted(expected.describe()) + " here, streamed " + quoted(view.describe());
  const auto declared =
      std::find_if(manifest_.tensors.begin(), manifest_.tensors.end(), [&](const TensorSpec& spec) {
        return spec.name == view.name;
      });
  if (declared == manifest_.tensors.end()) {
    return mismatch(index, "is extra: " + both + ", which the manifest does not declare");
  }
  const auto place = static_cast<std::size_t>(declared - manifest_.tensors.begin());
  const std::string where = ", which is declared as tensor " + std::to_string(place);
  if (place < index) {
    return mismatch(index, "is out of order or extra: " + both + where + " and was due before");
  }
  return mismatch(index,
                  "is out of order, or " + quoted(expected.name) + " is missing: " + both + where);
}

Status ManifestChecker::end(std::size_t seen) const {
  const std::size_t declared = manifest_.tensors.size();
  if (seen < declared) {
    return {Code::kDataMismatch,
            "the pass ended after " + std::to_string(seen) + " of " + std::to_string(declared) +
                " declared tensors: tensor " + std::to_string(seen) + " " +
                quoted(manifest_.tensors[seen].describe()) + " is missing"};
  }
  if (seen > declared) {
    return {Code::kDataMismatch,
            "the pass yielded " + std::to_string(seen - declared) + " extra tensors: " +
                std::to_string(declared) + " are declared, " + std::to_string(seen) + " came"};
  }
  return {};
}

}  // namespace pushrod::transports
