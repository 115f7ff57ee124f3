# SPDX-License-Identifier: Apache-2.0
"""Ports that are taken, and names and addresses that are not plain IPv4: cases 23 and 24."""

import contextlib
import json
import os
import select
import socket
import subprocess
import threading
import time
import unittest

import harness
from outcome import AWAY, SHORT, Case


def listeners(pid):
    """The listening TCP sockets of one process, by inode."""
    held = set()
    for name in os.listdir(f"/proc/{pid}/fd"):
        try:
            held.add(os.readlink(f"/proc/{pid}/fd/{name}"))
        except OSError:
            continue
    with open(f"/proc/{pid}/net/tcp", encoding="ascii") as table:
        rows = [line.split() for line in table.readlines()[1:]]
    return {row[9] for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in held}


class Case23(Case):
    """A port that is taken between its choice and its use."""

    def test_held_by_another_process(self):
        engine = self.engine("fe-a")
        with socket.create_server(("127.0.0.1", 0)) as holder:
            port = holder.getsockname()[1]
            folder, _ = self.checkpoint("v2", harness.layered("2", 1, 16))
            config = self.config([engine], timeouts=SHORT, transport={"port": port})
            begin = time.monotonic()
            for rank, process in enumerate(self.ranks(config, folder, "2", 3)):
                self.assertEqual(process.wait(timeout=20 * harness.SLOW), 3, self.rank_log(rank))
                self.assertIn(str(port), self.rank_log(rank))
            self.assertLess(time.monotonic() - begin, 2 * harness.SLOW)
        self.assertEqual(engine.calls("pause"), [])

    def test_automatic_while_others_grab_ports(self):
        engine = self.engine("fe-a")
        stop = threading.Event()
        grabbed = []

        def grab():
            while not stop.is_set() and len(grabbed) < 2000:
                try:
                    grabbed.append(socket.create_server(("127.0.0.1", 0)))
                except OSError:
                    return
        helper = threading.Thread(target=grab)
        helper.start()
        try:
            self.assert_done(self.pushed([engine], ranks=3), [engine])
        finally:
            stop.set()
            helper.join()
            for each in grabbed:
                each.close()

    def test_25_rebuilds_leave_no_listener_behind(self):
        engine = self.engine("fe-a")
        # Each push's first update fails, so that each rebuilds the channel.
        odd = [*range(1, 51, 2)]
        engine.faults({"route": "update_weights", "nth": odd, "do": "status", "status": 500})
        plan, report = self.folder / "plan.json", self.folder / "drill.json"
        tensors = [{"name": "w", "dtype": "bfloat16", "shape": [64, 64]}]
        pushes = [{"version": str(number)} for number in range(1, 26)]
        plan.write_text(json.dumps({"tensors": tensors, "pushes": pushes}))
        config = str(self.config([engine], timeouts=SHORT))
        job = self.launch([[harness.PROGRAM, "drill", "--config", config, "--plan", str(plan),
                            "--report", str(report)]])[0]
        held = {}
        while job.poll() is None:
            with contextlib.suppress(FileNotFoundError):  # it ended just now
                held[len(engine.calls("resume"))] = len(listeners(job.pid))
            select.select([], [], [], 0.02)
        self.assertEqual(job.wait(timeout=60 * harness.SLOW), 0, self.rank_log(0))
        outcomes = [each["outcome"] for each in json.loads(report.read_text())]
        self.assertEqual(outcomes, ["recovered"] * 25)
        early, late = [max(held.get(done, 0) for done in part)
                       for part in (range(1, 10), range(15, 26))]
        self.assertLessEqual(late, early, held)

    def test_two_jobs_on_one_host(self):
        engines = [self.engine("fe-a"), self.engine("fe-b")]
        folder, digests = self.checkpoint("v2", harness.layered("2", 2, 32))
        jobs = [subprocess.Popen(
            self.command(self.config([engine], timeouts=SHORT), folder, "2", "--ranks", "3"),
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            for engine in engines]
        self.children += jobs
        for job, engine in zip(jobs, engines):
            self.assertEqual(job.wait(timeout=30 * harness.SLOW), 0)
            self.assert_current(engine, "2", digests)


class Case24(Case):
    """Addresses that are not plain IPv4."""

    def test_every_form_of_an_engine(self):
        name, six = self.engine("name"), self.engine("six", "--host", "::1", "--prefix", "/a/b")
        slash = self.engine("slash")
        # It listens on 127.0.0.1 only; the name may give ::1 first.
        name.url = f"http://localhost:{name.port}"
        six.url = f"http://[::1]:{six.port}/a/b"
        slash.url += "/"
        pushed = self.pushed([name, six, slash])
        self.assert_done(pushed, [name, slash])
        self.assertEqual({row["outcome"] for row in pushed.report["engines"]}, {"current"})

    def test_master_addresses(self):
        engine = self.engine("fe-a")
        folder, digests = self.checkpoint("v2", harness.layered("2", 1, 16))
        for address in ("::1", "localhost"):
            with self.subTest(address):
                processes = self.ranks(self.config([engine], timeouts=SHORT), folder, "2", 2,
                                       master=address)
                for rank, process in enumerate(processes):
                    self.assertEqual(process.wait(timeout=30 * harness.SLOW), 0,
                                     self.rank_log(rank))
                self.assert_current(engine, "2", digests)

    def test_a_wildcard_as_master_is_named_in_time_or_replaced(self):
        engine = self.engine("fe-a")
        folder, _ = self.checkpoint("v2", harness.layered("2", 1, 16))
        begin = time.monotonic()
        config = self.config([engine], timeouts={**SHORT, **AWAY})
        processes = self.ranks(config, folder, "2", 2, master="0.0.0.0")
        codes = {process.wait(timeout=30 * harness.SLOW) for process in processes}
        self.assertLess(time.monotonic() - begin, 8 * harness.SLOW)
        self.assertIn(codes, ({0}, {3}), self.rank_log(0))
        if codes == {3}:
            for rank in range(2):
                for part in ("0.0.0.0", "MASTER_ADDR"):
                    self.assertIn(part, self.rank_log(rank))
            self.assertEqual(engine.journal("request"), [])

    def test_a_wildcard_is_no_destination(self):
        engine = self.engine("fe-a")
        pushed = self.pushed([engine], transport={"bind": "0.0.0.0"})
        if pushed.code == 0:
            self.assert_done(pushed, [engine])
        else:
            self.assertEqual(pushed.code, 2, pushed.text)
            self.assertIn("transport.bind", pushed.text)

    def test_an_unknown_name_ends_in_the_connect_limit(self):
        engine = self.engine("fe-a")
        engine.url = "http://no-such-host.invalid:8000"
        pushed = self.pushed([engine], timeouts=AWAY)
        self.assertEqual(pushed.code, 3, pushed.text)
        self.assertIn("no-such-host.invalid", pushed.report["first_cause"]["message"])
        self.assertLess(pushed.seconds, 8 * harness.SLOW)


if __name__ == "__main__":
    unittest.main(verbosity=2)
