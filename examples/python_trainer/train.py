# SPDX-License-Identifier: Apache-2.0
"""A trainer in Python: a torch model, pushed after each step. Every rank runs this same program.

    python examples/python_trainer/train.py examples/pushrod.yaml 3
"""

import sys

# README: python
import torch

import pushrod
import pushrod.torch


def train(model: torch.nn.Module, config: str, steps: int) -> None:
    manifest = pushrod.torch.manifest(model)  # names, dtypes and full shapes; gathers nothing
    with pushrod.Coordinator(config) as coordinator:
        for step in range(1, steps + 1):
            train_step(model)
            report = coordinator.push(
                version=str(step),
                weights=lambda: pushrod.torch.named_weights(model),  # one pass; a resend asks for another
                manifest=manifest,
            )
            print(report.summary)


# README: end


def train_step(model: torch.nn.Module) -> None:
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 1.0


if __name__ == "__main__":
    torch.manual_seed(1)
    train(torch.nn.Sequential(torch.nn.Linear(16, 8), torch.nn.Linear(8, 4)), sys.argv[1], int(sys.argv[2]))
