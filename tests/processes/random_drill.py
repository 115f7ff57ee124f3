# SPDX-License-Identifier: Apache-2.0
"""Drills drawn at random: real ranks and reference engines, some of which fail as drawn, then a push
without faults that must mend everything.

usage: random_drill.py MINUTES [FIRST_SEED]
A round that breaks a promise prints its seed and what was drawn; `random_drill.py 0 SEED` repeats it.
CTest plays a few rounds (the class below).
"""

import json
import os
import random
import subprocess
import sys
import time
import unittest

import harness
from drill_test import REPEAT, repeated

ROUTES = ["pause", "is_paused", "init_weight_transfer_engine", "start_weight_update",
          "update_weights", "finish_weight_update", "weight_info", "update_weight_version", "reset_prefix_cache",
          "resume", "server_info", "version"]
ANSWERS = [{"do": "status", "status": 500}, {"do": "status", "status": 503},
           {"do": "status", "status": 400, "body": "no"}, {"do": "reset"}, {"do": "close"},
           {"do": "apply_reset"}, {"do": "delay", "seconds": 0.3}, {"do": "hang"},
           {"do": "raw", "bytes": "HTTP/1.1 200 OK\r\n\r\n<html>"}, {"do": "die"},
           {"do": "freeze_core"}]
READING = [{"do": "fail_after_chunks", "after_chunks": 1}, {"do": "die_after_chunks", "after_chunks": 1},
           {"do": "stop_reading"}, {"do": "worker_fails"}]
PHASES = ["check", "connect", "prepare", "pause", "clean", "channel", "start", "stream", "agree",
          "finish", "flush", "verify", "confirm", "resume", "verdict"]
MOST_FAILURES = 20  # then something is wrong with the machine, or with everything
TIMEOUTS = {"push": "30s", "connect": "2s", "startup": "3s", "init": "2s", "request": "2s",
            "pause": "2s", "resume": "2s", "progress": "2s", "drain": "1s", "gather": "3s",
            "agreement": "2s", "shutdown": "3s"}


def engine_fault(draw):
    if draw.random() < 0.3:
        return {"route": "update_weights", "nth": draw.randint(1, 2), **draw.choice(READING)}
    nth = "every" if draw.random() < 0.1 else draw.randint(1, 3)
    return {"route": draw.choice(ROUTES), "nth": nth, **draw.choice(ANSWERS)}


def rank_fault(draw, ranks, draft):
    kind = draw.choice(["throw", "throw", "hang", "exit", "stop", "missing", "extra", "reorder",
                        "wrong_shape"])
    stream = kind in ("missing", "extra", "reorder", "wrong_shape")
    if stream or draw.random() < 0.6:
        at = {"tensor": draw.randrange(REPEAT["count"] - 1)}
    else:
        at = {"phase": draw.choice(PHASES)}
    fault = {"rank": draw.randrange(ranks), "at": at, "kind": kind}
    if kind in ("hang", "stop"):
        fault["seconds"] = draw.choice([0.2, 1, 60])
    if draft and "tensor" in at and draw.random() < 0.5:
        fault["draft"] = True
    return fault


class Round:
    """What one seed draws."""

    def __init__(self, seed):
        draw = random.Random(seed)
        self.seed, self.ranks = seed, draw.randint(1, 4)
        shm = draw.random() < 0.3
        self.engines = [{"backend": "shm" if shm or draw.random() < 0.1 else "tcp",
                         "workers": draw.choice([1, 1, 2, 3])} for _ in range(draw.randint(1, 3))]
        plain = all(engine["backend"] == "tcp" for engine in self.engines)
        draft = plain and draw.random() < 0.2
        self.owners = draw.randint(2, self.ranks) if plain and self.ranks > 1 and draw.random() < 0.25 else 0
        self.push = {"resend": "true"}
        if draw.random() < 0.2:
            self.push["stop"] = "pass"
        if draw.random() < 0.2:
            self.push["check_replicas"] = "digest"
        if draw.random() < 0.2:
            self.push["verify"] = "checksum"
        self.quarantine = draw.random() < 0.4
        self.pushes = []
        for number in range(draw.randint(1, 3)):
            faults = [rank_fault(draw, self.ranks, draft)
                      for _ in range(draw.choice([0, 0, 1, 1, 2]))]
            self.pushes.append({"version": f"{seed}.{number}", "faults": faults,
                                **({"draft": True} if draft else {})})
        self.faults = [[engine_fault(draw) for _ in range(draw.choice([0, 0, 1, 2]))]
                       for _ in self.engines]

    def needs_restart(self, number):
        """An operator's part: a frozen core stays so, and workers of one engine whose replies were
        mixed up too often are given up until then."""
        return (self.engines[number]["workers"] > 1 and bool(self.faults[number]) or
                any(fault["do"] == "freeze_core" for fault in self.faults[number]))

    def nobody_may_be_left(self):
        """To write the report: every rank may have ended itself."""
        gone = {fault["rank"] for push in self.pushes for fault in push["faults"]
                if fault["kind"] in ("exit", "stop")}
        return len(gone) == self.ranks

    def plan(self, pushes):
        tensors = {"repeat": REPEAT}
        if self.owners:
            tensors = {"tensors": [
                {"name": REPEAT["prefix"].format(i), "dtype": REPEAT["dtype"],
                 "shape": REPEAT["shape"], "owner": i * self.owners // REPEAT["count"]}
                for i in range(REPEAT["count"])]}
        return json.dumps({**tensors, "pushes": pushes})


class RandomCase(harness.Case):
    def play(self, seed):
        drawn = Round(seed)
        try:
            self.rounds(drawn)
        except (AssertionError, subprocess.TimeoutExpired) as error:
            raise AssertionError(f"seed {seed}: {error}\n{json.dumps(vars(drawn), indent=1)}") from None
        finally:
            for engine in self.engines:
                engine.stop()
            self.engines.clear()

    def rounds(self, drawn):
        engines = [self.start(i, each) for i, each in enumerate(drawn.engines)]
        for engine, faults in zip(engines, drawn.faults):
            engine.faults(*faults)
        config = self.config(
            engines, timeouts=TIMEOUTS, push=drawn.push,
            engines={"on_loss": "quarantine"} if drawn.quarantine else {},
            transport={"owners": "true"} if drawn.owners else {})
        text = self.drill(drawn, config, engines)
        for number, engine in enumerate(engines):
            if self.alive(engine) and not drawn.needs_restart(number):
                engine.faults()
            else:
                engine.stop()
                self.engines.remove(engine)
                engines[number] = self.start(number, drawn.engines[number], engine.port)
        self.heal(drawn, config, engines, text)

    def start(self, number, drawn, port=0):
        engine = self.engine(f"e{number}", "--world-size", str(drawn["workers"]), port=port,
                             backend=drawn["backend"])
        engine.control({"set": {"draft_model": True}})
        return engine

    def pushed(self, drawn, config, pushes, name):
        plan, report = self.folder / f"{name}.json", self.folder / f"{name}-report.json"
        flights = self.folder / f"{name}-flights"
        plan.write_text(drawn.plan(pushes))
        done = subprocess.run(
            [harness.PROGRAM, "drill", "--config", str(config), "--plan", str(plan), "--ranks",
             str(drawn.ranks), "--report", str(report), "--flight-record", str(flights)],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            timeout=(60 + 40 * len(pushes)) * harness.SLOW, check=False)
        text = done.stdout.decode(errors="replace")
        if not report.exists() and drawn.nobody_may_be_left():
            return 3, [], text
        self.assertTrue(report.exists(), text)
        for path in flights.glob("flight-*.jsonl") if flights.exists() else ():
            told = subprocess.run([harness.PROGRAM, "explain", str(path)], capture_output=True,
                                  timeout=30 * harness.SLOW, check=False)
            self.assertEqual(told.returncode, 0, (told.stdout, told.stderr, text))
            self.assertIn(b"the recorded states follow", told.stdout, text)
            path.unlink()
        reports = json.loads(report.read_text())
        report.unlink()
        return done.returncode, reports, text

    def drill(self, drawn, config, engines):
        code, reports, text = self.pushed(drawn, config, drawn.pushes, "drawn")
        self.assertIn(code, (0, 2, 3), text)
        self.assertNotIn(".yaml:", text)
        for report in reports:
            self.assertLessEqual(report["attempts"], 2, text)
            self.assertLessEqual(report["duration_s"], 31 * harness.SLOW, text)
        for engine in engines:
            if self.alive(engine):
                self.sound(engine, text)
        last = reports[-1] if reports else {"outcome": "unknown"}
        if last["outcome"] in ("done", "recovered"):
            for engine in engines:
                if engine.name not in last["dropped_engines"] and self.alive(engine):
                    state = engine.state()
                    self.assertEqual((state["paused"], state["version"]), (False, last["version"]),
                                     (engine.name, text))
        return text

    def alive(self, engine):
        """One that answers no more has ended, or is about to."""
        try:
            engine.state()
            return True
        except OSError:
            engine.process.wait(timeout=10 * harness.SLOW)
            return False

    def sound(self, engine, text):
        """It never generated from torn weights, nor does it from others than its version's."""
        state = engine.state()
        for resume in state["resumes"]:
            self.assertFalse(resume["torn"], (engine.name, text))
        if not state["paused"] and state["version"] != "default":
            self.assertFalse(state["torn"], (engine.name, text))
            self.assertEqual(state["weights"], repeated(state["version"]), (engine.name, text))

    def heal(self, drawn, config, engines, before):
        draft = {"draft": True} if "draft" in drawn.pushes[0] else {}
        version = f"{drawn.seed}.healed"
        code, reports, text = self.pushed(drawn, config, [{"version": version, **draft}], "healed")
        self.assertEqual((code, reports[0]["outcome"]), (0, "done"), before + text)
        for engine in engines:
            self.assert_current(engine, version, repeated(version))
        self.assertEqual([name for name in os.listdir("/dev/shm")
                          if name.startswith(f"pushrod.test-{os.getpid()}.")], [], before + text)


class FewRounds(RandomCase):
    def test_seeds(self):
        for seed in range(1, 7):
            with self.subTest(seed=seed):
                self.play(seed)


class OneRound(RandomCase):
    """Of the command line; no part of CTest."""

    def __init__(self, seed):
        super().__init__("runTest")
        self.seed = seed

    def runTest(self):
        self.play(self.seed)


def main():
    end = time.monotonic() + 60 * float(sys.argv[1])
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    rounds, failed = 0, []
    while (rounds == 0 or time.monotonic() < end) and len(failed) < MOST_FAILURES:
        result = unittest.TestResult()
        OneRound(seed).run(result)
        rounds += 1
        for _, trace in result.failures + result.errors:
            failed.append(seed)
            print(trace, flush=True)
        seed += 1
    print(f"{rounds} rounds, {len(failed)} failed: {failed}")
    return 1 if failed else 0


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1].replace(".", "").isdigit():
        sys.exit(main())
    unittest.main(verbosity=2)
