# SPDX-License-Identifier: Apache-2.0
"""pushrod.torch: names and values of modules, wrapped and sharded."""

import pytest
import torch
from torch import nn

import pushrod
import pushrod.torch
import support


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(4, 6)
        self.norm = nn.LayerNorm(6, bias=False)
        self.register_buffer("kept", torch.arange(3))
        self.register_buffer("scratch", torch.zeros(2), persistent=False)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(8, 4)
        self.blocks = nn.ModuleList([Block(), Block()])
        self.head = nn.Linear(4, 8, bias=False)
        self.head.weight = self.embed.weight


BLOCK = ["kept", "proj.weight", "proj.bias", "norm.weight"]
NAMES = ["embed.weight", *(f"blocks.{index}.{name}" for index in range(2) for name in BLOCK)]


def names_of(module, **arguments):
    stream = [
        (name, str(tensor.dtype)[6:], tuple(tensor.shape))
        for name, tensor in pushrod.torch.named_weights(module, **arguments)
    ]
    declared = [(spec.name, spec.dtype, spec.shape) for spec in pushrod.torch.manifest(module, **arguments)]
    assert stream == declared
    return [name for name, _, _ in stream]


def test_parameters_and_buffers_that_checkpoints_hold():
    assert names_of(Model()) == NAMES


def test_names_are_those_of_the_state_dict():
    untied = [name for name in Model().state_dict() if name != "head.weight"]
    assert sorted(names_of(Model())) == sorted(untied)


def test_wrappers_leave_no_trace_in_names():
    from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper

    model = Model()
    model.blocks[0] = checkpoint_wrapper(model.blocks[0])
    compiled = nn.Module()  # as torch.compile makes it, whose import takes half a minute
    compiled._orig_mod = nn.DataParallel(model)
    assert names_of(compiled) == NAMES


def test_a_child_called_module_is_no_wrapper():
    class Owner(nn.Module):
        def __init__(self):
            super().__init__()
            self.module = nn.Linear(2, 2)

    assert names_of(Owner()) == ["module.weight", "module.bias"]


def test_the_dtype_is_cast_in_manifest_and_stream():
    specs = pushrod.torch.manifest(Model(), dtype=torch.bfloat16)
    assert {spec.dtype for spec in specs} == {"bfloat16", "int64"}
    names_of(Model(), dtype=torch.bfloat16)


def test_renaming_and_leaving_out():
    def rename(name):
        return None if name.endswith(".bias") else "model." + name

    assert names_of(Model(), rename=rename) == [
        "model." + name for name in NAMES if not name.endswith(".bias")
    ]


def test_tensors_are_detached_and_shared():
    model = Model()
    first = next(iter(pushrod.torch.named_weights(model)))[1]
    assert not first.requires_grad
    assert first.data_ptr() == model.embed.weight.data_ptr()


class Adapted(nn.Module):
    """The module structure that PEFT makes of a linear layer."""

    def __init__(self):
        super().__init__()
        self.base_layer = nn.Linear(4, 4, bias=False)
        self.lora_A = nn.ModuleDict({"default": nn.Linear(4, 2, bias=False)})
        self.lora_B = nn.ModuleDict({"default": nn.Linear(2, 4, bias=False)})


class Peft(nn.Module):
    def __init__(self):
        super().__init__()
        self.peft_config = {}
        self.base_model = nn.Module()
        self.base_model.model = nn.Module()
        self.base_model.model.q_proj = Adapted()
        self.base_model.model.head = nn.Module()
        self.base_model.model.head.original_module = nn.Linear(4, 2, bias=False)
        self.base_model.model.head.modules_to_save = nn.ModuleDict({"default": nn.Linear(4, 2, bias=False)})
        self.calls = []

    def merge_adapter(self):
        self.calls.append("merge")

    def unmerge_adapter(self):
        self.calls.append("unmerge")


def test_an_adapters_model_has_the_names_of_its_base():
    assert names_of(Peft()) == ["q_proj.weight", "head.weight"]


def test_an_adapter_is_merged_for_each_pass(engine, coordinator):
    one = engine()
    one.faults({"route": "update_weights", "nth": 1, "do": "status", "status": 500})
    model = Peft()

    def weights():
        with pushrod.torch.merged(model):
            yield from pushrod.torch.named_weights(model)

    report = coordinator([one]).push("1", weights, manifest=pushrod.torch.manifest(model))
    assert report.outcome == "recovered"
    assert model.calls == ["merge", "unmerge"] * 2


def test_flat_shards_are_refused():
    module = nn.Module()
    module._flat_param = nn.Parameter(torch.zeros(4))
    with pytest.raises(TypeError, match="use FSDP2"):
        list(pushrod.torch.named_weights(module))


class Meta:
    """As vLLM's ParamMeta."""

    def __init__(self, name, tensor):
        self.name, self.dtype, self.shape = name, tensor.dtype, tuple(tensor.shape)


@pytest.mark.parametrize("iteration", ["__iter__", "iter_full"])
@pytest.mark.parametrize("as_property", [False, True])
def test_an_object_of_the_shape_of_vllms_weight_source(engine, coordinator, iteration, as_property):
    one = engine()
    tensors = {"a": torch.ones(3), "b": torch.zeros(2, dtype=torch.bfloat16)}
    metas = [Meta(name, tensor) for name, tensor in tensors.items()]
    members = {
        iteration: lambda self: iter(tensors.items()),
        "metadata": property(lambda self: metas) if as_property else lambda self: metas,
    }
    source = type("Source", (), members)()
    declared = pushrod.torch.source_manifest(source)
    assert declared[1] == pushrod.TensorSpec("b", "bfloat16", (2,))
    coordinator([one]).push("1", pushrod.torch.from_source(source), manifest=declared)
    assert set(one.state()["weights"]) == {"a", "b"}


@pytest.mark.parametrize("ranks", [1, 4])
def test_fully_sharded_modules(engine, job, ranks):
    """FSDP2 on Gloo: parameters kept in float32 and declared in bfloat16, stream what was declared."""
    one = engine()
    results = job("fsdp.py", ranks, {"config": support.config([one])}, forked=True).results(180)
    assert [result["outcome"] for result in results] == ["done"] * ranks
    assert results[0]["casts"] == 0
    assert one.state()["weights"] == results[0]["expected"]
