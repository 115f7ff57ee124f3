// SPDX-License-Identifier: Apache-2.0
// The module pushrod._core: what python/pushrod builds on. Its names are no interface for users.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <utility>

#include "python/src/coordinator_object.h"
#include "python/src/finalizing.h"
#include "python/src/python_source.h"

namespace pushrod::python {

namespace nb = nanobind;

namespace {

/// None as null.
nb::object given(nb::handle object) {
  return object.is_none() ? nb::object() : nb::borrow(object);
}

template <typename T>
T valueOf(Result<T> result) {
  if (!result.ok()) {
    throw StatusError(result.status());
  }
  return std::move(*result);
}

Config loadConfig(const std::string& path) {
  const nb::gil_scoped_release released;
  return valueOf(Config::load(path));
}

Config parseConfig(const std::string& text, const std::string& name) {
  return valueOf(Config::parse(text, name));
}

nb::object objectOr(const nb::object& object) {
  return object.is_valid() ? object : nb::none();
}

/// The answer is put into `answers` and not returned: a signal that came during the push raises as
/// soon as this function returns, and would take it along.
void push(CoordinatorObject& self,
          const std::string& version,
          nb::handle weights,
          nb::handle manifest,
          nb::handle draft,
          nb::handle abort,
          nb::handle recover,
          nb::handle progress,
          bool watchInterrupt,
          nb::list answers) {
  PushArguments arguments;
  arguments.version = version;
  arguments.source = {nb::borrow(weights), given(manifest), given(recover), !abort.is_none()};
  if (!draft.is_none()) {
    arguments.draft = {nb::borrow(draft), {}, given(recover), !abort.is_none()};
  }
  arguments.abort = given(abort);
  arguments.progress = given(progress);
  arguments.watchInterrupt = watchInterrupt;
  const PushAnswer answer = self.push(std::move(arguments));
  answers.append(nb::make_tuple(answer.report,
                                answer.summary,
                                answer.outcome,
                                answer.code,
                                answer.message,
                                objectOr(answer.error)));
}

/// Reads a whole pass as a push without a manifest does: (name, dtype, shape) each.
nb::list readManifest(nb::handle weights) {
  PythonSource source({nb::borrow(weights), {}, {}, false}, nullptr, nullptr);
  const Result<Manifest> manifest = source.manifest();
  if (!manifest.ok()) {
    if (source.error().is_valid()) {
      PyErr_SetObject(source.error().type().ptr(), source.error().ptr());
      nb::raise_python_error();
    }
    throw StatusError(manifest.status());
  }
  nb::list list;
  for (const TensorSpec& spec : manifest->tensors) {
    nb::list shape;
    for (const std::int64_t extent : spec.shape) {
      shape.append(extent);
    }
    list.append(nb::make_tuple(spec.name, std::string(dtypeName(spec.dtype)), nb::tuple(shape)));
  }
  return list;
}

void bindConfig(nb::module_& module) {
  nb::class_<Config>(module, "Config")
      .def_static("load", &loadConfig, nb::arg("path"))
      .def_static("parse", &parseConfig, nb::arg("text"), nb::arg("name"))
      .def("effective", &Config::effective)
      .def_prop_ro("job", [](const Config& config) { return config.job; })
      .def_prop_ro("store", [](const Config& config) { return config.ranks.store; })
      .def_prop_ro("gather_seconds", [](const Config& config) {
        return std::chrono::duration<double>(config.timeouts.gather).count();
      });
}

void bindCoordinator(nb::module_& module) {
  nb::class_<CoordinatorObject>(module, "Coordinator")
      .def(
          "__init__",
          [](CoordinatorObject* self,
             const Config& config,
             std::optional<int> rank,
             std::optional<int> worldSize,
             std::optional<int> localRank,
             std::optional<std::string> store,
             std::string flightRecord,
             nb::object log) {
            new (self) CoordinatorObject(config,
                                         {rank,
                                          worldSize,
                                          localRank,
                                          std::move(store),
                                          std::move(flightRecord),
                                          std::move(log)});
          },
          nb::arg("config"),
          nb::arg("rank").none(),
          nb::arg("world_size").none(),
          nb::arg("local_rank").none(),
          nb::arg("store").none(),
          nb::arg("flight_record"),
          nb::arg("log"))
      .def("connect", &CoordinatorObject::connect)
      .def("push",
           &push,
           nb::arg("version"),
           nb::arg("weights"),
           nb::arg("manifest").none(),
           nb::arg("draft_weights").none(),
           nb::arg("abort").none(),
           nb::arg("recover").none(),
           nb::arg("progress").none(),
           nb::arg("watch_interrupt"),
           nb::arg("answers"))
      .def(
          "set_engines",
          [](CoordinatorObject& self, const Config& config) {
            self.setEngines(config.engines.list);
          },
          nb::arg("config"))
      .def("cancel", &CoordinatorObject::cancel, nb::arg("reason"))
      .def("log_state", &CoordinatorObject::logState)
      .def(
          "close",
          [](CoordinatorObject& self, double limit) {
            return self.close(Duration(static_cast<std::int64_t>(limit * 1000)));
          },
          nb::arg("limit_seconds"))
      .def_prop_ro("metrics_address", &CoordinatorObject::metricsAddress)
      .def_prop_ro("rank", [](const CoordinatorObject& self) { return self.rank().rank; })
      .def_prop_ro("world_size", [](const CoordinatorObject& self) { return self.rank().size; });
}

/// pushrod._core.StatusError(code, message).
void bindStatusError(nb::module_& module) {
  // One per process and for its whole life, as the module itself.
  static PyObject* const kType =
      PyErr_NewException("pushrod._core.StatusError", PyExc_Exception, nullptr);
  if (kType == nullptr) {
    nb::raise_python_error();
  }
  module.attr("StatusError") = nb::borrow(kType);
  nb::register_exception_translator([](const std::exception_ptr& thrown, void* /*payload*/) {
    try {
      std::rethrow_exception(thrown);
    } catch (const StatusError& error) {
      const nb::tuple arguments =
          nb::make_tuple(std::string(codeName(error.status().code())), error.status().message());
      PyErr_SetObject(kType, arguments.ptr());
    }
  });
}

}  // namespace
}  // namespace pushrod::python

NB_MODULE(_core, module) {
  module.attr("__version__") = PUSHROD_VERSION;
  pushrod::python::bindStatusError(module);
  pushrod::python::bindConfig(module);
  pushrod::python::bindCoordinator(module);
  module.def("read_manifest", &pushrod::python::readManifest, nanobind::arg("weights"));
  module.def("set_finalizing", &pushrod::python::setFinalizing);
}
