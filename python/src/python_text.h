// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>
#include <string>
#include <string_view>

#include <pushrod/result.h>

namespace pushrod::python {

/// "a list", "None": what an object is, for messages. GIL.
[[nodiscard]] std::string typeText(nanobind::handle object);

/// str(object). GIL.
[[nodiscard]] std::string strOf(nanobind::handle object);

/// The UTF-8 text of a str, valid while the object lives; else a failure that names what it is
/// instead. GIL.
[[nodiscard]] Result<std::string_view> textOf(nanobind::handle object);

}  // namespace pushrod::python
