// SPDX-License-Identifier: Apache-2.0
#include "python/src/python_source.h"

#include <nanobind/stl/string.h>
#include <stdexcept>
#include <utility>

#include "python/src/finalizing.h"
#include "python/src/python_text.h"

namespace pushrod::python {

namespace nb = nanobind;

namespace {

Status interpreterEnds() {
  return Status(Code::kCancelled, "the Python interpreter ends");
}

}  // namespace

PythonSource::PythonSource(SourceHooks hooks, std::shared_ptr<const Manifest> known, Outbox* outbox)
    : hooks_(std::move(hooks)), known_(std::move(known)), outbox_(outbox) {}

PythonSource::~PythonSource() = default;

Status PythonSource::caught(nb::python_error& error, const char* where) {
  const nb::object value = nb::borrow(error.value());
  if (!error_.is_valid()) {
    error_ = value;
  }
  std::string text;
  try {
    text = nb::cast<std::string>(nb::module_::import_("pushrod._failure").attr("one_line")(value));
  } catch (const nb::python_error& second) {
    text = typeText(value);
  }
  const bool ordered = error.matches(PyExc_KeyboardInterrupt) || error.matches(PyExc_SystemExit);
  return Status(ordered ? Code::kCancelled : Code::kInternal,
                std::string(where) + " raised " + text);
}

void PythonSource::closePass() {
  item_ = TensorItem();
  const nb::object iterator = std::exchange(iterator_, nb::object());
  if (!iterator.is_valid() || !nb::hasattr(iterator, "close")) {
    return;
  }
  try {
    iterator.attr("close")();
  } catch (nb::python_error& error) {
    error.discard_as_unraisable("closing the weights' generator");
  }
}

Status PythonSource::beginPass() {
  try {
    closePass();
    reader_.emplace();
    iterator_ = nb::steal(PyObject_GetIter(hooks_.weights().ptr()));
    if (!iterator_.is_valid()) {
      nb::raise_python_error();
    }
  } catch (nb::python_error& error) {
    return caught(error, "weights()");
  }
  return {};
}

Result<std::optional<TensorView>> PythonSource::nextItem() {
  try {
    item_ = TensorItem();
    const nb::object yielded = nb::steal(PyIter_Next(iterator_.ptr()));
    if (!yielded.is_valid()) {
      if (PyErr_Occurred() != nullptr) {
        nb::raise_python_error();
      }
      return std::optional<TensorView>();
    }
    Result<TensorItem> item = reader_->read(yielded);
    if (!item.ok()) {
      return item.status();
    }
    item_ = std::move(*item);
    return std::optional(item_.view);
  } catch (nb::python_error& error) {
    return caught(error, "the weights' iterator");
  }
}

Result<Manifest> PythonSource::readManifest() {
  if (hooks_.manifest.is_valid()) {
    try {
      return manifestFrom(hooks_.manifest);
    } catch (nb::python_error& error) {
      return caught(error, "manifest");
    }
  }
  Manifest manifest;
  Status status = beginPass();
  while (status.ok()) {
    Result<std::optional<TensorView>> next = nextItem();
    if (!next.ok()) {
      status = next.status();
    } else if (!next->has_value()) {
      closePass();
      return manifest;
    } else {
      const TensorView& view = **next;
      manifest.tensors.push_back({std::string(view.name), view.dtype, view.shape, 0});
    }
  }
  closePass();
  return status.prefixed("reading the manifest");
}

Result<Manifest> PythonSource::manifest() {
  if (known_ != nullptr) {
    declared_ = known_;
    return *known_;
  }
  if (isFinalizing()) {
    return interpreterEnds();
  }
  const nb::gil_scoped_acquire gil;
  Result<Manifest> read = readManifest();
  if (read.ok()) {
    declared_ = std::make_shared<const Manifest>(*read);
  }
  return read;
}

Status PythonSource::begin() {
  if (isFinalizing()) {
    return interpreterEnds();
  }
  const nb::gil_scoped_acquire gil;
  return beginPass();
}

Result<std::optional<TensorView>> PythonSource::next() {
  if (isFinalizing()) {
    return interpreterEnds();
  }
  const nb::gil_scoped_acquire gil;
  return nextItem();
}

bool PythonSource::abort() noexcept {
  if (!hooks_.abortable || outbox_ == nullptr) {
    return false;
  }
  try {
    Message message;
    message.kind = Message::Kind::kAbort;
    outbox_->post(std::move(message));
  } catch (const std::exception& error) {
    return false;  // no memory; the driver asks again
  }
  return true;
}

bool PythonSource::recover() {
  if (!hooks_.recover.is_valid() || isFinalizing()) {
    return false;
  }
  const nb::gil_scoped_acquire gil;
  closePass();
  try {
    return nb::cast<bool>(nb::borrow(nb::bool_(hooks_.recover())));
  } catch (nb::python_error& error) {
    throw std::runtime_error(caught(error, "recover()").message());
  }
}

Result<Manifest> manifestFrom(nb::handle specs) {
  Manifest manifest;
  for (const nb::handle spec : nb::iter(specs)) {
    TensorSpec read;
    const nb::object name = spec.attr("name");
    const nb::object dtype = spec.attr("dtype");
    const Result<std::string_view> nameText = textOf(name);
    const Result<std::string_view> dtypeText = textOf(dtype);
    if (!nameText.ok() || !dtypeText.ok()) {
      return Status(Code::kInvalidArgument,
                    "the manifest's entry " + std::to_string(manifest.tensors.size()) + " has " +
                        (nameText.ok() ? "the dtype " + dtypeText.status().message()
                                       : "the name " + nameText.status().message()));
    }
    const auto known = dtypeFromName(*dtypeText);
    if (!known) {
      return Status(Code::kInvalidArgument,
                    "the manifest declares " + std::string(*nameText) + " as " +
                        std::string(*dtypeText) + ", which cannot be sent");
    }
    read.name = *nameText;
    read.dtype = *known;
    for (const nb::handle extent : nb::iter(spec.attr("shape"))) {
      read.shape.push_back(nb::cast<std::int64_t>(extent));
    }
    read.owner = nb::cast<int>(spec.attr("owner"));
    manifest.tensors.push_back(std::move(read));
  }
  return manifest;
}

}  // namespace pushrod::python
