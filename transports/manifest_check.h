// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <pushrod/config.h>
#include <pushrod/tensor.h>

namespace pushrod::transports {

/// Compares what a pass yields with the manifest, tensor by tensor, before any byte is sent
/// (ruling P4). One object per pass; not thread-safe. The manifest must outlive it.
class ManifestChecker {
 public:
  ManifestChecker(const Manifest& manifest, DtypeMismatch policy)
      : manifest_(manifest), policy_(policy) {}

  /// Checks the `index`-th tensor of the pass: name, order, dtype, shape, strides and memory. A
  /// failure (dataMismatch) names this tensor and holds both descriptions.
  Status check(std::size_t index, const TensorView& view);
  /// Checks that the pass, which yielded `seen` tensors, was complete.
  [[nodiscard]] Status end(std::size_t seen) const;

  /// Tensors found so far that need a cast.
  [[nodiscard]] std::uint64_t casts() const { return casts_; }

  /// One sentence on the first tensor that needs a cast; empty when none did.
  [[nodiscard]] const std::string& castNote() const { return castNote_; }

 private:
  [[nodiscard]] Status nameFault(std::size_t index, const TensorView& view) const;
  Status checkDtype(std::size_t index, const TensorView& view);

  const Manifest& manifest_;
  DtypeMismatch policy_;
  std::uint64_t casts_ = 0;
  std::string castNote_;
};

/// Refuses (invalidArgument) an empty manifest, an empty, repeated or not UTF-8 name, a bad shape
/// and a size that does not fit.
Status validateManifest(const Manifest& manifest);

/// The canonical text of a manifest, equal exactly for equal manifests: for digests and for sharing
/// it between ranks.
[[nodiscard]] std::string manifestText(const Manifest& manifest);
/// The inverse of manifestText; dataMismatch with the place for any other text.
[[nodiscard]] Result<Manifest> parseManifestText(std::string_view text);

/// One clause naming the first tensor in which this rank's manifest differs from rank 0's, with
/// both descriptions; empty when they are equal.
[[nodiscard]] std::string firstManifestDifference(const Manifest& mine, const Manifest& rank0);

/// Applies `push.dtypes`: `default` to every tensor of a castable type, and over it the pattern (*
/// and ?) that fits a name, the longest if several do. An override is applied to any type; one that
/// cannot be cast is then refused by the check of the pass.
[[nodiscard]] Manifest declareDtypes(Manifest manifest, const DtypesConfig& dtypes);

}  // namespace pushrod::transports
