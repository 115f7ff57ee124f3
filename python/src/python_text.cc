// SPDX-License-Identifier: Apache-2.0
#include "python/src/python_text.h"

#include <nanobind/stl/string.h>

namespace pushrod::python {

namespace nb = nanobind;

std::string typeText(nb::handle object) {
  if (object.is_none()) {
    return "None";
  }
  return "a " + nb::cast<std::string>(nb::type_name(object.type()));
}

std::string strOf(nb::handle object) {
  const nb::object text = nb::steal(PyObject_Str(object.ptr()));
  if (!text.is_valid()) {
    nb::raise_python_error();
  }
  return nb::cast<std::string>(text);
}

Result<std::string_view> textOf(nb::handle object) {
  Py_ssize_t size = 0;
  const char* text =
      PyUnicode_Check(object.ptr()) != 0 ? PyUnicode_AsUTF8AndSize(object.ptr(), &size) : nullptr;
  if (text == nullptr) {
    const bool badText = PyErr_Occurred() != nullptr;
    PyErr_Clear();
    return Status(Code::kInvalidArgument,
                  badText ? "a str that is no UTF-8 text" : typeText(object));
  }
  return std::string_view(text, static_cast<std::size_t>(size));
}

}  // namespace pushrod::python
