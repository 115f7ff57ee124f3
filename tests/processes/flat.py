# SPDX-License-Identifier: Apache-2.0
"""Many pushes of one job, some with failures, whose processes must not grow."""

import concurrent.futures
import json
import os
import re
import statistics
import subprocess

import harness
from drill_test import REPEAT, DrillCase

FIRST = 20  # from this push on nothing may grow
SAMPLES = 5  # at each end; of each size their median counts, since connections come and go


def sizes(pid):
    """Descriptors, threads and resident KiB of one process."""
    with open(f"/proc/{pid}/status", encoding="ascii") as text:
        status = dict(re.findall(r"^(\w+):\s+(\d+)", text.read(), re.MULTILINE))
    return (len(os.listdir(f"/proc/{pid}/fd")), int(status["Threads"]), int(status["VmRSS"]))


REFUSED_PAUSE = "refuse a pause"
# What fails at an engine, once each: a name, its route, and what it does there. Some cost the resend
# (an engine that dies is started again and may be in time for it), some the push, and some are
# resolved by reads.
KINDS = (("fail in mid-stream", "update_weights", {"do": "fail_after_chunks", "after_chunks": 1}),
         ("refuse a start", "start_weight_update", {"do": "status", "status": 500}),
         ("lose a finish's reply", "finish_weight_update", {"do": "apply_reset"}),
         ("die in mid-stream", "update_weights", {"do": "die_after_chunks", "after_chunks": 1}),
         (REFUSED_PAUSE, "pause", {"do": "status", "status": 400}),
         ("cut an update's connection", "update_weights", {"do": "reset"}),
         ("lose a finish", "finish_weight_update", {"do": "close"}),
         ("lose a resume", "resume", {"do": "close"}),
         ("die at the finish", "finish_weight_update", {"do": "die"}))


class FlatCase(DrillCase):
    def plan_with_failures(self, pushes, every):
        """One push in `every` is to fail once: every fourth of these by a rank that throws."""
        plan = []
        for number in range(1, pushes + 1):
            turn = number // every
            throws = number % every == every // 2 and turn % 4 == 0
            plan.append({"version": str(number), "faults": [
                {"rank": turn % 3, "at": {"tensor": 5 + turn % 7}, "kind": "throw"}] if throws
                         else []})
        return {"repeat": REPEAT, "pushes": plan}

    def inject(self, engines, pushes, every):
        """The other failures, at the engines: each as soon as so many pushes have ended."""
        turns = [turn for turn in range(1, pushes // every) if turn % 4]
        for number, turn in enumerate(turns):
            self.await_that(lambda at=turn * every: self.ended() >= at, 240, f"push {turn * every}")
            place = number % len(engines)
            engine, (name, route, fault) = engines[place], KINDS[number % len(KINDS)]
            before = self.fired(engine)
            engine.faults({"route": route, "nth": 1, **fault})
            if name.startswith("die"):
                engine.process.wait(timeout=60 * harness.SLOW)
                engine.stop()
                self.engines.remove(engine)
                engines[place] = self.engine(engine.name, port=engine.port, backend=engine.backend)
            else:
                self.await_that(lambda e=engine, n=before: self.fired(e) > n, 60, name)
            self.injected.append(name)

    def fired(self, engine):
        return engine.journal_path.read_bytes().count(b'"event":"fault"')

    def page(self):
        try:
            return harness.request(self.port, "GET", "/metrics")[1]
        except ConnectionRefusedError:  # rank 0 is not that far yet
            return ""

    def ended(self):
        """How many pushes have ended, by the status page's own counter."""
        return sum(float(value) for value in re.findall(
            r"^pushrod_pushes_total\{.*\} (\S+)$", self.page(), re.MULTILINE))

    def sampled(self, job, pushes):
        """After so many pushes: the sizes of the parent and the ranks, the job's files in shared
        memory, and the series of rank 0's page."""
        self.await_that(lambda: self.ended() >= pushes, 240, f"push {pushes}")
        with open(f"/proc/{job.pid}/task/{job.pid}/children", encoding="ascii") as text:
            pids = [job.pid, *sorted(int(pid) for pid in text.read().split())]
        shared = [name for name in os.listdir("/dev/shm")
                  if name.startswith(f"pushrod.test-{os.getpid()}.")]
        series = [line for line in self.page().splitlines() if line and line[0] != "#"]
        return [size for pid in pids for size in sizes(pid)] + [len(shared), len(series)]

    def assert_flat(self, backend, pushes, every, limit):
        """Plays the pushes. Returns the medians at the first and at the last ones."""
        engines = [self.engine("fe-a", backend=backend), self.engine("fe-b", backend=backend)]
        self.port = harness.free_port()
        config = self.config(engines, transport={"buffer": "16KiB"},
                             metrics={"listen": f'"127.0.0.1:{self.port}"'})
        path, report = self.folder / "plan.json", self.folder / "drill.json"
        plan = self.plan_with_failures(pushes, every)
        path.write_text(json.dumps(plan))
        with open(self.folder / "rank-0.log", "wb") as log:
            job = subprocess.Popen(
                [harness.PROGRAM, "drill", "--config", str(config), "--plan", str(path), "--ranks",
                 "3", "--report", str(report)], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.children.append(job)
        self.injected = []
        with concurrent.futures.ThreadPoolExecutor(1) as helper:
            injecting = helper.submit(self.inject, engines, pushes, every)
            early = [self.sampled(job, FIRST + i) for i in range(SAMPLES)]
            late = [self.sampled(job, pushes - 4 * SAMPLES + i) for i in range(SAMPLES)]
            injecting.result()
        code = job.wait(timeout=limit * harness.SLOW)
        self.assertIn(code, (0, 3), self.rank_log(0)[-4000:])
        throws = sum(len(push["faults"]) for push in plan["pushes"])
        self.assert_outcomes([each["outcome"] for each in json.loads(report.read_text())], throws)
        return self.compare(early, late)

    def assert_outcomes(self, outcomes, throws):
        """Every failure was met, and no push failed that could be mended."""
        refused = self.injected.count(REFUSED_PAUSE)
        died = sum(name.startswith("die") for name in self.injected)
        self.assertLessEqual(outcomes.count("failed"), refused + died, outcomes)
        self.assertGreaterEqual(outcomes.count("failed"), refused, outcomes)
        self.assertGreaterEqual(outcomes.count("recovered"), throws, outcomes)
        self.assertGreaterEqual(outcomes.count("done"), len(outcomes) - throws - len(self.injected),
                                outcomes)

    def compare(self, early, late):
        first = [statistics.median(column) for column in zip(*early)]
        last = [statistics.median(column) for column in zip(*late)]
        told = f"\nearly {early}\nlate {late}"
        for index in range(0, len(first) - 2, 3):
            self.assertLessEqual(last[index], first[index] + 2, "descriptors" + told)
            self.assertLessEqual(last[index + 1], first[index + 1], "threads" + told)
            if not harness.SLOW > 1:  # a sanitizer keeps what was freed
                self.assertLess(last[index + 2], first[index + 2] * 1.05 + 1024, "KiB" + told)
        self.assertLessEqual(last[-2], first[-2], "files in shared memory" + told)
        self.assertEqual(last[-1], first[-1], "series" + told)
        return first, last
