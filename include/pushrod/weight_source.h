// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include <pushrod/result.h>
#include <pushrod/tensor.h>

namespace pushrod {

/// The trainer's side of a push: yields the full, unsharded tensors in manifest order, on every
/// rank, since iterating is a collective of the trainer's own (each tensor is gathered together).
/// One pass is begin() and then next() until nullopt; a resend begins another pass.
///
/// Every function but abort() is called on the thread that called PushCoordinator::push, never two
/// at once. The object must outlive the push. Implementations report failures as a Status; an
/// exception that leaves one of these functions is caught and becomes `internal` with its text.
class WeightSource {
 public:
  WeightSource() = default;
  WeightSource(const WeightSource&) = delete;
  WeightSource& operator=(const WeightSource&) = delete;
  virtual ~WeightSource() = default;

  /// What every pass will yield; may be a collective. Called once per push, bounded by
  /// timeouts.gather.
  virtual Result<Manifest> manifest() = 0;
  /// Starts a pass. The first one of a push must work whatever an earlier push of the job came to:
  /// recover() is only called between the two passes of one push.
  virtual Status begin() = 0;
  /// The next tensor, or nullopt at the end of the pass. The view stays valid until the following
  /// call on this object.
  virtual Result<std::optional<TensorView>> next() = 0;

  /// Ends a next() or manifest() that is blocked in a collective. Called from another thread.
  /// Returns whether it can; a source that cannot is waited for until timeouts.gather.
  virtual bool abort() noexcept { return false; }

  /// After an abort or a failed pass: makes the trainer's own groups usable again, a collective.
  /// Returns whether a further pass is possible. Not called after a pass that no gather failed in.
  virtual bool recover() { return false; }
};

}  // namespace pushrod
