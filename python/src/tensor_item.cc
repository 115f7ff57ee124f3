// SPDX-License-Identifier: Apache-2.0
#include "python/src/tensor_item.h"

#include <cstdint>
#include <nanobind/stl/string.h>
#include <optional>
#include <utility>

#include "python/src/python_text.h"

namespace pushrod::python {

namespace nb = nanobind;

namespace {

Status refused(const std::string& text) {
  return Status(Code::kInvalidArgument, text, Outcome::kNotSent);
}

/// `sys.modules[module].attribute`, null when the module is not imported.
nb::object imported(const char* module, const char* attribute) {
  const nb::dict modules = nb::borrow<nb::dict>(nb::module_::import_("sys").attr("modules"));
  if (!modules.contains(module)) {
    return {};
  }
  // A module that is being imported may lack it still.
  return nb::getattr(modules[module], attribute, nb::object());
}

bool isInstance(nb::handle object, const nb::object& type) {
  return type.is_valid() && PyObject_IsInstance(object.ptr(), type.ptr()) == 1;
}

void readExtents(nb::handle tuple, std::vector<std::int64_t>& out) {
  const Py_ssize_t count = PyTuple_Size(tuple.ptr());
  if (count < 0) {
    nb::raise_python_error();
  }
  out.reserve(static_cast<std::size_t>(count));
  for (Py_ssize_t i = 0; i < count; ++i) {
    const std::int64_t extent = PyLong_AsLongLong(PyTuple_GetItem(tuple.ptr(), i));
    if (extent == -1 && PyErr_Occurred() != nullptr) {
      nb::raise_python_error();
    }
    out.push_back(extent);
  }
}

/// What Python has as a number.
void* addressOf(const nb::object& number) {
  void* const address = PyLong_AsVoidPtr(number.ptr());
  if (address == nullptr && PyErr_Occurred() != nullptr) {
    nb::raise_python_error();
  }
  return address;
}

std::string quoted(const TensorItem& item) {
  return "tensor " + std::string(item.view.name);
}

std::string dtypeList() {
  std::string text;
  for (std::size_t i = 0; i < kDTypeCount; ++i) {
    text += (i == 0 ? "" : ", ") + std::string(dtypeName(static_cast<DType>(i)));
  }
  return text;
}

Status badDtype(const TensorItem& item, const std::string& dtype) {
  return refused(quoted(item) + " has dtype " + dtype +
                 ", which cannot be sent; these go: " + dtypeList());
}

std::optional<DType> dlpackDtype(nb::dlpack::dtype type) {
  // Codes of DLPack 1.1 that nanobind has no name for.
  constexpr std::uint8_t kE4m3fn = 10;
  constexpr std::uint8_t kE5m2 = 12;
  constexpr std::uint8_t kE8m0fnu = 14;
  const auto is = [type](nb::dlpack::dtype_code code) {
    return type.code == static_cast<std::uint8_t>(code);
  };
  if (type.lanes != 1) {
    return std::nullopt;
  }
  if (is(nb::dlpack::dtype_code::Bfloat)) {
    return type.bits == 16 ? std::optional(DType::kBfloat16) : std::nullopt;
  }
  if (type.bits == 8 && (type.code == kE4m3fn || type.code == kE5m2 || type.code == kE8m0fnu)) {
    return type.code == kE4m3fn ? DType::kFloat8E4m3fn
           : type.code == kE5m2 ? DType::kFloat8E5m2
                                : DType::kFloat8E8m0fnu;
  }
  const std::string bits = std::to_string(type.bits);
  return is(nb::dlpack::dtype_code::Bool)    ? dtypeFromName("bool")
         : is(nb::dlpack::dtype_code::Int)   ? dtypeFromName("int" + bits)
         : is(nb::dlpack::dtype_code::UInt)  ? dtypeFromName("uint" + bits)
         : is(nb::dlpack::dtype_code::Float) ? dtypeFromName("float" + bits)
                                             : std::nullopt;
}

}  // namespace

ItemReader::ItemReader()
    : tensor_(imported("torch", "Tensor")),
      dtensor_(imported("torch.distributed.tensor", "DTensor")),
      strided_(imported("torch", "strided")),
      array_(imported("numpy", "ndarray")) {}

Result<TensorItem> ItemReader::read(nb::handle pair) {
  const bool isPair = (PyTuple_Check(pair.ptr()) != 0 || PyList_Check(pair.ptr()) != 0) &&
                      PySequence_Size(pair.ptr()) == 2;
  if (!isPair) {
    return refused("the weight source yielded " + typeText(pair) +
                   "; it must yield pairs of a name and a tensor");
  }
  TensorItem item;
  item.name = nb::steal(PySequence_GetItem(pair.ptr(), 0));
  item.owner = nb::steal(PySequence_GetItem(pair.ptr(), 1));
  Result<std::string_view> name = textOf(item.name);
  if (!name.ok()) {
    return refused("the weight source yielded a pair whose name is " + name.status().message());
  }
  item.view.name = *name;
  const nb::object tensor = item.owner;
  Status status;
  if (isInstance(tensor, tensor_)) {
    status = readTorch(tensor, item);
  } else if (isInstance(tensor, array_)) {
    status = readNumpy(tensor, item);
  } else if (nb::hasattr(tensor, "__dlpack__")) {
    status = readDlpack(tensor, item);
  } else {
    status = refused(quoted(item) + " is " + typeText(tensor) +
                     ", not a tensor: give a torch tensor, a numpy array or what speaks DLPack");
  }
  return status.ok() ? Result<TensorItem>(std::move(item)) : status;
}

Result<DType> ItemReader::dtypeOf(nb::handle dtype,
                                  const std::string& name,
                                  const TensorItem& item) {
  const auto known = dtypeFromName(name);
  if (!known) {
    return badDtype(item, name);
  }
  dtypes_.emplace(dtype.ptr(), *known);
  kept_.push_back(nb::borrow(dtype));
  return *known;
}

Status ItemReader::readTorch(nb::handle tensor, TensorItem& item) {
  if (isInstance(tensor, dtensor_)) {
    return refused(quoted(item) +
                   " is a DTensor, a shard of the whole: yield its full_tensor(), or use "
                   "pushrod.torch.named_weights");
  }
  if (!tensor.attr("layout").is(strided_)) {
    return refused(quoted(item) + " has the layout " + strOf(tensor.attr("layout")) +
                   "; yield it as a dense tensor");
  }
  if (nb::cast<bool>(tensor.attr("is_neg")())) {
    // Its memory holds the negated values.
    item.owner = tensor.attr("resolve_neg")();
    tensor = item.owner;
  }
  const nb::object dtype = tensor.attr("dtype");
  if (const auto found = dtypes_.find(dtype.ptr()); found != dtypes_.end()) {
    item.view.dtype = found->second;
  } else {
    const std::string text = strOf(dtype);
    const std::string prefix = "torch.";
    Result<DType> read =
        dtypeOf(dtype, text.rfind(prefix, 0) == 0 ? text.substr(prefix.size()) : text, item);
    if (!read.ok()) {
      return read.status();
    }
    item.view.dtype = *read;
  }
  readExtents(tensor.attr("shape"), item.view.shape);
  readExtents(tensor.attr("stride")(), item.view.strides);
  return readTorchPlace(tensor, item);
}

Status ItemReader::readTorchPlace(nb::handle tensor, TensorItem& item) {
  if (!nb::cast<bool>(tensor.attr("is_cpu"))) {
    const nb::object device = tensor.attr("device");
    if (!nb::cast<bool>(tensor.attr("is_cuda"))) {
      return refused(quoted(item) + " is on device " + strOf(device) +
                     "; yield it on the CPU or a CUDA device");
    }
    const nb::object stream = nb::module_::import_("torch").attr("cuda").attr("current_stream");
    item.view.device = {Device::Kind::kCuda, nb::cast<int>(device.attr("index"))};
    item.view.stream = addressOf(stream(device).attr("cuda_stream"));
  }
  item.view.data = addressOf(tensor.attr("data_ptr")());
  if (item.view.data == nullptr && elementCount(item.view.shape).value_or(1) != 0) {
    return refused(quoted(item) + " is " + typeText(tensor) +
                   " without memory of its own; yield a plain tensor");
  }
  return {};
}

Status ItemReader::readNumpy(nb::handle array, TensorItem& item) {
  const nb::object dtype = array.attr("dtype");
  if (const auto found = dtypes_.find(dtype.ptr()); found != dtypes_.end()) {
    item.view.dtype = found->second;
  } else {
    if (!nb::cast<bool>(dtype.attr("isnative"))) {
      return badDtype(item, strOf(dtype) + " of the other byte order");
    }
    Result<DType> read = dtypeOf(dtype, nb::cast<std::string>(dtype.attr("name")), item);
    if (!read.ok()) {
      return read.status();
    }
    item.view.dtype = *read;
  }
  const auto size = static_cast<std::int64_t>(itemSize(item.view.dtype));
  nb::object used = nb::borrow(array);
  readExtents(used.attr("strides"), item.view.strides);
  for (const std::int64_t stride : item.view.strides) {
    if (stride % size != 0) {
      // A field of records: no element lies a whole number of elements from the next.
      used = used.attr("copy")();
      item.owner = used;
      item.view.strides.clear();
      readExtents(used.attr("strides"), item.view.strides);
      break;
    }
  }
  for (std::int64_t& stride : item.view.strides) {
    stride /= size;
  }
  readExtents(used.attr("shape"), item.view.shape);
  const nb::object place = used.attr("__array_interface__")["data"];
  item.view.data = addressOf(place[0]);
  return {};
}

Status ItemReader::readDlpack(nb::handle object, TensorItem& item) {
  nb::ndarray<nb::ro> array;
  if (!nb::try_cast(object, array)) {
    return refused(quoted(item) + " is " + typeText(object) +
                   ", whose DLPack export could not be used");
  }
  const auto dtype = dlpackDtype(array.dtype());
  if (!dtype) {
    return badDtype(item,
                    "DLPack code " + std::to_string(array.dtype().code) + ", " +
                        std::to_string(array.dtype().bits) + " bits");
  }
  const int device = array.device_type();
  if (device != nb::device::cpu::value && device != nb::device::cuda_host::value) {
    return refused(quoted(item) + " is on DLPack device " + std::to_string(device) +
                   "; yield it in host memory");
  }
  item.view.dtype = *dtype;
  item.view.data = array.data();
  for (std::size_t i = 0; i < array.ndim(); ++i) {
    item.view.shape.push_back(static_cast<std::int64_t>(array.shape(i)));
    item.view.strides.push_back(array.stride(i));
  }
  item.exported = std::move(array);
  return {};
}

}  // namespace pushrod::python
