# SPDX-License-Identifier: Apache-2.0
"""A rank that pushes made-up weights and prints what came of it.

Its argument is a JSON object: "config", and by rank (a text) or for all ("*") what to do otherwise:
"names": the tensors; "raise_at": the index at which its iterator raises; "hang_at": at which it waits.
"""

import json
import os
import sys
import threading

import numpy

import pushrod

given = json.loads(sys.argv[1])
rank = os.environ["RANK"]
plan = {**given.get("*", {}), **given.get(rank, {})}
names = plan.get("names", ["a", "b", "c"])
aborted = threading.Event()


def gather(index):
    if plan.get("raise_at") == index:
        raise LookupError(f"shard {index} is lost")
    if plan.get("hang_at") == index:
        print("hanging", flush=True)
        aborted.wait()
        raise RuntimeError("the gather was aborted")


def weights():
    for index, name in enumerate(names):
        gather(index)
        yield name, numpy.full(5000, index, numpy.float32)


def tell(**what):
    print(json.dumps(what), flush=True)


specs = [pushrod.TensorSpec(name, "float32", (5000,)) for name in names]
with pushrod.Coordinator(given["config"], flight_record=None) as coordinator:
    print("pushing", flush=True)
    try:
        report = coordinator.push("1", weights, manifest=specs, abort=aborted.set)
        tell(outcome=report.outcome, ranks=report.ranks)
    except pushrod.Error as error:
        cause = coordinator.last_report and coordinator.last_report.first_cause
        tell(
            error=type(error).__name__,
            text=str(error),
            cause=cause and cause.message,
            rank=cause and cause.rank,
            raised_from=type(error.__cause__).__name__,
        )
    except KeyboardInterrupt:
        report = coordinator.last_report
        tell(error="KeyboardInterrupt", outcome=report and report.outcome)
