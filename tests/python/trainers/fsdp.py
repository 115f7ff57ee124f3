# SPDX-License-Identifier: Apache-2.0
"""An FSDP2 trainer on the CPU: one optimizer step, then a push in bfloat16."""

import hashlib
import json
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

import pushrod
import pushrod.torch

given = json.loads(sys.argv[1])
dist.init_process_group("gloo")
mesh = init_device_mesh("cpu", (dist.get_world_size(),))
torch.manual_seed(1)
model = nn.Sequential(nn.Linear(6, 10), nn.Linear(10, 3))
for layer in model:
    fully_shard(layer, mesh=mesh)
fully_shard(model, mesh=mesh)
model(torch.ones(2, 6)).sum().backward()
torch.optim.SGD(model.parameters(), lr=0.1).step()


def weights():
    return pushrod.torch.named_weights(model, dtype=torch.bfloat16)


manifest = pushrod.torch.manifest(model, dtype=torch.bfloat16)
with pushrod.Coordinator(given["config"], flight_record=None) as coordinator:
    report = coordinator.push("1", weights, manifest=manifest)
expected = {}
for name, parameter in model.named_parameters():
    full = parameter.full_tensor().detach().bfloat16().contiguous()
    expected[name] = hashlib.sha256(full.view(torch.uint8).numpy().tobytes()).hexdigest()
dist.destroy_process_group()
print(json.dumps({"outcome": report.outcome, "casts": report.casts, "expected": expected}), flush=True)
