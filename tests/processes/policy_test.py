# SPDX-License-Identifier: Apache-2.0
"""What is left to configuration: engines lost under quarantine, waves, sleeping engines, and a list of
engines in a file."""

import json
import os
import pathlib
import subprocess
import unittest

import harness

SHORT = {"push": "30s", "connect": "2s", "startup": "3s", "init": "3s", "request": "3s",
         "pause": "3s", "resume": "4s", "progress": "3s", "drain": "2s", "gather": "5s",
         "agreement": "3s", "shutdown": "2s"}
QUARANTINE = {"on_loss": "quarantine"}


class Job:
    """Ranks that live through several pushes, given to them by orders on standard input."""

    def __init__(self, case, config, ranks=1):
        self.case = case
        folder = case.folder / f"job-{os.getpid()}-{len(case.children)}"
        folder.mkdir(mode=0o700)
        self.children, self.logs = [], []
        for rank in range(ranks):
            log = open(folder / f"rank-{rank}.log", "wb")
            self.logs.append(pathlib.Path(log.name))
            child = subprocess.Popen(
                [harness.PROGRAM, "push", "--config", str(config), "--rank", str(rank),
                 "--world-size", str(ranks), "--supervised", str(folder), "--orders"],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log)
            log.close()
            self.children.append(child)
            case.children.append(child)
        case.addCleanup(self.close)
        self.metrics = [self.line(child)["metrics"] for child in self.children][0]

    def line(self, child):
        line = child.stdout.readline()
        if not line:
            raise AssertionError(f"a rank ended: {child.wait()}\n{self.log()}")
        return json.loads(line)

    def push(self, version, checkpoint):
        order = json.dumps({"version": version, "checkpoint": str(checkpoint)}) + "\n"
        for child in self.children:
            child.stdin.write(order.encode())
            child.stdin.flush()
        return [self.line(child) for child in self.children][0]

    def series(self, name):
        """{engine: value} of a gauge."""
        page = harness.request(int(self.metrics.rsplit(":", 1)[1]), "GET", "/metrics")[1]
        lines = [line for line in page.splitlines() if line.startswith(name + "{")]
        return {line.split('engine="')[1].split('"')[0]: float(line.split()[-1]) for line in lines}

    def log(self):
        return "\n".join(path.read_text(errors="replace") for path in self.logs)

    def close(self):
        for child in self.children:
            child.stdin.close()
            child.wait(timeout=30 * harness.SLOW)
            child.stdout.close()


class QuarantineCase(harness.Case):
    def setUp(self):
        super().setUp()
        self.model, self.digests = self.checkpoint("v1", harness.layered("1", 2, 32))

    def trio(self):
        """Two good engines around one to be lost."""
        for engine in self.engines:
            engine.stop()
        self.engines.clear()
        return [self.engine("a"), self.engine("lost"), self.engine("b", "--world-size", "2")]

    def assert_left_out(self, code, report, text, engines):
        self.assertEqual(code, 0, text)
        self.assertEqual(report["dropped_engines"], ["lost"], text)
        for engine in engines:
            if engine.name != "lost":
                self.assert_current(engine, "1", self.digests)
        entry = report["engines"][1]
        self.assertTrue(entry["error"], text)
        self.assertIn("the next push takes it in again", entry["remedy"])
        self.assertTrue(any("engine lost is left out" in note for note in report["notes"]), report)
        return entry

    def once(self, *faults, config=None, ranks=2):
        engines = self.trio()
        engines[1].faults(*faults)
        config = self.config(engines, engines=config or QUARANTINE, timeouts=SHORT)
        return engines, self.push(config, self.model, "1", ranks=ranks)


class KilledInEachPhase(QuarantineCase):
    # Where the empty session comes first, the second request is the push's own.
    PHASES = {"connect": ("version", 1), "pause": ("pause", 1), "clean": ("start_weight_update", 1),
              "channel": ("init_weight_transfer_engine", 1), "start": ("start_weight_update", 2),
              "stream": ("update_weights", 1), "finish": ("finish_weight_update", 2),
              "flush": ("reset_prefix_cache", 1), "resume": ("resume", 1)}
    SAME_CHANNEL = ("channel", "start", "stream")

    def test_its_process(self):
        for phase, (route, nth) in self.PHASES.items():
            with self.subTest(phase=phase):
                engines, (code, report, text) = self.once({"route": route, "nth": nth, "do": "die"})
                entry = self.assert_left_out(code, report, text, engines)
                self.assertEqual(entry["outcome"], "lost", text)
                self.assertEqual(report["outcome"],
                                 "recovered" if phase in self.SAME_CHANNEL else "done", text)

    def test_in_the_middle_of_the_bytes(self):
        engines, (code, report, text) = self.once(
            {"route": "update_weights", "nth": 1, "do": "die_after_chunks", "after_chunks": 2})
        self.assert_left_out(code, report, text, engines)


class FrozenCore(QuarantineCase):
    def test_in_each_phase(self):
        for phase, (route, nth) in {"pause": ("pause", 1), "stream": ("update_weights", 1),
                                    "finish": ("finish_weight_update", 2),
                                    "resume": ("resume", 1)}.items():
            with self.subTest(phase=phase):
                engines, (code, report, text) = self.once(
                    {"route": route, "nth": nth, "do": "freeze_core"})
                self.assert_left_out(code, report, text, engines)


class Refusals(QuarantineCase):
    def test_of_one_engine_alone(self):
        for route, nth in (("pause", 1), ("init_weight_transfer_engine", 1), ("update_weights", 1),
                           ("finish_weight_update", 2), ("resume", 1)):
            with self.subTest(route=route):
                engines, (code, report, text) = self.once(
                    {"route": route, "nth": nth, "do": "status", "status": 400,
                     "body": '{"error":{"message":"not I"}}'})
                self.assert_left_out(code, report, text, engines)
                state = engines[1].state()
                self.assertEqual(state["resumes"], [], "what is left out is never resumed")
                self.assertEqual(state["session"], "closed", text)

    def test_what_comes_twice_is_given_up(self):
        engines, (code, report, text) = self.once(
            {"route": "weight_info", "nth": [3, 4, 5, 6, 7, 8, 9, 10, 11, 12], "do": "status",
             "status": 500, "body": '{"error":{"message":"boom"}}'})
        self.assert_left_out(code, report, text, engines)
        self.assertEqual(report["outcome"], "recovered")

    def test_of_all_of_them_fails_the_push(self):
        engines = self.trio()
        for engine in engines:
            engine.faults({"route": "pause", "nth": "every", "do": "status", "status": 400})
        config = self.config(engines, engines=QUARANTINE, timeouts=SHORT)
        code, report, text = self.push(config, self.model, "1", ranks=2)
        self.assertEqual(code, 3, text)
        self.assertEqual(report["dropped_engines"], [])


class MinHealthy(QuarantineCase):
    DEAD = {"route": "pause", "nth": "every", "do": "die"}

    def test_not_reached(self):
        for wanted in ("3", '"67%"', '"100%"'):
            with self.subTest(min_healthy=wanted):
                engines, (code, report, text) = self.once(
                    self.DEAD, config={**QUARANTINE, "min_healthy": wanted})
                self.assertEqual(code, 3, text)
                self.assertEqual(report["outcome"], "failed")
                self.assertEqual(report["dropped_engines"], [])
                self.assertEqual(report["first_cause"]["engine"], "lost")
                self.assertIn("engines.min_healthy", json.dumps(report["notes"]))
                for engine in (engines[0], engines[2]):
                    self.assertFalse(engine.state()["paused"], "put back as it was found")

    def test_reached(self):
        for wanted in ("2", '"66%"', '"1%"'):
            with self.subTest(min_healthy=wanted):
                engines, (code, report, text) = self.once(
                    self.DEAD, config={**QUARANTINE, "min_healthy": wanted})
                self.assert_left_out(code, report, text, engines)

    def test_without_quarantine_a_loss_fails_the_push(self):
        engines, (code, report, text) = self.once(self.DEAD, config={"on_loss": "fail"})
        self.assertEqual(code, 3, text)
        self.assertEqual(report["dropped_engines"], [])


class Readmission(QuarantineCase):
    def test_by_the_next_push_that_reaches_and_verifies_it(self):
        engines = self.trio()
        engines[1].faults({"route": "finish_weight_update", "nth": 2, "do": "die"})
        config = self.config(engines, engines=QUARANTINE, timeouts=SHORT,
                             metrics={"listen": '"127.0.0.1:0"'})
        job = Job(self, config, ranks=2)
        gauge = "pushrod_engine_quarantined"
        first = job.push("1", self.model)
        self.assertEqual((first["exit"], first["report"]["dropped_engines"]), (0, ["lost"]),
                         job.log())
        self.assertEqual(job.series(gauge), {"a": 0, "lost": 1, "b": 0})

        again = job.push("1", self.model)
        self.assertEqual((again["exit"], again["report"]["dropped_engines"]), (0, ["lost"]),
                         "it is still away")
        self.assertEqual(job.series(gauge)["lost"], 1)

        engines[1] = self.engine("lost", port=engines[1].port)
        model, digests = self.checkpoint("v2", harness.layered("2", 2, 32))
        third = job.push("2", model)
        self.assertEqual((third["exit"], third["report"]["dropped_engines"]), (0, []), job.log())
        self.assertEqual(third["report"]["outcome"], "done")
        self.assertEqual(job.series(gauge), {"a": 0, "lost": 0, "b": 0})
        for engine in engines:
            self.assert_current(engine, "2", digests)
        # The channel is whole again: nobody's is built a second time.
        inits = [len(engine.calls("init_weight_transfer_engine")) for engine in engines]
        self.assertEqual(job.push("3", self.model)["exit"], 0, job.log())
        self.assertEqual(
            [len(engine.calls("init_weight_transfer_engine")) for engine in engines], inits)


class Waves(harness.Case):
    def resumes(self, wave, count=4, **fault):
        engines = [self.engine(f"e{i}-{wave}") for i in range(count)]
        for engine in engines:
            engine.faults({"route": "resume", "nth": 1, "do": "delay", "seconds": 0.3})
        if fault:
            engines[0].faults({"route": "resume", "nth": "every", **fault})
        model, digests = self.checkpoint(f"w{wave}", harness.layered("1", 1, 16))
        config = self.config(engines, push={"wave": wave}, engines=QUARANTINE, timeouts=SHORT)
        code, report, text = self.push(config, model, "1", ranks=1)
        return engines, digests, code, report, text

    def test_at_most_so_many_at_a_time(self):
        for wave, least in ((0, 0.3), (1, 1.2), (2, 0.6), (3, 0.6)):
            with self.subTest(wave=wave):
                engines, digests, code, report, text = self.resumes(wave)
                self.assertEqual(code, 0, text)
                self.assertGreaterEqual(report["phases"]["resume"], least)
                if wave == 0:
                    self.assertLess(report["phases"]["resume"], 1.0 * harness.SLOW)
                for engine in engines:
                    self.assert_current(engine, "1", digests)

    def test_a_silent_one_leaves_the_others_their_time(self):
        engines, digests, code, report, text = self.resumes(1, do="hang")
        self.assertEqual(code, 0, text)
        self.assertEqual(report["dropped_engines"], [engines[0].name], text)
        for engine in engines[1:]:
            self.assert_current(engine, "1", digests)


class Wake(harness.Case):
    def setUp(self):
        super().setUp()
        self.model, self.digests = self.checkpoint("v1", harness.layered("1", 1, 16))

    def sleeping(self, wake, release="0.33", level=1):
        engine = self.engine(f"e-{wake}-{release}-{level}", "--profile", release)
        status, _ = harness.request(engine.port, "POST", f"/sleep?level={level}")
        self.assertEqual(status, 200)
        config = self.config([engine], engines={"wake": wake}, timeouts=SHORT)
        return engine, self.push(config, self.model, "1", ranks=1)

    def tags(self, engine):
        return [line.get("query") for line in engine.calls("wake_up")]

    def test_refused_when_asleep_and_not_allowed(self):
        engine, (code, report, text) = self.sleeping("false")
        self.assertEqual(code, 3, text)
        self.assertEqual(report["first_cause"]["phase"], "connect")
        self.assertIn("engines.wake", report["first_cause"]["message"])
        self.assertEqual(engine.calls("pause") + engine.calls("wake_up"), [])

    def test_all_wakes_it_and_it_generates(self):
        for release in ("0.23", "0.24", "0.31", "0.32", "0.33"):
            for level in (1, 2):
                with self.subTest(release=release, level=level):
                    engine, (code, _, text) = self.sleeping("all", release, level)
                    if release in ("0.23", "0.24"):
                        self.assertEqual(code, 3, "it has no version route")
                        self.assertEqual(engine.calls("wake_up"), [])
                        continue
                    self.assertEqual(code, 0, text)
                    self.assertEqual(len(engine.calls("wake_up")), 2)
                    self.assert_current(engine, "1", self.digests)
                    routes = [line["path"] for line in engine.journal("request")]
                    self.assertLess(routes.index("/pause"), routes.index("/wake_up"))
                    self.assertLess(routes.index("/wake_up"), routes.index("/start_weight_update"))

    def test_a_release_that_wakes_its_scheduling_is_paused_again(self):
        engine = self.engine("old", "--profile", "0.23")
        harness.request(engine.port, "POST", "/sleep?level=1")
        config = self.config([engine], engines={"wake": "all"}, push={"verify": "none"},
                             timeouts=SHORT)
        code, _, text = self.push(config, self.model, "1", ranks=1)
        self.assertEqual(code, 0, text)
        self.assertEqual(len(engine.calls("wake_up")), 2)
        self.assertGreaterEqual(len(engine.calls("pause")), 2)
        self.assertEqual(engine.state()["weights"], self.digests)

    def test_weights_leaves_the_cache_to_others(self):
        engine, (code, report, text) = self.sleeping("weights")
        self.assertEqual(code, 0, text)
        self.assertEqual(len(engine.calls("wake_up")), 1)
        self.assertEqual(engine.calls("resume"), [])
        state = engine.state()
        self.assertTrue(state["paused"])
        self.assertEqual((state["version"], state["weights"]), ("1", self.digests))
        self.assertIn("KV cache", report["engines"][0]["remedy"])

    def test_merely_paused_is_not_asleep(self):
        for wake in ("false", "all"):
            with self.subTest(wake=wake):
                engine = self.engine(f"paused-{wake}")
                harness.request(engine.port, "POST", "/pause")
                config = self.config([engine], engines={"wake": wake}, timeouts=SHORT)
                code, _, text = self.push(config, self.model, "1", ranks=1)
                self.assertEqual(code, 0, text)
                self.assertEqual(engine.calls("wake_up"), [])
                self.assert_current(engine, "1", self.digests)


class EngineFile(harness.Case):
    def setUp(self):
        super().setUp()
        self.file = self.folder / "engines.yaml"
        self.models = [self.checkpoint(f"v{i}", harness.layered(str(i), 1, 16)) for i in range(7)]

    def write(self, *engines):
        self.file.write_text("".join(f"- {{url: \"{e.url}\", name: {e.name}}}\n" for e in engines))

    def start(self):
        self.write(*self.engines)
        config = self.config([], engines={"file": str(self.file)}, timeouts=SHORT,
                             metrics={"listen": '"127.0.0.1:0"'})
        text = config.read_text().replace("  list:\n", "")
        config.write_text(text)
        return Job(self, config, ranks=2)

    def push(self, job, version):
        result = job.push(str(version), self.models[version][0])
        self.assertEqual(result["exit"], 0, result["summary"] + job.log())
        return result["report"]

    def test_engines_come_and_go(self):
        a, b = self.engine("a"), self.engine("b")
        job = self.start()
        self.push(job, 1)
        c = self.engine("c")
        self.write(a, c)
        report = self.push(job, 2)
        self.assertEqual([each["name"] for each in report["engines"]], ["a", "c"])
        self.assert_current(a, "2", self.models[2][1])
        self.assert_current(c, "2", self.models[2][1])
        self.assert_current(b, "1", self.models[1][1])
        self.assertEqual(set(job.series("pushrod_engine_current")), {"a", "c"})
        # A staying engine's ledger says that it needs no empty session; a new one's does not know.
        self.assertEqual((len(a.calls("start_weight_update")), len(c.calls("start_weight_update"))),
                         (3, 2))
        self.write(c, b, a)
        self.push(job, 3)
        for engine in (a, b, c):
            self.assert_current(engine, "3", self.models[3][1])
        inits = len(a.calls("init_weight_transfer_engine"))
        self.push(job, 4)
        self.assertEqual(len(a.calls("init_weight_transfer_engine")), inits, "the list stayed")

    def test_a_broken_file_fails_one_push_only(self):
        a = self.engine("a")
        job = self.start()
        self.push(job, 1)
        before = len(a.journal("request"))
        good = self.file.read_text()
        for text, wanted in (
                ("- {url: \"ftp://h:1\"}\n- {url: \"http://h:1\", nme: x}\n",
                 [f"{self.file}:1:", f"{self.file}:2:"]),
                ("- {url: \"http://h:1\"", [f"{self.file}:"]), ("[]\n", ["empty"]),
                (None, ["No such file"]),
                ("- {url: \"http://h:1\", transport: shm}\n", ["shm is not in this build"])):
            with self.subTest(text=text):
                if text is None:
                    self.file.unlink()
                else:
                    self.file.write_text(text)
                result = job.push("2", self.models[2][0])
                self.assertEqual((result["exit"], result["outcome"]), (2, "refused"), result)
                for each in wanted:
                    self.assertIn(each, result["summary"])
        self.assertEqual(len(a.journal("request")), before)
        self.file.write_text(good)
        self.push(job, 3)
        self.assert_current(a, "3", self.models[3][1])

    def test_a_broken_file_at_the_first_push(self):
        a = self.engine("a")
        job = self.start()
        self.file.write_text("nothing: here\n")
        self.assertEqual(job.push("1", self.models[1][0])["outcome"], "refused")
        self.write(a)
        self.push(job, 2)
        self.assert_current(a, "2", self.models[2][1])


if __name__ == "__main__":
    unittest.main()
