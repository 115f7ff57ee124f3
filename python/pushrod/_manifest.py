# SPDX-License-Identifier: Apache-2.0
"""What a push declares."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from ._errors import RefusedError
from ._native import core

Weights = Callable[[], Iterable[tuple[str, Any]]]


def dtype_text(dtype: object) -> str:
    """The name that engines use, from a text, a torch dtype or what numpy takes for one."""
    if isinstance(dtype, str):
        return dtype.removeprefix("torch.")
    name = getattr(dtype, "__name__", None) or getattr(dtype, "name", None)
    return name if isinstance(name, str) else str(dtype).removeprefix("torch.")


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """One tensor of a manifest: its checkpoint name, its dtype (a text such as "bfloat16", or a torch or
    numpy dtype), its full shape, and the rank that sends it."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    owner: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", dtype_text(self.dtype))
        object.__setattr__(self, "shape", tuple(int(extent) for extent in self.shape))


def manifest_of(weights: Weights) -> list[TensorSpec]:
    """Runs one pass and tells what it yields. A collective, if iterating `weights` is one. A trainer that
    cannot tell its tensors otherwise may do this once and give the result to every push."""
    try:
        found = core.read_manifest(weights)
    except core.StatusError as error:
        code, message = error.args
        raise RefusedError(message, code) from None
    return [TensorSpec(name, dtype, shape) for name, dtype, shape in found]
