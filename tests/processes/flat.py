# SPDX-License-Identifier: Apache-2.0
"""Many pushes of one job, some with failures, whose processes must not grow."""

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


class FlatCase(DrillCase):
    def plan_with_failures(self, pushes, every):
        """One push in `every` is to fail once: a rank throws, or by turns an engine, which then has
        taken a chunk. Returns the plan and the engine's fault."""
        plan, hit, streams = [], [], 0
        for number in range(1, pushes + 1):
            faults, turn = [], number // every
            failing = number % every == every // 2
            streams += 1
            if failing and turn % 2 == 0:
                faults = [{"rank": turn % 3, "at": {"tensor": 5 + turn % 7}, "kind": "throw"}]
            elif failing:
                hit.append(streams)
            streams += 1 if failing else 0
            plan.append({"version": str(number), "faults": faults})
        return ({"repeat": REPEAT, "pushes": plan},
                {"route": "update_weights", "nth": hit, "do": "fail_after_chunks",
                 "after_chunks": 1})

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
        plan, fault = self.plan_with_failures(pushes, every)
        engines[1].faults(fault)
        self.port = harness.free_port()
        config = self.config(engines, transport={"buffer": "16KiB"},
                             metrics={"listen": f'"127.0.0.1:{self.port}"'})
        path, report = self.folder / "plan.json", self.folder / "drill.json"
        path.write_text(json.dumps(plan))
        with open(self.folder / "rank-0.log", "wb") as log:
            job = subprocess.Popen(
                [harness.PROGRAM, "drill", "--config", str(config), "--plan", str(path), "--ranks",
                 "3", "--report", str(report)], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.children.append(job)
        early = [self.sampled(job, FIRST + i) for i in range(SAMPLES)]
        late = [self.sampled(job, pushes - 4 * SAMPLES + i) for i in range(SAMPLES)]
        self.assertEqual(job.wait(timeout=limit * harness.SLOW), 0, self.rank_log(0)[-4000:])
        outcomes = [each["outcome"] for each in json.loads(report.read_text())]
        self.assertEqual(outcomes.count("recovered"), pushes // every, outcomes)
        self.assertEqual(outcomes.count("done"), pushes - pushes // every, outcomes)
        return self.compare(early, late)

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
