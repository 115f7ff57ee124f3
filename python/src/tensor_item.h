// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <string>
#include <unordered_map>
#include <vector>

#include <pushrod/result.h>
#include <pushrod/tensor.h>

namespace pushrod::python {

/// One (name, tensor) of a weight source: the view, and what keeps its memory and name alive.
/// Handled with the GIL held.
struct TensorItem {
  nanobind::object name;
  nanobind::object owner;
  nanobind::ndarray<nanobind::ro> exported;  ///< for what was read by DLPack
  TensorView view;
};

/// Reads what a weight source yields: torch tensors by pointer, numpy arrays, and whatever speaks
/// DLPack. Memory is never copied but for numpy arrays whose strides are no multiple of their item
/// size. Made and used with the GIL held. A failed call into Python leaves as
/// nanobind::python_error.
class ItemReader {
 public:
  /// Looks at which frameworks the process has imported.
  ItemReader();

  [[nodiscard]] Result<TensorItem> read(nanobind::handle item);

 private:
  Status readTorch(nanobind::handle tensor, TensorItem& item);
  Status readTorchPlace(nanobind::handle tensor, TensorItem& item);
  Status readNumpy(nanobind::handle array, TensorItem& item);
  Status readDlpack(nanobind::handle object, TensorItem& item);
  /// By the dtype object's identity: frameworks have one object per type.
  Result<DType> dtypeOf(nanobind::handle dtype, const std::string& name, const TensorItem& item);

  nanobind::object tensor_, dtensor_, strided_, array_;  ///< null: not imported
  std::unordered_map<PyObject*, DType> dtypes_;
  std::vector<nanobind::object> kept_;  ///< the keys of dtypes_
};

}  // namespace pushrod::python
