# SPDX-License-Identifier: Apache-2.0
"""The worker's side of the backends: what is received natively is handed to vLLM's own loader."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch
from vllm.distributed.weight_transfer.base import (
    WeightTransferEngine,
    WeightTransferInitInfo,
    WeightTransferUpdateInfo,
)
from vllm.logger import init_logger

from pushrod import _receiver
from pushrod.vllm import releases

# A child of vLLM's own logger, which has the handlers.
logger = init_logger("vllm.pushrod")

Weights = list[tuple[str, torch.Tensor]]
Load = Callable[[Weights], Any]


@dataclass
class InitInfo(WeightTransferInitInfo):
    """The init_info as JSON; it is checked where it is used."""

    text: str = ""


@dataclass
class UpdateInfo(WeightTransferUpdateInfo):
    """The update_info as JSON."""

    text: str = ""


def as_text(what: str, engine: object, info: dict[str, Any]) -> str:
    try:
        return json.dumps(info)
    except (TypeError, ValueError) as error:
        raise ValueError(f"Invalid {what} for {type(engine).__name__}: {error}") from error


def views(chunk: _receiver.Chunk) -> Weights:
    """The chunk's tensors. Each is a view that keeps the chunk's memory, so that vLLM may hold it
    until the layer that it belongs to is complete."""
    weights: Weights = []
    whole: dict[str, torch.Tensor] = {}  # the chunk's memory, as elements of each dtype
    for name, dtype_name, shape, strides, first in chunk.tensors:
        if len(shape) != len(strides):
            weights.append((name, torch.empty(shape, dtype=getattr(torch, dtype_name))))
            continue
        elements = whole.get(dtype_name)
        if elements is None:
            elements = torch.frombuffer(chunk, dtype=getattr(torch, dtype_name))
            whole[dtype_name] = elements
        weights.append((name, elements.as_strided(shape, strides, first)))
    return weights


class Spent:
    """What one session brought, and where its time went."""

    def __init__(self) -> None:
        self.tensors = self.bytes = 0
        self.waiting = self.loading = 0.0

    def __str__(self) -> str:
        return (f"{self.tensors} tensors, {self.bytes / 1e6:.1f} MB, {self.waiting:.3f} s waiting "
                f"for them, {self.loading:.3f} s in the model's loader")


class PushrodEngine(WeightTransferEngine[InitInfo, UpdateInfo]):
    """What both transports share."""

    init_info_cls = InitInfo
    update_info_cls = UpdateInfo

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.spent = Spent()
        releases.prepare_worker()

    def parse_init_info(self, init_dict: dict[str, Any]) -> InitInfo:
        return InitInfo(text=as_text("init_info", self, init_dict))

    def parse_update_info(self, update_dict: dict[str, Any]) -> UpdateInfo:
        return UpdateInfo(text=as_text("update_info", self, update_dict))

    def start_weight_update(self) -> None:
        self.spent = Spent()
        self.begin_session()
        releases.begin_reload(self)

    def finish_weight_update(self) -> None:
        begun = time.perf_counter()
        releases.end_reload(self)
        logger.info("Pushrod: %s, %.3f s to finish", self.spent, time.perf_counter() - begun)

    def receive_weights(self, update_info: UpdateInfo, load_weights: Load | None = None) -> None:
        # The model is asked for now: a session for the draft model has put that one there.
        load = load_weights or self.model.load_weights
        try:
            with releases.loading():
                self.receive(update_info.text, load)
        except BaseException:
            # The trainer sees at once that nobody reads any more.
            self.shutdown()
            raise

    def load(self, chunk: _receiver.Chunk, load: Load) -> None:
        begun = time.perf_counter()
        weights = views(chunk)
        self.spent.tensors += len(weights)
        self.spent.bytes += len(chunk)
        made = time.perf_counter()
        try:
            load(weights)
        except Exception as error:
            # Workers report the text alone, which of a KeyError is only the key.
            raise RuntimeError(f"the model's loader refused what was pushed: "
                               f"{type(error).__name__}: {error}") from error
        self.spent.waiting += made - begun
        self.spent.loading += time.perf_counter() - made

    def begin_session(self) -> None:
        """A session begins."""

    def receive(self, text: str, load: Load) -> None:
        """Receives one update and loads it."""
        raise NotImplementedError

    @staticmethod
    def trainer_send_weights(iterator: Iterable[Any], trainer_args: Any) -> None:
        raise NotImplementedError("Pushrod's trainer side is pushrod.Coordinator")


class TcpEngine(PushrodEngine):
    """Backend `pushrod_tcp`: every worker connects to every source of the trainer."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.receiver = _receiver.TcpReceiver()

    def init_transfer_engine(self, init_info: InitInfo) -> None:
        self.receiver.join(init_info.text, releases.worker_place(self.parallel_config))

    def receive(self, text: str, load: Load) -> None:
        update = self.receiver.update(text)
        try:
            while True:
                begun = time.perf_counter()
                chunk = next(update, None)
                self.spent.waiting += time.perf_counter() - begun
                if chunk is None:
                    return
                self.load(chunk, load)
        except BaseException:
            update.close()
            raise

    def shutdown(self) -> None:
        self.receiver.close()


class ShmEngine(PushrodEngine):
    """Backend `pushrod_shm`: every update is a chunk in shared memory of the worker's host."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.receiver = _receiver.ShmReceiver()

    def init_transfer_engine(self, init_info: InitInfo) -> None:
        self.receiver.open(init_info.text)

    def begin_session(self) -> None:
        self.receiver.begin_session()

    def receive(self, text: str, load: Load) -> None:
        begun = time.perf_counter()
        chunk = self.receiver.receive(text)
        self.spent.waiting += time.perf_counter() - begun
        self.load(chunk, load)

    def shutdown(self) -> None:
        self.receiver.close()
