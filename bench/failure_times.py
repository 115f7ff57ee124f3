#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How soon failures are noticed and mended, with real processes on this machine.

Times are read from the engines' journals and the ranks' logs, whose clock is the system's. Medians
of the rounds, in brackets the least and the most.

    PUSHROD_PROGRAM=build-bench/bin/pushrod python3 bench/failure_times.py [--rounds 7] [--mib 256]
"""

import argparse
import datetime
import json
import os
import pathlib
import re
import signal
import statistics
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "tests" / "processes"))

import harness  # noqa: E402

AGREEMENT_S = 3
LIMITS = {"agreement": f"{AGREEMENT_S}s", "shutdown": "5s"}


def told(name, values, unit, goal):
    print(f"{name:<58} {statistics.median(values):8.3f} {unit:<2} "
          f"({min(values):.3f} to {max(values):.3f}), goal {goal}", flush=True)


class Times(harness.Case):
    """A fresh pair of engines for each measurement; the model stays."""

    def begin(self, mib):
        width = 1024  # 2 MiB a tensor
        self.model, _ = self.checkpoint("model", {
            f"model.layers.{i}.w": ("BF16", [width, width], os.urandom(2 * width * width))
            for i in range(mib // 2)})

    def fresh(self, **sections):
        for engine in self.engines:
            engine.stop()
        self.engines.clear()
        for child in self.children:
            child.kill()
            child.wait()
        self.children.clear()
        pair = [self.engine("e0"), self.engine("e1")]
        sections = {"timeouts": LIMITS, "transport": {"buffer": "8MiB"}, **sections}
        return pair, self.config(pair, **sections)

    def resumed(self, engines):
        """When the last engine had answered its resume."""
        return max(line["t"] for engine in engines for line in engine.journal("reply")
                   if line["path"] == "/resume")

    def clean(self):
        engines, config = self.fresh()
        begin = time.time()
        code, _, text = self.push(config, self.model, "1", ranks=2)
        assert code == 0, text
        first = min(line["t"] for line in engines[0].journal("request"))
        return self.resumed(engines) - max(first, begin)

    def recovered(self, chunks):
        """From the refusal to the last resume, when an engine fails after so many chunks."""
        engines, config = self.fresh()
        engines[1].faults({"route": "update_weights", "nth": 1, "do": "fail_after_chunks",
                           "after_chunks": chunks})
        code, report, text = self.push(config, self.model, "1", ranks=2)
        assert code == 0 and report["outcome"] == "recovered", text
        fault = next(line["t"] for line in engines[1].journal("reply")
                     if line["path"] == "/update_weights")
        return self.resumed(engines) - fault

    def streaming(self):
        """A push of three ranks in mid-stream."""
        engines, config = self.fresh()
        ranks = self.ranks(config, self.model, "1", 3)
        self.await_that(lambda: len(engines[0].journal("chunk")) > 1, 60, "the stream")
        return engines, ranks

    def warned(self, after, pattern):
        """When rank 0 first told of `pattern`, in seconds after a moment."""
        found = self.await_that(lambda: re.search(rf"^(\S+)Z \w+ .*{pattern}", self.rank_log(0),
                                                  re.MULTILINE), 60, pattern)
        at = datetime.datetime.fromisoformat(found.group(1) + "+00:00").timestamp()
        return at - after

    def closed(self, whose):
        """From the kill until rank 0 has ended the update of the engine for that reason."""
        engines, ranks = self.streaming()
        begin = time.time()
        (engines[1].process if whose == "engine" else ranks[1]).kill()
        return self.warned(begin, "engine e1, update_weights: ")

    def dead_core(self):
        """With the default limits, of which timeouts.request is half an hour."""
        engines, config = self.fresh(timeouts={"request": "30m", "push": "40m",
                                               "progress": "30m", "drain": "1m"})
        engines[1].faults({"route": "update_weights", "nth": 1, "do": "freeze_core"})
        self.ranks(config, self.model, "1", 2)
        asked = self.await_that(lambda: engines[1].calls("update_weights"), 60, "the update")
        return self.warned(asked[0]["t"], "engine e1, update_weights")

    def survivors(self, order):
        """Until the last survivor's process has ended, sessions closed."""
        _, ranks = self.streaming()
        begin = time.time()
        ranks[1].send_signal(order)
        for rank in (0, 2):
            assert ranks[rank].wait(timeout=60) == 3, self.rank_log(rank)
        return time.time() - begin

    def steps_after_refusal(self, chunks):
        """Chunks that a good engine was sent beyond those after which the other failed."""
        engines, config = self.fresh(push={"resend": "false"})
        engines[1].faults({"route": "update_weights", "nth": 1, "do": "fail_after_chunks",
                           "after_chunks": chunks})
        code, _, text = self.push(config, self.model, "1", ranks=2)
        assert code == 3, text
        return len(engines[0].journal("chunk")) - chunks


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--mib", type=int, default=256)
    arguments = parser.parse_args()
    rounds = range(arguments.rounds)
    times = Times()
    times.setUp()
    print("load:", pathlib.Path("/proc/loadavg").read_text().strip())
    try:
        times.begin(arguments.mib)
        # One buffer of 8 MiB closes after the tensor that exceeds it: 5 tensors a chunk.
        last = arguments.mib // 10
        pairs = [(times.clean(), times.recovered(1), times.recovered(last)) for _ in rounds]
        told("clean push", [clean for clean, _, _ in pairs], "s", "-")
        told("fault at the first chunk to resumed / clean push",
             [early / clean for clean, early, _ in pairs], "", "1.05")
        told("fault at the last chunk to resumed / clean push",
             [late / clean for clean, _, late in pairs], "", "1.05")
        told("engine killed in mid-stream, to rank 0's word",
             [1e3 * times.closed("engine") for _ in rounds], "ms", "10")
        told("rank killed in mid-stream, to rank 0's word",
             [1e3 * times.closed("rank") for _ in rounds], "ms", "10")
        told("engine core dead, to rank 0's word, default limits",
             [times.dead_core() for _ in rounds][:3], "s", "10")
        told("chunks sent to others after a refusal",
             [times.steps_after_refusal(2) for _ in rounds], "", "1")
        for order, name in ((signal.SIGKILL, "killed"), (signal.SIGSTOP, "stopped")):
            told(f"a rank {name}, to the last survivor's end",
                 [times.survivors(order) for _ in rounds], "s", f"{AGREEMENT_S + 1}")
    finally:
        times.tearDown()


if __name__ == "__main__":
    main()
