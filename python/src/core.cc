// SPDX-License-Identifier: Apache-2.0
// The module pushrod._core: what python/pushrod builds on. Its names are no interface for users.
#include <nanobind/nanobind.h>

#include <pushrod/pushrod.h>

NB_MODULE(_core, module) {
  module.attr("__version__") = PUSHROD_VERSION;
}
