# SPDX-License-Identifier: Apache-2.0
"""Pushes the weights of an RL training job into its inference engines.

    with pushrod.Coordinator("push.yaml") as coordinator:
        report = coordinator.push(version="7", weights=lambda: named_weights(model))

Every rank of the job makes a coordinator and calls the same functions in the same order.
"""

from ._coordinator import Coordinator
from ._errors import ConfigError, Error, PushError, RefusedError
from ._manifest import TensorSpec, manifest_of
from ._native import core
from ._report import Cause, EngineReport, Progress, Report

__version__: str = core.__version__

__all__ = [
    "Cause",
    "ConfigError",
    "Coordinator",
    "EngineReport",
    "Error",
    "Progress",
    "PushError",
    "RefusedError",
    "Report",
    "TensorSpec",
    "__version__",
    "manifest_of",
]
