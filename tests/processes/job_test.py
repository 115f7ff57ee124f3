# SPDX-License-Identifier: Apache-2.0
"""Several pushes of one job: engines that come back after a loss, and a list of engines that changes."""

import json
import os
import pathlib
import subprocess
import unittest

import drill_test
import harness
import policy_test

SHORT = policy_test.SHORT


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
                cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log)
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


class Readmission(policy_test.QuarantineCase):
    def test_by_the_next_push_that_reaches_and_verifies_it(self):
        engines = self.trio()
        engines[1].faults({"route": "finish_weight_update", "nth": 2, "do": "die"})
        config = self.config(engines, engines=policy_test.QUARANTINE, timeouts=SHORT,
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


class Behind(drill_test.DrillCase):
    """A job that pushes without a pause while one of its ranks stands still."""

    def test_a_rank_that_wakes_finds_the_others_again(self):
        engine = self.engine("e0")
        limits = {**SHORT, "gather": f"{int(2000 * harness.SLOW)}ms",
                  **{key: f"{int(1000 * harness.SLOW)}ms" for key in ("connect", "agreement")}}
        config = self.config([engine], timeouts=limits)
        # Where all is slow each takes half a minute of waiting.
        for rank in (0, 2) if harness.SLOW == 1 else (0,):
            with self.subTest(rank=rank):
                pushes = [{"version": str(i)} for i in range(1, 21)]
                pushes[2]["faults"] = [{"rank": rank, "at": {"phase": "pause"}, "kind": "stop",
                                        "seconds": 4 * harness.SLOW}]
                plan = {"repeat": drill_test.REPEAT, "pushes": pushes}
                code, reports, text, _ = self.drill(config, plan)
                self.assertEqual(code, 3, text)
                outcomes = [each["outcome"] for each in reports]
                self.assertEqual(outcomes[:2], ["done", "done"], text)
                self.assertNotEqual(outcomes[2], "done", text)
                met = outcomes.index("done", 2)
                # The push that it was stopped in, those that the others gave up meanwhile, each
                # at least a limit long, and what they gave up until it had gone through those.
                self.assertLess(met, 16, text)
                self.assertEqual(outcomes[met:], ["done"] * (20 - met), text)


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

    def test_a_start_on_a_new_engine_forbids_that_another_is_put_back(self):
        b = self.engine("b")
        job = self.start()
        self.push(job, 1)
        a = self.engine("a")
        self.write(a, b)
        # Only the new one needs an empty session; the other fails before its own start.
        b.faults({"route": "init_weight_transfer_engine", "nth": 1, "do": "status", "status": 400})
        result = job.push("2", self.models[2][0])
        self.assertEqual((result["exit"], result["outcome"]), (3, "failed"), result)
        self.assertGreater(len(a.calls("start_weight_update")), 0)
        for engine in (a, b):
            self.assertTrue(engine.state()["paused"], engine.name)
        self.assertEqual(len(b.state()["resumes"]), 1, "that of the first push")

    def test_only_what_an_earlier_run_left_counts_as_stale(self):
        a, b = self.engine("a"), self.engine("b")
        harness.request(a.port, "POST", "/start_weight_update", {})
        job = self.start()
        report = self.push(job, 1)
        self.assertEqual((report["outcome"], report["attempts"]), ("done", 1))
        stale = "pushrod_stale_sessions_closed_total"
        self.assertEqual(job.series(stale), {"a": 1, "b": 0})
        b.faults({"route": "finish_weight_update", "nth": 1, "do": "status", "status": 500})
        self.assertEqual(self.push(job, 2)["outcome"], "recovered")
        self.assertEqual(job.series(stale), {"a": 1, "b": 0}, "this push's own are no stale ones")

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
                ("- {url: \"http://h:1\", transport: nccl}\n", ["nccl is not in this build"])):
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
