# SPDX-License-Identifier: Apache-2.0
"""torch.distributed over Gloo and Pushrod's ranks over Gloo in one process, imported in the order that
is given for this rank, in the global scope or not, and both at work at the same time."""

import json
import os
import sys
import threading

given = json.loads(sys.argv[1])


def import_torch():
    before = sys.getdlopenflags()
    if given["global"]:
        sys.setdlopenflags(os.RTLD_NOW | os.RTLD_GLOBAL)
    import torch.distributed  # noqa: F401

    sys.setdlopenflags(before)


def import_pushrod():
    before = sys.getdlopenflags()
    if given["global"]:
        sys.setdlopenflags(os.RTLD_NOW | os.RTLD_GLOBAL)
    import pushrod  # noqa: F401

    assert not given["global"] or sys.getdlopenflags() == os.RTLD_NOW | os.RTLD_GLOBAL
    sys.setdlopenflags(before)


for step in given["orders"][int(os.environ["RANK"])]:
    {"torch": import_torch, "pushrod": import_pushrod}[step]()

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402

import pushrod  # noqa: E402

dist.init_process_group("gloo")
stop = threading.Event()


def reduce_all_the_time():
    """torch's Gloo, at the same time as ours. How often is agreed by the reduction itself."""
    while True:
        value = torch.tensor([1.0 if stop.is_set() else 0.0])
        dist.all_reduce(value)
        if value.item() == dist.get_world_size():
            return


reducing = threading.Thread(target=reduce_all_the_time)
reducing.start()
outcomes = []
with pushrod.Coordinator(
    given["config"],
    flight_record=None,
    rank=int(os.environ["RANK"]),
    world_size=int(os.environ["WORLD_SIZE"]),
) as coordinator:
    for version in range(5):
        weights = [(f"w.{index}", torch.full((100,), float(index))) for index in range(20)]
        outcomes.append(coordinator.push(str(version), lambda weights=weights: weights).outcome)
stop.set()
reducing.join()
dist.destroy_process_group()
print(json.dumps(outcomes), flush=True)
