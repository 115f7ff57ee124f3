// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <memory>
#include <nanobind/nanobind.h>
#include <optional>
#include <string>

#include <pushrod/weight_source.h>

#include "python/src/outbox.h"
#include "python/src/tensor_item.h"

namespace pushrod::python {

/// A trainer's functions, null where it gave none.
struct SourceHooks {
  nanobind::object weights;
  nanobind::object manifest;  ///< a sequence of TensorSpec
  nanobind::object recover;
  bool abortable = false;  ///< the outbox knows what kAbort does
};

/// A weight source written in Python. Takes the GIL inside its calls and holds it for no wait of
/// Pushrod's. Made and destroyed with the GIL held.
class PythonSource final : public WeightSource {
 public:
  /// `known`: the manifest of an earlier push, null for none. `outbox` outlives the source; null
  /// where nobody aborts.
  PythonSource(SourceHooks hooks, std::shared_ptr<const Manifest> known, Outbox* outbox);
  ~PythonSource() override;

  Result<Manifest> manifest() override;
  Status begin() override;
  Result<std::optional<TensorView>> next() override;
  bool abort() noexcept override;
  bool recover() override;

  /// Ends the pass under way, so that the generator's own clean-up runs. GIL.
  void closePass();

  /// The first exception that left the trainer's functions, null for none. GIL.
  [[nodiscard]] nanobind::object error() const { return error_; }

  /// What the last manifest() gave; null before.
  [[nodiscard]] std::shared_ptr<const Manifest> declared() const { return declared_; }

 private:
  Status beginPass();
  Result<std::optional<TensorView>> nextItem();
  Result<Manifest> readManifest();
  /// Keeps the exception and says it in one line, innermost frame first.
  Status caught(nanobind::python_error& error, const char* where);

  SourceHooks hooks_;
  std::shared_ptr<const Manifest> known_, declared_;
  Outbox* outbox_;
  std::optional<ItemReader> reader_;
  nanobind::object iterator_;
  TensorItem item_;
  nanobind::object error_;
};

/// A list of TensorSpec as a manifest. GIL; a failed call into Python leaves as python_error.
[[nodiscard]] Result<Manifest> manifestFrom(nanobind::handle specs);

}  // namespace pushrod::python
