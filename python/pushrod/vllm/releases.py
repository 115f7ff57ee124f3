# SPDX-License-Identifier: Apache-2.0
"""All that differs between vLLM's releases, from 0.22 on. Each difference names the release that
brought it, and is told by what the installed release has."""

from __future__ import annotations

import contextlib
import inspect
import sys
from collections.abc import Iterator
from typing import Any

import torch
from vllm.distributed.weight_transfer.base import WeightTransferEngine

# From 0.25 the engine prepares the model and rebuilds it; before, the worker does.
ENGINE_RELOADS = hasattr(WeightTransferEngine, "start_weight_update")


def worker_place(parallel: Any) -> int:
    """The number of this worker among all workers of a data-parallel group. `rank` counts within
    one replica; replicas of dense models all call themselves data_parallel_rank 0."""
    return int(parallel.data_parallel_index * parallel.world_size + parallel.rank)


def prepare_worker() -> None:
    """0.22 only: CPU workers have no device, and their start_weight_update fails for it."""
    module = sys.modules.get("vllm.v1.worker.cpu_worker")
    if ENGINE_RELOADS or module is None or isinstance(module.CPUWorker.__dict__.get("device"), property):
        return
    if "self.device =" in inspect.getsource(module.CPUWorker.init_device):
        return  # from 0.23

    def device(worker: Any) -> torch.device:
        return worker.__dict__.get("device") or torch.device("cpu")

    def keep(worker: Any, value: torch.device | None) -> None:
        worker.__dict__["device"] = value

    # A property is asked before the instance's own value, so that it helps the worker that lives.
    module.CPUWorker.device = property(device, keep)


@contextlib.contextmanager
def configured(engine: Any) -> Iterator[None]:
    """The configuration that layers ask for while they are rebuilt. From 0.27 the worker sets it
    around start, update and finish."""
    from vllm.config import set_current_vllm_config

    with set_current_vllm_config(engine.vllm_config):
        yield


@contextlib.contextmanager
def loading() -> Iterator[None]:
    """From 0.27 a loader of a model with multi-token prediction wants all its tensors in one call,
    unless it is told that they come in parts."""
    try:
        from vllm.model_executor.model_loader.mtp_validation import disable_mtp_completeness_check
    except ImportError:
        yield
        return
    with disable_mtp_completeness_check():
        yield


def begin_reload(engine: Any) -> None:
    """Prepares the model for tensors as they stand in a checkpoint."""
    from vllm.model_executor.model_loader.reload import initialize_layerwise_reload

    with configured(engine):
        set_kernels_aside(engine.model)
        initialize_layerwise_reload(engine.model)


def end_reload(engine: Any) -> None:
    """Rebuilds what is not rebuilt yet."""
    from vllm.model_executor.model_loader.reload import finalize_layerwise_reload

    with configured(engine):
        finalize_layerwise_reload(engine.model, engine.model_config)
        put_kernels_back(engine.model)
        renew_packed_heads(engine.model)


def renew_packed_heads(model: torch.nn.Module) -> None:
    """From 0.28 the output head of a CPU server keeps computing with the packed copy of its old
    weights when it shares them with the embedding, which alone gets the new ones."""
    from vllm.model_executor.layers.utils import dispatch_cpu_unquantized_gemm
    from vllm.model_executor.layers.vocab_parallel_embedding import VocabParallelEmbedding

    for module in model.modules():
        if isinstance(module, VocabParallelEmbedding) and hasattr(module, "cpu_linear"):
            dispatch_cpu_unquantized_gemm(module, remove_weight=False)


def expert_methods(model: torch.nn.Module) -> Iterator[Any]:
    """What computes the experts of each layer of a CPU server, where it has a kernel of its own."""
    from vllm.platforms import current_platform

    if current_platform.is_cpu():
        for module in model.modules():
            method = getattr(module, "quant_method", None)
            if hasattr(method, "moe_kernel"):
                yield method


def set_kernels_aside(model: torch.nn.Module) -> None:
    """CPU servers pack the weights of experts only when the kernel is made, and copy new ones into
    the packed place unpacked (seen on 0.32). Without a kernel they make one, and pack."""
    for method in expert_methods(model):
        if method.moe_kernel is not None:
            method.pushrod_kernel = method.moe_kernel
            method.moe_kernel = None


def put_kernels_back(model: torch.nn.Module) -> None:
    """Layers that got no tensors in this session have kept their weights."""
    for method in expert_methods(model):
        if method.moe_kernel is None:
            method.moe_kernel = getattr(method, "pushrod_kernel", None)
