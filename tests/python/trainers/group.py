# SPDX-License-Identifier: Apache-2.0
"""A torch.distributed job of which some ranks push, in two groups, while the others do not."""

import json
import logging
import sys
from datetime import timedelta

import torch
import torch.distributed as dist

import pushrod

given = json.loads(sys.argv[1])
logging.basicConfig(level=logging.INFO, stream=sys.stdout)
limit = timedelta(seconds=given.get("watchdog", 600))
dist.init_process_group("gloo", timeout=limit)
groups = [dist.new_group(ranks, timeout=limit) for ranks in given["groups"]]
told = {"rank": dist.get_rank()}
for index, (ranks, group) in enumerate(zip(given["groups"], groups, strict=True)):
    if dist.get_rank() not in ranks:
        try:
            pushrod.Coordinator(given["configs"][index], group=group)
        except pushrod.ConfigError as error:
            told["outside"] = str(error)
        continue

    def weights(group=group):
        for layer in range(3):
            tensor = torch.full((1000,), float(layer))
            dist.all_reduce(tensor, op=dist.ReduceOp.MAX, group=group)
            yield f"layer.{layer}", tensor

    with pushrod.Coordinator(given["configs"][index], group=group, flight_record=None) as coordinator:
        for version in ("1", "2"):
            told["outcome"] = coordinator.push(version, weights).outcome
        told["push_rank"] = coordinator.rank
dist.barrier()
dist.destroy_process_group()
print(json.dumps(told), flush=True)
