# SPDX-License-Identifier: Apache-2.0
"""What Python costs a push: time per tensor, and the import.

    python bench/python_overhead.py          needs the package, torch and numpy in this environment

Per tensor: a pass through the native reader, which is what a push does with each item, less a plain loop
over the same generator. Best of several, since anything else on the machine only adds.
"""

import subprocess
import sys
import time

import numpy
import torch

import pushrod

ROUNDS = 7


def best(run):
    times = []
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        run()
        times.append(time.perf_counter() - begin)
    return min(times)


def drain(weights):
    for _ in weights():
        pass


def per_tensor(tensors):
    """Microseconds that Pushrod adds to the trainer's own iteration."""

    def weights():
        yield from tensors.items()

    read = best(lambda: pushrod.manifest_of(weights))
    listed = best(lambda: [pushrod.TensorSpec(name, "float32", (8, 8)) for name in tensors])
    return (read - listed - best(lambda: drain(weights))) / len(tensors) * 1e6


def import_seconds():
    code = "import time; t = time.perf_counter(); import pushrod; print(time.perf_counter() - t)"
    return min(float(subprocess.check_output([sys.executable, "-c", code])) for _ in range(ROUNDS))


def main():
    for count in (300, 50000):
        names = [f"model.layers.{index}.mlp.experts.{index % 64}.gate_proj.weight" for index in range(count)]
        kinds = {
            "torch": {name: torch.ones(8, 8) for name in names},
            "torch, transposed": {name: torch.ones(8, 8).t() for name in names},
            "numpy": {name: numpy.ones((8, 8), numpy.float32) for name in names},
        }
        for kind, tensors in kinds.items():
            print(f"{count} tensors of {kind}: {per_tensor(tensors):.2f} us per tensor")
    print(f"import pushrod: {import_seconds():.3f} s")


main()
