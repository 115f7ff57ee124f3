# SPDX-License-Identifier: Apache-2.0
"""Pushes the weights of an RL training job into its inference engines."""

from ._core import __version__

__all__ = ["__version__"]
