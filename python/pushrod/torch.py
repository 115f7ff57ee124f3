# SPDX-License-Identifier: Apache-2.0
"""Weights of torch modules under the names that checkpoints have.

With `manifest = pushrod.torch.manifest(model)`, a push is
`coordinator.push("7", weights=lambda: pushrod.torch.named_weights(model), manifest=manifest)`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch

from ._manifest import TensorSpec, dtype_text

Rename = Callable[[str], str | None]

# Parts of a parameter's path that wrappers add: torch.compile, activation checkpointing.
_WRAPPER_PARTS = frozenset({"_orig_mod", "_checkpoint_wrapped_module"})
# Classes that keep what they wrap under the name `module`: torch's, Megatron's, DeepSpeed's.
_WRAPPER_CLASSES = frozenset({"DataParallel", "DistributedDataParallel", "Float16Module", "DeepSpeedEngine"})
_LORA_PARTS = ("lora_", "original_module", "ranknum")


def _entries(module: torch.nn.Module, prefix: str = "") -> Iterator[tuple[str, torch.Tensor]]:
    """Parameters and persistent buffers, in the module's own order, without wrappers in their names."""
    for name, parameter in module._parameters.items():
        if name == "_flat_param":
            raise TypeError("FSDP1 keeps flat shards without names: use FSDP2 (fully_shard)")
        if parameter is not None:
            yield prefix + name, parameter
    for name, buffer in module._buffers.items():
        if buffer is not None and name not in module._non_persistent_buffers_set:
            yield prefix + name, buffer
    for name, child in module._modules.items():
        if child is None:
            continue
        wraps = name == "module" and type(module).__name__ in _WRAPPER_CLASSES
        skip = wraps or name in _WRAPPER_PARTS or name == "_fsdp_wrapped_module"
        yield from _entries(child, prefix if skip else f"{prefix}{name}.")


def _peft_name(name: str) -> str | None:
    """A name of a PEFT model as the base model has it; None for what only the adapter has."""
    parts = name.split(".")
    if any(part.startswith(_LORA_PARTS) for part in parts):
        return None
    kept = [
        part
        for before, part in zip(["", *parts], parts, strict=False)
        # What follows modules_to_save is the adapter's own name.
        if part not in ("base_layer", "modules_to_save") and before != "modules_to_save"
    ]
    return ".".join(kept).removeprefix("base_model.model.")


def _named(module: torch.nn.Module, rename: Rename | None) -> Iterator[tuple[str, torch.Tensor]]:
    """Every tensor once: of tied ones the first, as checkpoints have them."""
    is_peft = any(hasattr(each, "peft_config") for each in module.modules())
    seen: set[int] = set()
    for name, tensor in _entries(module):
        used: str | None = _peft_name(name) if is_peft else name
        if used is not None and rename is not None:
            used = rename(used)
        if used is None or id(tensor) in seen:
            continue
        seen.add(id(tensor))
        yield used, tensor


def named_weights(
    module: torch.nn.Module, *, dtype: torch.dtype | None = None, rename: Rename | None = None
) -> Iterator[tuple[str, torch.Tensor]]:
    """One pass over a module's weights: (checkpoint name, full tensor), for `weights=`.

    Plain modules, FSDP2 and other DTensor modules (each tensor is gathered as it is asked for, which is a
    collective of its mesh), and modules wrapped by DDP, torch.compile or activation checkpointing, whose
    names are left out. Buffers that checkpoints hold come too; of tied weights the first. A PEFT model
    yields its base model's weights as they stand: push it inside `merged`.

    dtype: floating-point weights are yielded in it; integers and fp8 stay. The same value belongs into
        `manifest`.
    rename: gets each name; returns the one to push, or None to leave it out.
    """
    with torch.no_grad():
        for name, tensor in _named(module, rename):
            full = tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor
            yield name, full.detach().to(_pushed_dtype(full, dtype))


def manifest(
    module: torch.nn.Module, *, dtype: torch.dtype | None = None, rename: Rename | None = None
) -> list[TensorSpec]:
    """What `named_weights` with the same arguments will yield, without gathering anything."""
    return [
        TensorSpec(name, dtype_text(_pushed_dtype(tensor, dtype)), tuple(tensor.shape))
        for name, tensor in _named(module, rename)
    ]


def _pushed_dtype(tensor: torch.Tensor, wanted: torch.dtype | None) -> torch.dtype:
    plain = tensor.dtype.is_floating_point and tensor.dtype.itemsize > 1
    return wanted if wanted is not None and plain else tensor.dtype


@contextlib.contextmanager
def merged(module: Any) -> Iterator[None]:
    """A PEFT model with its adapter merged into its weights, for one pass. As `weights`, a function that does
    `with merged(model): yield from named_weights(model)`.

    A pass that ends early unmerges too, and a resend merges anew.
    """
    module.merge_adapter()
    try:
        yield
    finally:
        module.unmerge_adapter()


def from_source(source: Any) -> Callable[[], Iterator[tuple[str, torch.Tensor]]]:
    """A `weights` function from an object of the shape of vLLM's WeightSource: `iter_full()` where it has
    one, else its own iteration, which yields (name, tensor)."""

    def weights() -> Iterator[tuple[str, torch.Tensor]]:
        iterate = getattr(source, "iter_full", None)
        yield from iter(source) if iterate is None else iterate()

    return weights


def source_manifest(source: Any) -> list[TensorSpec]:
    """The manifest of such an object, from its `metadata`: a function, or a property in newer releases."""
    metadata = source.metadata
    return [
        TensorSpec(each.name, dtype_text(each.dtype), tuple(each.shape))
        for each in (metadata() if callable(metadata) else metadata)
    ]


__all__ = ["from_source", "manifest", "merged", "named_weights", "source_manifest"]
