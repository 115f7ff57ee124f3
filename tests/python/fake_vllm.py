# SPDX-License-Identifier: Apache-2.0
"""The parts of vLLM that the plug-in touches, in the shape of a given release."""

import abc
import contextlib
import logging
import sys
import types
from dataclasses import KW_ONLY, dataclass

import torch


class Calls(list):
    """What was called, in order."""


@dataclass
class InitInfo:
    pass


@dataclass
class PlainUpdateInfo:
    pass


@dataclass
class UpdateInfoWithKind:
    """0.23 and 0.24."""

    _: KW_ONLY
    update_kind: str = "dense"
    num_updates_list: list | None = None


class OldEngine(abc.ABC):
    """Up to 0.24."""

    def __class_getitem__(cls, _):
        return cls

    def __init__(self, config, parallel_config, model):
        self.config, self.parallel_config, self.model = config, parallel_config, model

    @abc.abstractmethod
    def init_transfer_engine(self, init_info): ...

    @abc.abstractmethod
    def receive_weights(self, update_info, load_weights): ...

    @abc.abstractmethod
    def shutdown(self): ...

    @staticmethod
    @abc.abstractmethod
    def trainer_send_weights(iterator, trainer_args): ...


class NewEngine(abc.ABC):
    """From 0.25."""

    def __class_getitem__(cls, _):
        return cls

    def __init__(self, config, vllm_config, device, model):
        self.config, self.vllm_config, self.device, self.model = config, vllm_config, device, model
        self.parallel_config, self.model_config = vllm_config.parallel_config, vllm_config.model_config

    @abc.abstractmethod
    def init_transfer_engine(self, init_info): ...

    @abc.abstractmethod
    def start_weight_update(self): ...

    @abc.abstractmethod
    def finish_weight_update(self): ...

    def update_weights(self, update_info):
        self.receive_weights(self.parse_update_info(update_info))

    @abc.abstractmethod
    def receive_weights(self, update_info): ...

    @abc.abstractmethod
    def shutdown(self): ...


class Factory:
    def __init__(self):
        self._registry = {}

    def register_engine(self, name, module, class_name):
        if name in self._registry:
            raise ValueError(f"{name} is already registered")
        self._registry[name] = (module, class_name)


class VocabParallelEmbedding(torch.nn.Module):
    def __init__(self, packed):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(2, 2), requires_grad=False)
        if packed:
            self.cpu_linear = None


class Experts(torch.nn.Module):
    """A layer whose kernel packs its weights when it is made."""

    def __init__(self):
        super().__init__()
        self.quant_method = types.SimpleNamespace(moe_kernel="first")


class Model(torch.nn.Module):
    """Keeps what it is given, as a layer does that is not complete yet."""

    def __init__(self):
        super().__init__()
        self.experts = Experts()
        self.head = VocabParallelEmbedding(packed=True)
        self.plain = VocabParallelEmbedding(packed=False)
        self.got = {}
        self.refuse = None

    def load_weights(self, weights):
        for name, tensor in weights:
            if name == self.refuse:
                raise KeyError(name)
            self.got[name] = tensor


def module(name, **members):
    made = types.ModuleType(name)
    made.__dict__.update(members)
    sys.modules[name] = made


def install(release):
    """Puts the modules in place; returns what the plug-in calls and the factory."""
    calls, factory = Calls(), Factory()
    old = release < 25

    @contextlib.contextmanager
    def entered(what, *_):
        calls.append(f"{what} begins")
        yield
        calls.append(f"{what} ends")

    for name in list(sys.modules):
        if name == "vllm" or name.startswith(("vllm.", "pushrod.vllm")):
            del sys.modules[name]
    base = "vllm.distributed.weight_transfer"
    module("vllm")
    module("vllm.logger", init_logger=logging.getLogger)
    module("vllm.config", set_current_vllm_config=lambda config: entered("config", config))
    for package in ("vllm.distributed", base, "vllm.model_executor", "vllm.model_executor.model_loader",
                    "vllm.model_executor.layers", "vllm.v1", "vllm.v1.worker"):
        module(package)
    module(f"{base}.base", WeightTransferEngine=OldEngine if old else NewEngine,
           WeightTransferInitInfo=InitInfo,
           WeightTransferUpdateInfo=UpdateInfoWithKind if release in (23, 24) else PlainUpdateInfo)
    module(f"{base}.factory", WeightTransferEngineFactory=factory)
    module("vllm.model_executor.model_loader.reload",
           initialize_layerwise_reload=lambda model: calls.append("reload begins"),
           finalize_layerwise_reload=lambda model, config: calls.append("reload ends"))
    if release >= 27:
        module("vllm.model_executor.model_loader.mtp_validation",
               disable_mtp_completeness_check=lambda: entered("parts"))
    module("vllm.platforms", current_platform=types.SimpleNamespace(is_cpu=lambda: True))
    module("vllm.model_executor.layers.utils",
           dispatch_cpu_unquantized_gemm=lambda layer, remove_weight: calls.append(("packed", layer)))
    module("vllm.model_executor.layers.vocab_parallel_embedding",
           VocabParallelEmbedding=VocabParallelEmbedding)
    return calls, factory


def engine(kind, release, model, index=0, rank=0):
    from pushrod.vllm import engines

    parallel = types.SimpleNamespace(data_parallel_index=index, world_size=2, rank=rank)
    if release < 25:
        return getattr(engines, kind)(None, parallel, model)
    config = types.SimpleNamespace(parallel_config=parallel, model_config=None)
    return getattr(engines, kind)(None, config, torch.device("cpu"), model)
