# SPDX-License-Identifier: Apache-2.0
"""Loads the native module, apart from torch's own Gloo.

libgloo, which ours links, and libtorch_cpu have hundreds of symbols of the same names. Python loads
modules privately (RTLD_LOCAL), and then neither sees the other's, whichever comes first. Ours is loaded
privately whatever flags the process has set, and with everything bound at once, so that later imports
change nothing. Only where Gloo's names are global already, as after importing torch with RTLD_GLOBAL,
they would win over our own: then RTLD_DEEPBIND makes ours look into its own libraries first.
"""

import ctypes
import importlib
import os
import sys
import threading
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from . import _core as core

# Of a class that every version of Gloo has: gloo::Context::~Context().
_GLOO_NAME = "_ZN4gloo7ContextD1Ev"

__all__ = ["core", "load"]

_lock = threading.Lock()


def _gloo_is_global() -> bool:
    """Whether the process's global scope has Gloo's names."""
    try:
        getattr(ctypes.CDLL(None), _GLOO_NAME)
    except AttributeError:
        return False
    return True


def load(name: str) -> ModuleType:
    """Imports a native module of this package in a scope of its own."""
    flags = os.RTLD_NOW | os.RTLD_LOCAL
    if _gloo_is_global():
        flags |= os.RTLD_DEEPBIND
    with _lock:
        before = sys.getdlopenflags()
        sys.setdlopenflags(flags)
        try:
            return importlib.import_module(name)
        finally:
            sys.setdlopenflags(before)


if not TYPE_CHECKING:
    core = load("pushrod._core")
