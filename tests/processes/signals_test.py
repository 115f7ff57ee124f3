# SPDX-License-Identifier: Apache-2.0
"""Processes killed and stopped for real: each kind of process, in each phase of a push.

A phase is held by an engine that answers late or by a rank that hangs there, and is known from the
engine's journal or from rank 0's status page. PUSHROD_TEST_FULL=1 plays the whole table, else each
process and each phase have a share of it.
"""

import json
import os
import re
import signal
import subprocess
import unittest

import harness
from drill_test import REPEAT, DrillCase, repeated

FULL = os.environ.get("PUSHROD_TEST_FULL") == "1"
# Of the table's rows one in so many is played without PUSHROD_TEST_FULL.
SHARE = 6
LIMITS = {"push": "25s", "connect": "6s", "startup": "3s", "init": "2s", "request": "2600ms",
          "pause": "2s", "resume": "2s", "progress": "2s", "drain": "1s", "gather": "3s",
          "agreement": "3s", "shutdown": "2s"}
# The longest way to an end: an attempt that waits for its limits, a resend that does so again, the
# closing. The push's own limit is the bound.
BOUND = 27
# Shorter than every limit, so that the hold alone breaks nothing; a finish has three quarters of its own.
HELD_S = 1.5
REFUSED = {"route": "update_weights", "nth": 1, "do": "status", "status": 400}
BROKEN = {"route": "update_weights", "nth": 1, "do": "status", "status": 500}

# Where an engine's request holds the phase: the route, and which of its requests. The empty session
# of a job's first push has the first start and the first finish.
BY_ENGINE = {"connect": ("version", 1), "pause": ("pause", 1), "clean": ("start_weight_update", 1),
             "channel": ("init_weight_transfer_engine", 1), "start": ("start_weight_update", 2),
             "stream": ("update_weights", 1), "finish": ("finish_weight_update", 2),
             "flush": ("reset_prefix_cache", 1), "verify": ("weight_info", 3),
             "resume": ("resume", 1), "failing": ("finish_weight_update", 2)}
# Where rank 2 holds it, since the others wait there for its vote.
BY_RANK = ("check", "prepare", "agree", "confirm", "verdict", "recover")
PHASES = ("check", "connect", "prepare", "pause", "clean", "channel", "start", "stream", "agree",
          "finish", "flush", "verify", "confirm", "resume", "verdict", "recover", "failing")
KILL, STOP = signal.SIGKILL, signal.SIGSTOP


def share(rows, offset):
    """The rows that are played: all, or one in SHARE, another share for another `offset`."""
    return rows if FULL else rows[offset % SHARE::SHARE]


def alive(pid):
    """Whether a process runs: one that waits to be reaped does not."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as text:
            return text.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def children_of(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as text:
        return [int(child) for child in text.read().split()]


class SignalCase(DrillCase):
    def setUp(self):
        super().setUp()
        self.temporary = self.folder / "tmp"
        self.temporary.mkdir()
        before = os.environ.get("TMPDIR")
        os.environ["TMPDIR"] = str(self.temporary)
        self.addCleanup(lambda: os.environ.pop("TMPDIR") if before is None
                        else os.environ.update(TMPDIR=before))

    def held(self, phase, victim_holds=False, backend="tcp", keep=False, **sections):
        """Two engines and a drill of three ranks that will stand still in `phase`. The engines of
        the one before are ended, unless they are to be kept."""
        if not keep:
            for engine in self.engines:
                engine.stop()
            self.engines.clear()
        self.phase = phase
        pair = [self.engine("e0", "--world-size", "2", backend=backend),
                self.engine("e1", backend=backend)]
        self.holder = pair[1 if victim_holds else 0]
        faults, planned = [], []
        if phase in ("failing", "recover"):
            faults.append(REFUSED if phase == "failing" else BROKEN)
        if phase in BY_ENGINE:
            route, nth = BY_ENGINE[phase]
            faults.append({"route": route, "nth": nth, "do": "delay", "seconds": HELD_S})
        else:
            planned = [{"rank": 2, "at": {"phase": phase}, "kind": "hang", "seconds": HELD_S}]
        self.holder.faults(*faults)
        self.page = harness.free_port()
        sections.setdefault("timeouts", LIMITS)
        self.configured = self.config(
            pair, metrics={"listen": f'"127.0.0.1:{self.page}"'}, **sections)
        self.plan = self.folder / "plan.json"
        self.plan.write_text(json.dumps(
            {"repeat": REPEAT, "pushes": [{"version": "1", "faults": planned}]}))
        return pair

    def drill_command(self, *flags):
        return [harness.PROGRAM, "drill", "--config", str(self.configured), "--plan",
                str(self.plan), "--report", str(self.folder / "drill.json"), *flags]

    def three_ranks(self):
        return self.launch([self.drill_command()] * 3)

    def parent(self):
        with open(self.folder / "rank-0.log", "wb") as log:
            job = subprocess.Popen(self.drill_command("--ranks", "3"), stdin=subprocess.DEVNULL,
                                   stdout=log, stderr=log)
        self.children.append(job)
        return job

    def status_phase(self):
        try:
            return json.loads(harness.request(self.page, "GET", "/status")[1])["phase"]
        except OSError:
            return ""

    def await_hold(self):
        if self.phase in BY_ENGINE:
            route, nth = BY_ENGINE[self.phase]
            self.await_that(lambda: len(self.holder.calls(route)) >= nth, 20,
                            f"request {nth} of {route}")
        else:
            self.await_that(lambda: self.status_phase() == self.phase, 20, self.phase)

    def ends(self, ranks, among):
        """What some ranks say of the push, each within the bound: "done", "unknown" or the cause
        of its failure."""
        told = {}
        for rank in among:
            code = ranks[rank].wait(timeout=BOUND * harness.SLOW)
            self.assertIn(code, (0, 3), self.logs())
            log = self.rank_log(rank)
            # Nobody who misses the last vote may guess what it came to.
            unknown = "outcome of this push could not be learnt" in log
            causes = re.findall(r"Cause: (.*?) \[", log)
            told[rank] = "done" if code == 0 else "unknown" if unknown else causes[-1]
        return told

    def assert_one_verdict(self, told, phase):
        # Without rank 0 each survivor names the phase in which it was: one may have heard the last
        # vote's outcome when another had not.
        known = {re.sub(r"^rank 0, \w+, attempt \d: (?=rank 0 is gone)", "", each)
                 for each in told.values() if each != "unknown"}
        if phase == "check" and "done" not in known:
            return  # before they have met each rank has its own view
        if phase in ("recover", "failing"):
            # That outcome may have been the engine's failure.
            known = {each for each in known if not each.startswith("rank 0 is gone")}
            self.assertNotIn("done", known, self.logs())
        self.assertLessEqual(len(known), 1, self.logs())

    def logs(self):
        return "\n".join(path.read_text(errors="replace")
                         for path in sorted(self.folder.glob("rank-*.log")))

    def assert_whole(self, engine, version="1"):
        """It never generated, nor told the version, with other weights than the version's."""
        state = engine.state()
        complete = state["weights"] == repeated(version)
        self.assertFalse(any(each["torn"] for each in state["resumes"]), state["resumes"])
        if state["version"] == version or (state["resumes"] and engine.calls("update_weights")):
            self.assertTrue(complete, self.logs())
        if not state["paused"] and engine.calls("start_weight_update"):
            self.assertEqual((complete, state["version"]), (True, version), self.logs())
        return state

    def assert_next_succeeds(self, engines):
        for engine in engines:
            engine.faults()
            # A request of a dead job that is held back would be carried out in the middle of the next.
            self.await_that(
                lambda e=engine: len(e.journal("reply")) == len(e.journal("request")), 20,
                f"engine {engine.name} to answer what it was asked")
        self.plan.write_text(json.dumps({"repeat": REPEAT, "pushes": [{"version": "2"}]}))
        done = subprocess.run(self.drill_command("--ranks", "3"), stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              timeout=BOUND * harness.SLOW, check=False)
        self.assertEqual(done.returncode, 0, done.stdout.decode(errors="replace"))
        for engine in engines:
            self.assert_current(engine, "2", repeated("2"))
        self.assertEqual(self.leftovers(""), ([], []))

    def leftovers(self, job):
        """What is in this test's TMPDIR, and what one of its jobs has in shared memory."""
        prefix = f"pushrod.test-{os.getpid()}{job}."
        return (sorted(path.name for path in self.temporary.iterdir()),
                sorted(name for name in os.listdir("/dev/shm") if name.startswith(prefix)))

    def assert_whose_fault(self, number, phase, told):
        for rank, each in told.items():
            if each not in ("done", "unknown"):
                engines_own = phase in ("recover", "failing") and "update_weights answered" in each
                self.assertTrue(f"rank {number} is gone" in each or engines_own or phase == "check",
                                self.logs())
            elif each == "done":
                # The one that fell had given its last vote.
                self.assertEqual(phase, "verdict", f"rank {rank}: {self.logs()}")

    def rank_falls(self, number, order, phase, backend="tcp"):
        engines = self.held(phase, backend=backend)
        ranks = self.three_ranks()
        self.await_hold()
        ranks[number].send_signal(order)
        told = self.ends(ranks, [rank for rank in range(3) if rank != number])
        self.assert_one_verdict(told, phase)
        self.assert_whose_fault(number, phase, told)
        if order == STOP:
            before = [len(engine.journal("request")) for engine in engines]
            ranks[number].send_signal(signal.SIGCONT)
            woken = self.ends(ranks, [number])[number]
            self.assertEqual(woken == "done", "done" in told.values(), self.logs())
            # Rank 0 was fenced, and no other rank ever talks to engines.
            self.assertEqual([len(engine.journal("request")) for engine in engines], before)
        # The vote of the rank that fell may have been there already: it is what engines were asked
        # that counts, not the phase in which it fell.
        started = any(engine.calls("start_weight_update") for engine in engines)
        for engine in engines:
            state = self.assert_whole(engine)
            if number != 0:
                self.assertEqual(state["session"], "closed", self.logs())
                self.assertTrue(started or not state["paused"], "put back as it was found")
        self.assert_next_succeeds(engines)


class RankZero(SignalCase):
    def test_killed(self):
        for phase in share(PHASES, 0):
            with self.subTest(phase=phase):
                self.rank_falls(0, KILL, phase)

    def test_stopped_and_woken(self):
        for phase in share(PHASES, 1):
            with self.subTest(phase=phase):
                self.rank_falls(0, STOP, phase)

    def test_over_shared_memory(self):
        for phase, order in share([(phase, order) for phase in ("channel", "stream", "agree")
                                   for order in (KILL, STOP)], 2):
            with self.subTest(phase=phase, order=order):
                self.rank_falls(0, order, phase, backend="shm")


class AnotherRank(SignalCase):
    def test_killed(self):
        for phase in share(PHASES, 2):
            with self.subTest(phase=phase):
                self.rank_falls(1, KILL, phase)

    def test_stopped_and_woken(self):
        for phase in share(PHASES, 3):
            with self.subTest(phase=phase):
                self.rank_falls(1, STOP, phase)

    def test_over_shared_memory(self):
        for phase, order in share([(phase, order) for phase in ("channel", "stream", "agree")
                                   for order in (KILL, STOP)], 1):
            with self.subTest(phase=phase, order=order):
                self.rank_falls(1, order, phase, backend="shm")


class Parent(SignalCase):
    def killed(self, phase, backend="tcp"):
        engines = self.held(phase, backend=backend)
        job = self.parent()
        self.await_hold()
        ranks = children_of(job.pid)
        self.assertEqual(len(ranks), 3)
        job.kill()
        job.wait()
        self.await_that(lambda: not any(alive(pid) for pid in ranks), 5, "its ranks to end")
        for engine in engines:
            self.assert_whole(engine)
        self.assert_next_succeeds(engines)

    def test_killed(self):
        for phase in share(PHASES, 4):
            with self.subTest(phase=phase):
                self.killed(phase)

    def test_killed_over_shared_memory(self):
        for phase in ("channel", "stream", "agree") if FULL else ("stream",):
            with self.subTest(phase=phase):
                self.killed(phase, backend="shm")

    def test_stopped_it_keeps_nobody_from_the_push(self):
        for phase in share(PHASES, 5):
            with self.subTest(phase=phase):
                engines = self.held(phase)
                job = self.parent()
                self.await_hold()
                ranks = children_of(job.pid)
                job.send_signal(STOP)
                self.await_that(lambda: not any(alive(pid) for pid in ranks), BOUND, "the push")
                good = phase != "failing"
                for engine in engines:
                    if good:
                        self.assert_current(engine, "1", repeated("1"))
                    else:
                        self.assertTrue(self.assert_whole(engine)["paused"])
                job.send_signal(signal.SIGCONT)
                self.assertEqual(job.wait(timeout=5 * harness.SLOW), 0 if good else 3, self.logs())
                self.assert_next_succeeds(engines)

    def test_only_the_dead_runs_leftovers_are_removed(self):
        # A living push whose engine keeps it waiting for as long as this test looks at it.
        self.held("stream", backend="shm", timeouts={**LIMITS, "push": "90s", "request": "60s",
                                                     "progress": "60s", "drain": "60s"})
        self.holder.faults({"route": "update_weights", "nth": 1, "do": "delay", "seconds": 60})
        living = self.parent()
        self.await_hold()
        kept = self.leftovers("")
        self.assertEqual([bool(part) for part in kept], [True, True], kept)
        self.held("stream", backend="shm", keep=True, job={"job": f"test-{os.getpid()}b"})
        dead = self.parent()
        self.await_hold()
        ranks = children_of(dead.pid)
        dead.kill()
        dead.wait()
        self.await_that(lambda: not any(alive(pid) for pid in ranks), 5, "its ranks to end")
        # What is in shared memory may go at any start on this host, what is in TMPDIR at ours only.
        self.assertGreater(len(self.leftovers("")[0]), len(kept[0]))
        self.holder.faults()
        self.plan.write_text(json.dumps({"repeat": REPEAT, "pushes": [{"version": "2"}]}))
        done = subprocess.run(self.drill_command("--ranks", "2"), stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, timeout=BOUND * harness.SLOW, check=False)
        self.assertEqual(done.returncode, 0)
        self.assertEqual(self.leftovers("b")[1], [])
        self.assertEqual(self.leftovers(""), kept)
        self.assertIsNone(living.poll())
        living.send_signal(signal.SIGTERM)
        self.assertEqual(living.wait(timeout=20 * harness.SLOW), 143, self.logs())
        self.assertEqual(self.leftovers(""), ([], []))


class AnEngine(SignalCase):
    def falls(self, order, phase, policy):
        engines = self.held(phase, victim_holds=True, engines={"on_loss": policy})
        victim = engines[1]
        ranks = self.three_ranks()
        self.await_hold()
        victim.process.send_signal(order)
        told = self.ends(ranks, range(3))
        # In verdict nothing is asked of engines any more.
        good = policy == "quarantine" or phase == "verdict"
        self.assertEqual(len(set(told.values())), 1, self.logs())
        self.assertEqual(told[0] == "done", good, self.logs())
        report = json.loads((self.folder / "drill.json").read_text())[0]
        self.assertEqual(report["dropped_engines"],
                         ["e1"] if good and phase != "verdict" else [], self.logs())
        if good:
            self.assert_current(engines[0], "1", repeated("1"))
        else:
            state = self.assert_whole(engines[0])
            self.assertEqual(state["session"], "closed", self.logs())
            if not engines[0].calls("start_weight_update"):
                self.assertFalse(state["paused"], "put back as it was found")
        if order == KILL:
            victim.stop()
            engines[1] = self.engine("e1", port=victim.port)
        else:
            victim.process.send_signal(signal.SIGCONT)
            # It first works off what was sent to it meanwhile.
            self.await_that(lambda: self.assert_whole(victim), 20, "the engine that was woken")
        self.assert_next_succeeds(engines)

    def each(self, order, policy, offset):
        for phase in share(PHASES, offset):
            with self.subTest(phase=phase):
                self.falls(order, phase, policy)

    def test_killed(self):
        self.each(KILL, "fail", 3)

    def test_killed_under_quarantine(self):
        self.each(KILL, "quarantine", 5)

    def test_stopped_and_woken(self):
        self.each(STOP, "fail", 4)

    def test_stopped_and_woken_under_quarantine(self):
        self.each(STOP, "quarantine", 2)


if __name__ == "__main__":
    unittest.main(verbosity=2)
