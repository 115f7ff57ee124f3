// SPDX-License-Identifier: Apache-2.0
// The module pushrod._receiver: the receiving ends of tcp and shm for the vLLM plug-in. What blocks
// does so without the interpreter's lock, and looks for signals.
#include <cstdint>
#include <memory>
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <stdexcept>
#include <string>
#include <utility>

#include <boost/json/parse.hpp>

#include "common/host_id.h"
#include "engines/receiver/shm_receiver.h"
#include "python/src/receiver_link.h"

namespace nb = nanobind;

namespace pushrod::python {
namespace {

using engines::receiver::checkShmInit;
using engines::receiver::ShmUpdate;
using engines::receiver::TcpInit;
using engines::receiver::TcpUpdate;

/// What the caller gave is a ValueError, all other failures are a RuntimeError.
[[noreturn]] void raise(const Status& status) {
  if (status.code() == Code::kInvalidArgument) {
    throw nb::value_error(status.message().c_str());
  }
  throw std::runtime_error(status.message());
}

template <typename T>
T valueOf(Result<T> result) {
  if (!result.ok()) {
    raise(result.error());
  }
  return std::move(*result);
}

boost::json::value parsed(const std::string& text) {
  boost::json::error_code error;
  boost::json::value value = boost::json::parse(text, error);
  if (error) {
    throw nb::value_error(("the info is no JSON: " + error.message()).c_str());
  }
  return value;
}

/// Whether a Python signal handler wants to end the wait; its exception is then set.
bool signalled() {
  const nb::gil_scoped_acquire held;
  return PyErr_CheckSignals() != 0;
}

/// After a wait that signalled() has ended the handler's exception goes on.
void raiseUnlessOk(const Status& status) {
  if (PyErr_Occurred() != nullptr) {
    throw nb::python_error();
  }
  if (!status.ok()) {
    raise(status);
  }
}

nb::object tupleOf(const Shape& numbers) {
  nb::object tuple = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(numbers.size())));
  for (std::size_t i = 0; tuple.is_valid() && i < numbers.size(); ++i) {
    // Takes the number over.
    PyTuple_SetItem(tuple.ptr(), static_cast<Py_ssize_t>(i), PyLong_FromLongLong(numbers[i]));
  }
  return tuple;
}

Shape contiguousStrides(const Shape& shape) {
  Shape strides(shape.size());
  std::int64_t stride = 1;
  for (std::size_t i = shape.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= shape[i];
  }
  return strides;
}

/// A chunk as Python sees it: a buffer of bytes, and what stands where in it.
class PyChunk {
 public:
  explicit PyChunk(std::shared_ptr<Chunk> chunk) : chunk_(std::move(chunk)) {}

  /// (name, dtype, shape, strides in elements, place of the first element) of each tensor; the
  /// strides of a tensor without elements are empty.
  [[nodiscard]] nb::list tensors() const {
    nb::list list;
    for (const Chunk::Tensor& tensor : chunk_->tensors()) {
      const Shape& shape = tensor.spec.shape;
      const bool empty = elementCount(shape).value_or(0) == 0;
      const std::string_view dtype = dtypeName(tensor.spec.dtype);
      list.append(nb::make_tuple(tensor.spec.name,
                                 nb::str(dtype.data(), dtype.size()),
                                 tupleOf(shape),
                                 tupleOf(empty ? Shape() : contiguousStrides(shape)),
                                 tensor.offset / itemSize(tensor.spec.dtype)));
    }
    return list;
  }

  [[nodiscard]] std::size_t size() const { return chunk_->size(); }

  [[nodiscard]] std::uint8_t* data() const { return chunk_->data(); }

 private:
  std::shared_ptr<Chunk> chunk_;
};

int chunkBuffer(PyObject* self, Py_buffer* view, int flags) {
  const auto& chunk = *nb::inst_ptr<PyChunk>(self);
  return PyBuffer_FillInfo(
      view, self, chunk.data(), static_cast<Py_ssize_t>(chunk.size()), /*readonly=*/0, flags);
}

PyType_Slot chunkSlots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(&chunkBuffer)}, {0, nullptr}};

/// The chunks of one update, in order.
class PyUpdate {
 public:
  PyUpdate(std::shared_ptr<Link> link, TcpUpdate update)
      : reader_(std::make_unique<UpdateReader>(std::move(link), std::move(update))) {}

  PyUpdate(PyUpdate&&) = default;
  PyUpdate& operator=(PyUpdate&&) = default;
  PyUpdate(const PyUpdate&) = delete;
  PyUpdate& operator=(const PyUpdate&) = delete;

  ~PyUpdate() { close(); }

  /// Gives up what has not ended. Whoever raised in the loader must call it: a traceback would keep
  /// the connections open.
  void close() {
    if (reader_ != nullptr) {
      reading_ = reader_->reading().count();
      const nb::gil_scoped_release released;
      reader_.reset();
    }
  }

  PyChunk next() {
    if (reader_ == nullptr) {
      throw std::runtime_error("the update is closed");
    }
    Result<std::shared_ptr<Chunk>> got = std::shared_ptr<Chunk>();
    {
      const nb::gil_scoped_release released;
      got = reader_->next(&signalled);
    }
    raiseUnlessOk(got.status());
    if (*got == nullptr) {
      throw nb::stop_iteration();
    }
    return PyChunk(std::move(*got));
  }

  /// Seconds of reading; once it has ended.
  [[nodiscard]] double reading() const {
    return reader_ == nullptr ? reading_ : reader_->reading().count();
  }

 private:
  std::unique_ptr<UpdateReader> reader_;
  double reading_ = 0;
};

class PyTcpReceiver {
 public:
  void join(const std::string& info, std::int64_t place) {
    link_.reset();
    const TcpInit init = valueOf(TcpInit::parse(parsed(info)));
    const std::int64_t rank = init.rankOffset + place;
    if (rank < 0 || rank > UINT32_MAX) {
      throw nb::value_error(("worker rank " + std::to_string(rank) + " is out of range").c_str());
    }
    auto link = std::make_shared<Link>();
    Status joined;
    {
      const nb::gil_scoped_release released;
      joined = joinSources(*link, init, static_cast<std::uint32_t>(rank), &signalled);
    }
    raiseUnlessOk(joined);
    link_ = std::move(link);
  }

  PyUpdate update(const std::string& info) {
    TcpUpdate update = valueOf(TcpUpdate::parse(parsed(info)));
    if (!joined()) {
      throw std::runtime_error(
          "TCP weight transfer not initialized. Call init_transfer_engine() first.");
    }
    return {link_, std::move(update)};
  }

  [[nodiscard]] bool joined() const {
    return link_ != nullptr && link_->receiver.connections() > 0;
  }

  void close() { link_.reset(); }

 private:
  std::shared_ptr<Link> link_;
};

class PyShmReceiver {
 public:
  explicit PyShmReceiver(const std::string& hostId)
      : receiver_(stop_, hostId.empty() ? common::bootId() : hostId) {}

  void open(const std::string& info) {
    receiver_.close();
    if (Status sound = checkShmInit(parsed(info)); !sound.ok()) {
      raise(sound);
    }
    receiver_.open();
  }

  PyChunk receive(const std::string& info) {
    const ShmUpdate update = valueOf(ShmUpdate::parse(parsed(info)));
    if (!receiver_.opened()) {
      throw std::runtime_error(
          "SHM weight transfer not initialized. Call init_transfer_engine() first.");
    }
    std::shared_ptr<Chunk> taken;
    ChunkSink sink([] { return Status(); },
                   [&taken](std::shared_ptr<Chunk> chunk) { taken = std::move(chunk); });
    Status received;
    {
      const nb::gil_scoped_release released;
      received = receiver_.receive(update, sink);
    }
    if (!received.ok()) {
      raise(received);
    }
    return PyChunk(std::move(taken));
  }

  void beginSession() { receiver_.beginSession(); }

  void close() { receiver_.close(); }

 private:
  engines::receiver::StopSignal stop_;
  engines::receiver::ShmReceiver receiver_;
};

void bind(nb::module_& module) {
  module.doc() = "The receiving ends of the transports tcp and shm.";
  nb::class_<PyChunk>(module, "Chunk", nb::type_slots(chunkSlots))
      .def_prop_ro("tensors", &PyChunk::tensors)
      .def("__len__", &PyChunk::size);
  nb::class_<PyUpdate>(module, "TcpUpdate")
      .def("__iter__", [](nb::handle self) { return nb::borrow(self); })
      .def("__next__", &PyUpdate::next)
      .def("close", &PyUpdate::close)
      .def_prop_ro("reading", &PyUpdate::reading);
  nb::class_<PyTcpReceiver>(module, "TcpReceiver")
      .def(nb::init<>())
      .def("join", &PyTcpReceiver::join, nb::arg("info"), nb::arg("place"))
      .def("update", &PyTcpReceiver::update, nb::arg("info"))
      .def("close", &PyTcpReceiver::close)
      .def_prop_ro("joined", &PyTcpReceiver::joined);
  nb::class_<PyShmReceiver>(module, "ShmReceiver")
      .def(nb::init<const std::string&>(), nb::arg("host_id") = "")
      .def("open", &PyShmReceiver::open, nb::arg("info"))
      .def("begin_session", &PyShmReceiver::beginSession)
      .def("receive", &PyShmReceiver::receive, nb::arg("info"))
      .def("close", &PyShmReceiver::close);
}

}  // namespace
}  // namespace pushrod::python

NB_MODULE(_receiver, module) {
  pushrod::python::bind(module);
}
