# SPDX-License-Identifier: Apache-2.0
"""Drills: made-up weights and planned faults, seen from outside."""

import hashlib
import json
import re
import struct
import subprocess
import time
import unittest

import harness

FORMATS = {"float32": "<f", "float64": "<d", "float16": "<e", "int8": "<b", "int64": "<q"}


def element(dtype, byte):
    low = byte & 15
    if dtype == "bool":
        return bytes([low & 1])
    if dtype == "uint8":
        return bytes([low])
    if dtype == "bfloat16":
        return struct.pack("<f", low - 8)[2:]
    return struct.pack(FORMATS[dtype], low - 8)


def content(name, dtype, shape, version, seed=0, expanded=False):
    """The bytes that docs/drill.md promises."""
    rows = shape[0] if expanded else 1
    count = 1
    for extent in shape:
        count *= extent
    count //= rows
    key = f"{name}\0{seed}\0{version}".encode()
    table = [element(dtype, low) for low in range(16)]
    return rows * b"".join(table[byte & 15] for byte in hashlib.shake_128(key).digest(count))


def digest(*arguments, **keywords):
    return hashlib.sha256(content(*arguments, **keywords)).hexdigest()


REPEAT = {"prefix": "model.layers.{}.w", "count": 12, "dtype": "bfloat16", "shape": [64, 64]}


def repeated(version):
    return {f"model.layers.{i}.w": digest(f"model.layers.{i}.w", "bfloat16", [64, 64], version)
            for i in range(REPEAT["count"])}


class DrillCase(harness.Case):
    def drill(self, config, plan, ranks=3, limit=60):
        """Returns (exit code, reports or None, everything printed, seconds)."""
        path = self.folder / f"plan-{time.monotonic_ns()}.json"
        path.write_text(json.dumps(plan))
        report = self.folder / f"drill-{time.monotonic_ns()}.json"
        begin = time.monotonic()
        done = subprocess.run(
            [harness.PROGRAM, "drill", "--config", str(config), "--plan", str(path), "--ranks",
             str(ranks), "--report", str(report)],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            timeout=limit * harness.SLOW, check=False)
        return (done.returncode, json.loads(report.read_text()) if report.exists() else None,
                done.stdout.decode(errors="replace"), time.monotonic() - begin)

    def fault(self, kind, at, /, pushes=1, timeouts=None, **more):
        """A drill whose first push has one fault of rank 2, unless `more` says otherwise."""
        engine = self.engine(f"e{len(self.engines)}")
        config = self.config([engine], timeouts=timeouts or {})
        plan = {"repeat": REPEAT, "pushes": [{"version": str(i + 1)} for i in range(pushes)]}
        plan["pushes"][0]["faults"] = [{"rank": 2, "at": at, "kind": kind, **more}]
        return engine, self.drill(config, plan)


class Clean(DrillCase):
    def test_a_model_that_was_not_told_once_is_not_taken_for_another(self):
        for answer in ({"status": 503}, {"status": 200, "body": "{}"}):
            engine = self.engine(f"e{len(self.engines)}")
            engine.faults({"route": "v1/models", "nth": 1, "do": "status", **answer})
            plan = {"repeat": REPEAT, "pushes": [{"version": str(i)} for i in range(1, 4)]}
            code, reports, text, _ = self.drill(self.config([engine]), plan)
            self.assertEqual(code, 0, text)
            self.assertEqual([each["outcome"] for each in reports], ["done"] * 3, text)

    def test_every_layout_and_dtype_arrives_as_promised(self):
        engines = [self.engine("e0", "--world-size", "2"), self.engine("e1")]
        rows = [("embed", "bfloat16", [33, 6], {"seed": 1, "stream_dtype": "float32"}),
                ("t", "float32", [7, 5], {"layout": "transposed", "seed": 18446744073709551615}),
                ("batch", "float16", [2, 3, 4], {"layout": "transposed"}),
                ("s", "int64", [9, 3], {"layout": "strided"}),
                ("e", "float64", [4, 8], {"layout": "expanded", "seed": 3}),
                ("b", "bool", [17], {}), ("u", "uint8", [17], {"layout": "strided"}),
                ("scalar", "int8", [], {}), ("none", "bfloat16", [0, 128], {}),
                ("one", "bfloat16", [1], {})]
        tensors = [{"name": name, "dtype": dtype, "shape": shape, **more}
                   for name, dtype, shape, more in rows]
        tensors.append({"name": "head", "dtype": "bfloat16", "shape": [33, 6],
                        "stream_dtype": "float32", "alias_of": "embed"})
        digests = {name: digest(name, dtype, shape, "7", more.get("seed", 0),
                                more.get("layout") == "expanded")
                   for name, dtype, shape, more in rows}
        digests["head"] = digests["embed"]
        plan = {"tensors": tensors, "repeat": REPEAT, "pushes": [{"version": "7"}]}
        code, reports, text, _ = self.drill(self.config(engines), plan, ranks=4)
        self.assertEqual(code, 0, text)
        self.assertEqual([report["outcome"] for report in reports], ["done"])
        self.assertEqual(reports[0]["tensors"], len(digests) + REPEAT["count"])
        for engine in engines:
            self.assert_current(engine, "7", {**digests, **repeated("7")})

    def test_two_pushes_of_one_rank_with_a_wait(self):
        engine = self.engine("e0")
        plan = {"repeat": REPEAT, "pushes": [{"version": "1"},
                                             {"version": "2", "wait_before_s": 0.3}]}
        code, reports, text, seconds = self.drill(self.config([engine]), plan, ranks=1)
        self.assertEqual(code, 0, text)
        self.assertEqual([(r["version"], r["outcome"]) for r in reports],
                         [("1", "done"), ("2", "done")])
        self.assertGreater(seconds, 0.3)
        self.assert_current(engine, "2", repeated("2"))
        # The second push uses the first one's channel.
        self.assertEqual(len(engine.calls("init_weight_transfer_engine")), 1)

    def test_ranks_of_a_launcher(self):
        engine = self.engine("e0")
        plan = self.folder / "plan.json"
        plan.write_text(json.dumps({"repeat": REPEAT, "pushes": [{"version": "1"}]}))
        ranks = self.launch([[harness.PROGRAM, "drill", "--config", str(self.config([engine])),
                              "--plan", str(plan), "--report",
                              str(self.folder / "drill.json")]] * 2)
        self.assertEqual([rank.wait(60 * harness.SLOW) for rank in ranks], [0, 0],
                         self.rank_log(0) + self.rank_log(1))
        self.assertIn("rank 0 of 2, as told by: torchrun", self.rank_log(0))
        reports = json.loads((self.folder / "drill.json").read_text())
        self.assertEqual([report["outcome"] for report in reports], ["done"])
        self.assert_current(engine, "1", repeated("1"))


class AtTensors(DrillCase):
    def test_a_rank_dies_while_an_engine_does_not_read(self):
        stuck, good = self.engine("stuck"), self.engine("good")
        stuck.faults({"route": "update_weights", "nth": 1, "do": "stop_reading",
                      "after_chunks": 1})
        plan = {"tensors": [{"name": f"w{i}", "dtype": "bfloat16", "shape": [512, 512]}
                            for i in range(24)],
                "pushes": [{"version": "1", "faults": [
                    {"rank": 2, "at": {"tensor": 12}, "kind": "exit"}]}]}
        config = self.config([stuck, good], timeouts={"shutdown": "4s", "progress": "30s",
                                                      "request": "30s", "drain": "30s"})
        code, reports, text, _ = self.drill(config, plan)
        self.assertEqual(code, 3, text)
        # The report names every engine although one could not be closed.
        self.assertEqual({row["name"] for row in reports[0]["engines"]}, {"stuck", "good"}, text)
        self.assertNotIn("killed", text)

    def test_a_gather_that_throws_is_mended(self):
        engine, (code, reports, text, _) = self.fault("throw", {"tensor": 5})
        self.assertEqual(code, 0, text)
        self.assertEqual((reports[0]["outcome"], reports[0]["attempts"]), ("recovered", 2))
        self.assertEqual(reports[0]["first_cause"]["rank"], 2)
        self.assertIn("planned fault: throw at tensor 5", reports[0]["first_cause"]["message"])
        self.assert_current(engine, "1", repeated("1"))

    def test_a_throw_in_both_passes_fails_and_the_next_push_mends_it(self):
        engine, (code, reports, text, _) = self.fault("throw", {"after": "last_tensor"}, pushes=2,
                                                      times=2)
        self.assertEqual(code, 3, text)
        self.assertEqual([report["outcome"] for report in reports], ["failed", "done"])
        self.assert_current(engine, "2", repeated("2"))

    def test_a_hang_ends_by_the_limit_of_a_gather(self):
        engine, (code, reports, text, seconds) = self.fault(
            "hang", {"tensor": 3}, timeouts={"gather": "1s"}, seconds=60)
        self.assertEqual(code, 0, text)
        self.assertLess(seconds, 30 * harness.SLOW)
        self.assertEqual(reports[0]["outcome"], "recovered")
        self.assertIn("timeouts.gather", reports[0]["first_cause"]["message"])
        self.assert_current(engine, "1", repeated("1"))

    def test_a_short_hang_harms_nobody(self):
        engine, (code, reports, text, _) = self.fault("hang", {"tensor": 3}, seconds=0.2)
        self.assertEqual((code, reports[0]["outcome"]), (0, "done"), text)
        self.assert_current(engine, "1", repeated("1"))

    def test_a_rank_that_ends(self):
        engine, (code, reports, text, seconds) = self.fault("exit", {"tensor": 5}, pushes=2)
        self.assertEqual(code, 3, text)
        self.assertLess(seconds, 30 * harness.SLOW)
        self.assertEqual([report["outcome"] for report in reports], ["failed", "failed"])
        self.assertIn("rank 2 is gone", reports[0]["first_cause"]["message"])
        self.assertTrue(engine.state()["paused"])

    def test_rank_0_that_ends_leaves_the_report_to_the_next(self):
        engine, (code, reports, text, _) = self.fault("exit", {"tensor": 5}, rank=0)
        self.assertEqual(code, 3, text)
        self.assertIn("rank 0 is gone", reports[0]["first_cause"]["message"])
        self.assertTrue(engine.state()["paused"])

    def test_a_rank_that_is_stopped_and_woken_in_time(self):
        engine, (code, reports, text, seconds) = self.fault("stop", {"tensor": 5}, seconds=1)
        self.assertEqual((code, reports[0]["outcome"]), (0, "done"), text)
        self.assertGreater(seconds, 1)
        self.assert_current(engine, "1", repeated("1"))

    def test_a_rank_that_stays_stopped(self):
        engine, (code, reports, text, seconds) = self.fault(
            "stop", {"tensor": 5}, timeouts={"agreement": "2s", "shutdown": "2s"})
        self.assertEqual(code, 3, text)
        self.assertLess(seconds, 30 * harness.SLOW)
        self.assertEqual(reports[0]["outcome"], "failed")
        self.assertTrue(engine.state()["paused"])


class OneCause(DrillCase):
    def causes(self, at, kind, engine_faults=(), **more):
        """The first causes that the living ones of four ranks print."""
        engine = self.engine(f"e{len(self.engines)}")
        engine.faults(*engine_faults)
        plan = self.folder / f"plan-{time.monotonic_ns()}.json"
        plan.write_text(json.dumps({"repeat": REPEAT, "pushes": [{"version": "1", "faults": [
            {"rank": 2, "at": at, "kind": kind, **more}]}]}))
        config = self.config([engine], timeouts={"agreement": "2s", "gather": "3s"})
        ranks = self.launch([[harness.PROGRAM, "drill", "--config", str(config), "--plan",
                              str(plan)]] * 4)
        found = set()
        for rank in (0, 1, 3):
            self.assertEqual(ranks[rank].wait(timeout=30 * harness.SLOW), 3, self.rank_log(rank))
            found.add(re.findall(r"Cause: (.*?) \[", self.rank_log(rank))[-1])
        ranks[2].kill()
        return found

    def test_a_rank_that_dies_between_two_phases(self):
        for _ in range(6):
            found = self.causes({"after": "last_tensor"}, "exit")
            self.assertEqual(len(found), 1, found)
            self.assertIn("rank 2 is gone", found.pop())

    def test_a_rank_that_hangs_while_rank_0_has_a_session_to_close(self):
        # The others have rank 0's word before its last clean-up, which may take its time.
        close = {"route": "finish_weight_update", "nth": "every", "do": "delay", "seconds": 3}
        found = self.causes({"phase": "agree"}, "hang", [close], seconds=60)
        self.assertEqual(len(found), 1, found)
        self.assertIn("hearing from rank 2 took longer", found.pop())

    def test_rank_0_that_hangs_before_any_engine_is_contacted(self):
        # Nobody refused anything: every rank says that the push failed.
        engine = self.engine("e0")
        config = self.config([engine], timeouts={"agreement": "1s", "gather": "1s"})
        hang = {"rank": 0, "at": {"phase": "check"}, "kind": "hang", "seconds": 60}
        plan = {"repeat": REPEAT, "pushes": [{"version": "1", "faults": [hang]}]}
        code, reports, text, _ = self.drill(config, plan)
        self.assertEqual((code, reports[0]["outcome"]), (3, "failed"), text)


class Streams(DrillCase):
    """A stream that is not the declared one is refused on all ranks, and not sent again."""

    def check(self, kind, at, says, **more):
        engine, (code, reports, text, _) = self.fault(kind, at, **more)
        self.assertEqual(code, 3, text)
        cause = reports[0]["first_cause"]
        self.assertEqual((reports[0]["outcome"], reports[0]["attempts"], cause["code"]),
                         ("failed", 1, "data_mismatch"), text)
        self.assertIn(says, cause["message"])
        self.assertTrue(engine.state()["paused"])
        self.assertNotEqual(engine.state()["version"], "1")

    def test_missing(self):
        self.check("missing", {"tensor": 4}, "model.layers.5.w")

    def test_the_last_one_missing(self):
        self.check("missing", {"tensor": 11}, "model.layers.11.w")

    def test_extra(self):
        self.check("extra", {"tensor": 4}, "drill.extra")

    def test_extra_at_the_end(self):
        self.check("extra", {"after": "last_tensor"}, "")

    def test_reorder(self):
        self.check("reorder", {"tensor": 4}, "model.layers.5.w", rank=0)

    def test_wrong_shape(self):
        self.check("wrong_shape", {"tensor": 4}, "[64, 64, 1]", rank=0)


class AtPhases(DrillCase):
    def test_throw_before_anything_is_sent_puts_engines_back(self):
        for phase, rank in (("connect", 2), ("prepare", 1), ("prepare", 0), ("pause", 0)):
            with self.subTest(phase=phase, rank=rank):
                engine, (code, reports, text, _) = self.fault("throw", {"phase": phase}, rank=rank)
                self.assertEqual(code, 3, text)
                cause = reports[0]["first_cause"]
                self.assertEqual((cause["phase"], cause["rank"]), (phase, rank), text)
                self.assertFalse(engine.state()["paused"])
                self.assertEqual(engine.calls("start_weight_update"), [])

    def test_throw_in_check_refuses(self):
        engine, (code, reports, text, _) = self.fault("throw", {"phase": "check"})
        self.assertEqual((code, reports[0]["outcome"]), (2, "refused"), text)
        self.assertEqual(engine.journal("request"), [])

    def test_throw_where_a_resend_mends_it(self):
        for phase, rank in (("clean", 0), ("channel", 0), ("channel", 1), ("stream", 2),
                            ("agree", 1), ("finish", 0), ("verify", 2), ("confirm", 1)):
            with self.subTest(phase=phase, rank=rank):
                engine, (code, reports, text, _) = self.fault("throw", {"phase": phase}, rank=rank)
                self.assertEqual((code, reports[0]["outcome"]), (0, "recovered"), text)
                cause = reports[0]["first_cause"]
                self.assertEqual((cause["phase"], cause["rank"]), (phase, rank), text)
                self.assert_current(engine, "1", repeated("1"))

    def test_a_fault_before_rank_0s_work_keeps_it_from_the_engine(self):
        engine, (code, _, text, _) = self.fault("throw", {"phase": "finish"}, rank=0, times=2)
        self.assertEqual(code, 3, text)
        versions = [call.get("body", "") for call in engine.calls("finish_weight_update")]
        self.assertFalse([body for body in versions if "weight_version" in str(body)], versions)

    def test_a_hang_before_a_vote_ends_with_the_push(self):
        limits = {"request": "1s", "agreement": "1s", "shutdown": "3s"}
        engine, (code, reports, text, seconds) = self.fault(
            "hang", {"phase": "verify"}, timeouts=limits, seconds=100)
        self.assertEqual((code, reports[0]["outcome"]), (3, "failed"), text)
        self.assertLess(seconds, 30 * harness.SLOW)
        self.assertTrue(engine.state()["paused"])

    def test_ends_and_stops(self):
        for kind, phase, rank in (("exit", "connect", 1), ("exit", "start", 0),
                                  ("stop", "agree", 2)):
            with self.subTest(kind=kind, phase=phase):
                _, (code, reports, text, seconds) = self.fault(
                    kind, {"phase": phase}, rank=rank,
                    timeouts={"agreement": "2s", "shutdown": "3s"})
                self.assertEqual((code, reports[0]["outcome"]), (3, "failed"), text)
                self.assertLess(seconds, 30 * harness.SLOW)

    def test_a_stop_in_a_phase_that_is_woken(self):
        engine, (code, reports, text, _) = self.fault("stop", {"phase": "agree"}, seconds=0.5)
        self.assertEqual((code, reports[0]["outcome"]), (0, "done"), text)
        self.assert_current(engine, "1", repeated("1"))


class Refused(DrillCase):
    def test_a_rank_that_is_configured_differently(self):
        engine = self.engine("e0")
        plan = {"repeat": REPEAT, "pushes": [{"version": "1"}],
                "config_overrides": {"2": {"transport.buffer": "2MiB", "log.level": "debug"}}}
        code, reports, text, _ = self.drill(self.config([engine]), plan)
        self.assertEqual((code, reports[0]["outcome"]), (2, "refused"), text)
        self.assertIn("transport.buffer", reports[0]["first_cause"]["message"])
        self.assertEqual(engine.journal("request"), [])

    def test_overrides_that_a_file_could_not_hold(self):
        engine = self.engine("e0")
        for override, says in (({"transport.bufer": "2MiB"}, "transport.buffer"),
                               ({"transport.buffer": 2}, "transport.buffer"),
                               ({"job.name": "x"}, "job.name")):
            with self.subTest(override=override):
                plan = {"repeat": REPEAT, "pushes": [{"version": "1"}],
                        "config_overrides": {"1": override}}
                code, _, text, _ = self.drill(self.config([engine]), plan)
                self.assertEqual(code, 2, text)
                self.assertIn('config_overrides.1', text)
                self.assertIn(says, text)
        self.assertEqual(engine.journal("request"), [])

    def test_all_faults_of_a_plan_with_their_places(self):
        engine = self.engine("e0")
        plan = {"tensors": [{"name": "a", "dtype": "int4", "shape": [2], "owner": -1}],
                "pushes": [{"version": "1", "draft": 1,
                            "faults": [{"rank": 0, "at": {"tensor": 0}, "kind": "throw"},
                                       {"rank": 9, "at": {"tensor": 1, "phase": "x"},
                                        "kind": "trow"}]}]}
        code, reports, text, _ = self.drill(self.config([engine]), plan)
        self.assertEqual(code, 2, text)
        for place in ("tensors[0].dtype: ", "tensors[0].owner: ", "pushes[0].draft: ",
                      "pushes[0].faults[1].rank: ", "pushes[0].faults[1].at: ",
                      "pushes[0].faults[1].kind: "):
            self.assertIn(place, text)
        self.assertEqual([report["outcome"] for report in reports], ["refused"])
        self.assertEqual(engine.journal("request"), [])

    def test_the_library_refuses_a_name_that_is_there_twice(self):
        engine = self.engine("e0")
        tensor = {"name": "twin", "dtype": "bfloat16", "shape": [2]}
        plan = {"tensors": [tensor, tensor], "pushes": [{"version": "1"}]}
        code, reports, text, _ = self.drill(self.config([engine]), plan, ranks=2)
        self.assertEqual((code, reports[0]["outcome"]), (2, "refused"), text)
        self.assertIn("twin", reports[0]["first_cause"]["message"])


if __name__ == "__main__":
    unittest.main()
