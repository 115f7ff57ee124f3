# SPDX-License-Identifier: Apache-2.0
"""Ranks of one script that share the time for importing torch: it is imported once, and every rank is a
fork. Ends with the first code that is not 0.

    forked.py RANKS SCRIPT GIVEN
"""

import os
import runpy
import sys

import torch.distributed.fsdp  # noqa: F401


def become(rank, script):
    log = os.open(f"rank-{rank}.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.environ["RANK"] = os.environ["LOCAL_RANK"] = str(rank)
    sys.argv = [script, sys.argv[3]]
    runpy.run_path(script, run_name="__main__")


children = []
for rank in range(int(sys.argv[1])):
    child = os.fork()
    if child == 0:
        become(rank, sys.argv[2])
        sys.exit(0)
    children.append(child)
codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
sys.exit(next((code for code in codes if code != 0), 0))
