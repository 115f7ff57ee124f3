# SPDX-License-Identifier: Apache-2.0
"""Weight sources that fail or yield odd tensors, and several pushes of one job: cases 01, 06, 07,
14, 15 and 18."""

import json
import subprocess
import time
import unittest

import harness
from drill_test import DrillCase, digest
from flat import FlatCase
from outcome import AWAY, SHORT

MODEL = {"prefix": "model.layers.{}.w", "count": 12, "dtype": "bfloat16", "shape": [64, 64]}


def model_digests(version):
    return {f"model.layers.{i}.w": digest(f"model.layers.{i}.w", "bfloat16", [64, 64], version)
            for i in range(MODEL["count"])}


class Case(DrillCase):
    def two_engines(self):
        return [self.engine("fe-a"), self.engine("fe-b", "--world-size", "2")]

    def configured(self, engines, **sections):
        timeouts = {**SHORT, **sections.pop("timeouts", {})}
        return self.config(engines, timeouts=timeouts,
                           transport={"buffer": "16KiB", **sections.pop("transport", {})},
                           **sections)

    def begun(self, engines, plan, ranks, **sections):
        """A drill that runs on. Returns its process and the path of its report."""
        path, report = self.folder / "plan.json", self.folder / "drill.json"
        path.write_text(json.dumps(plan))
        with open(self.folder / "rank-0.log", "wb") as log:
            job = subprocess.Popen(
                [harness.PROGRAM, "drill", "--config", str(self.configured(engines, **sections)),
                 "--plan", str(path), "--ranks", str(ranks), "--report", str(report)],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.children.append(job)
        return job, report

    def with_fault(self, engines, at, kind, version="7", ranks=4, **more):
        plan = {"repeat": MODEL, "pushes": [
            {"version": version, "faults": [{"rank": 2, "at": at, "kind": kind, **more}]}]}
        return self.drill(self.configured(engines), plan, ranks=ranks)

    def assert_failed(self, drilled, engines, *says, bound=None):
        code, reports, text, seconds = drilled
        self.assertEqual((code, reports[0]["outcome"]), (3, "failed"), text)
        for part in says:
            self.assertIn(part, reports[0]["first_cause"]["message"], text)
        if bound:
            self.assertLess(seconds, bound * harness.SLOW, text)
        for engine in engines:
            state = engine.state()
            self.assertEqual((state["resumes"], state["session"], state["paused"]),
                             ([], "closed", True), engine.name)

    def assert_pushed(self, drilled, engines, outcome, version="7"):
        code, reports, text, _ = drilled
        self.assertEqual((code, reports[0]["outcome"]), (0, outcome), text)
        for engine in engines:
            self.assert_current(engine, version, model_digests(version))


class Case01(Case):
    """The declared list and the stream disagree."""

    def test_all_wider_than_declared_are_cast(self):
        engines = self.two_engines()
        plan = {"repeat": {**MODEL, "stream_dtype": "float32"}, "pushes": [{"version": "7"}]}
        drilled = self.drill(self.configured(engines), plan, ranks=4)
        self.assert_pushed(drilled, engines, "done")
        self.assertEqual(drilled[1][0]["casts"], MODEL["count"])

    def test_one_wider_than_declared(self):
        engines = self.two_engines()
        tensors = [{"name": f"w{i}", "dtype": "bfloat16", "shape": [64, 64],
                    "stream_dtype": "float32" if i == 7 else "bfloat16"} for i in range(12)]
        plan = {"tensors": tensors, "pushes": [{"version": "7"}]}
        code, reports, text, _ = self.drill(self.configured(engines), plan, ranks=4)
        self.assertEqual((code, reports[0]["casts"]), (0, 1), text)
        self.assertIn("w7", text)
        for engine in engines:
            self.assertEqual(engine.state()["weights"],
                             {f"w{i}": digest(f"w{i}", "bfloat16", [64, 64], "7")
                              for i in range(12)})

    def test_refused_when_told_so(self):
        engines = self.two_engines()
        plan = {"repeat": {**MODEL, "stream_dtype": "float32"}, "pushes": [{"version": "7"}]}
        config = self.configured(engines, push={"dtype_mismatch": "refuse"})
        self.assert_failed(self.drill(config, plan, ranks=4), engines, "model.layers.0.w",
                           "float32", "bfloat16")

    def differs(self, kind, *says):
        engines = self.two_engines()
        drilled = self.with_fault(engines, {"tensor": 5}, kind, times=2)
        self.assert_failed(drilled, engines, *says)
        # From the stream's begin on: the ranks' meeting is no part of it.
        phases = drilled[1][0]["phases"]
        self.assertLess(sum(phases[name] for name in ("stream", "failing", "verdict")),
                        2 * harness.SLOW, phases)
        for engine in engines:
            # All closed without a version.
            self.assertEqual(engine.state()["version"], "default")

    # The first tensor at fault, as it was declared and as it came.
    def test_another_shape(self):
        self.differs("wrong_shape", "model.layers.5.w", "[64, 64]", "[64, 64, 1]")

    def test_one_missing(self):
        self.differs("missing", "model.layers.5.w", "model.layers.6.w")

    def test_one_too_many(self):
        self.differs("extra", "model.layers.5.w", "drill.extra")

    def test_another_order(self):
        self.differs("reorder", "model.layers.5.w", "model.layers.6.w")


class Case06(Case):
    """One rank's own failure must be everybody's, with its words."""

    def collectives(self):
        """By the flight record: each rank's votes in order, and the gathers it began in each of the
        two passes."""
        record, = self.folder.glob("flight-*.jsonl")
        votes, gathers = {}, {}
        for line in record.read_text().splitlines()[1:]:
            event = json.loads(line)
            rank, attempt = event["rank"], event["attempt"]
            if "Vote" in event.get("orders", []):
                votes.setdefault(rank, []).append((attempt, event["phase"], event["step"]))
            gathers[rank, attempt] = event.get("gathers", [0])[0]
        return votes, gathers

    def assert_in_step(self, last_pass):
        """Every rank entered the same votes. A pass that one rank left reaches the others at
        whatever gather they are in: a slow one may be one behind. `last_pass`: the second pass's
        gathers where it was whole."""
        votes, gathers = self.collectives()
        self.assertEqual(sorted(votes), [0, 1, 2, 3])
        for rank in range(1, 4):
            self.assertEqual(votes[rank], votes[0], rank)
        for attempt in (1, 2):
            begun = [gathers[rank, attempt] for rank in range(4)]
            self.assertLessEqual(max(begun) - min(begun), 1, begun)
        if last_pass:
            # And the one that ends it.
            self.assertEqual({gathers[rank, 2] for rank in range(4)}, {last_pass + 1})

    def test_throws_once(self):
        engines = self.two_engines()
        self.assert_pushed(self.with_fault(engines, {"tensor": 5}, "throw"), engines, "recovered")
        self.assert_in_step(MODEL["count"])

    def test_throws_every_time(self):
        engines = self.two_engines()
        plan, report = self.folder / "plan.json", self.folder / "drill.json"
        plan.write_text(json.dumps({"repeat": MODEL, "pushes": [{"version": "7", "faults": [
            {"rank": 2, "at": {"tensor": 5}, "kind": "throw", "times": 2}]}]}))
        begin = time.monotonic()
        self.launch([[harness.PROGRAM, "drill", "--config", str(self.configured(engines)),
                      "--plan", str(plan), "--report", str(report)]] * 4)
        for rank in range(4):
            # Each in the same words: whose failure it is, and that rank's own.
            self.assert_ended(rank, 3, "Cause: rank 2, stream, attempt 1: the weight source threw in"
                              " next(): planned fault: throw at tensor 5 [internal]")
        self.assert_failed((3, json.loads(report.read_text()), self.rank_log(0),
                            time.monotonic() - begin), engines, bound=8)
        self.assert_in_step(None)

    def test_fails_before_the_first_pause(self):
        engines = self.two_engines()
        plan = {"repeat": MODEL, "pushes": [{"version": "7", "faults": [
            {"rank": 0, "at": {"phase": "pause"}, "kind": "throw"}]}]}
        code, reports, text, _ = self.drill(self.configured(engines), plan, ranks=4)
        self.assertEqual((code, reports[0]["outcome"]), (3, "failed"), text)
        self.assertEqual(reports[0]["first_cause"]["rank"], 0)
        for engine in engines:
            self.assertEqual(engine.calls("start_weight_update"), [])
            self.assertFalse(engine.state()["paused"])

    def test_throws_after_its_last_tensor(self):
        engines = self.two_engines()
        drilled = self.with_fault(engines, {"after": "last_tensor"}, "throw")
        self.assert_pushed(drilled, engines, "recovered")
        self.assert_in_step(MODEL["count"])

    def test_one_of_all_ranks_alone_ends_the_pass_early(self):
        # The neighbours: the rank that packs, the last one, and a first tensor that nobody gets.
        for rank, at in ((0, {"tensor": 11}), (3, {"tensor": 0})):
            with self.subTest(rank=rank):
                for record in self.folder.glob("flight-*.jsonl"):
                    record.unlink()
                engines = [self.engine(f"fe-{rank}")]
                plan = {"repeat": MODEL, "pushes": [{"version": "7", "faults": [
                    {"rank": rank, "at": at, "kind": "throw"}]}]}
                drilled = self.drill(self.configured(engines), plan, ranks=4)
                self.assert_pushed(drilled, engines, "recovered")
                self.assertEqual(drilled[1][0]["first_cause"]["rank"], rank)
                self.assert_in_step(MODEL["count"])


class Case07(Case):
    """A restarted engine holds the base model again."""

    def restarted(self, route, nth, outcome, code, wait=0, **sections):
        """Restarts fe-b at the nth call of a route of fe-a in one job, or, where push 8 begins
        `wait` seconds after push 7, between the two. Returns both, and the report of push 8."""
        engines = [self.engine("fe-a"), self.engine("fe-b")]
        if not wait:
            engines[0].faults({"route": route, "nth": nth, "do": "delay", "seconds": 1.5})
        plan = {"repeat": MODEL,
                "pushes": [{"version": "7"}, {"version": "8", "wait_before_s": wait}]}
        job, report = self.begun(engines, plan, 2, **sections)
        self.await_that(lambda: len(engines[0].calls(route)) >= nth and
                        (not wait or "version '7': done" in self.rank_log(0)),
                        30, f"call {nth} of {route}")
        engines[1].stop()
        again = self.engine("fe-b", port=engines[1].port)
        self.assertEqual(job.wait(timeout=40 * harness.SLOW), code, self.rank_log(0))
        reports = json.loads(report.read_text())
        self.assertEqual([each["outcome"] for each in reports], ["done", outcome],
                         self.rank_log(0))
        # Never resumed without having been verified in that push.
        self.assertEqual([r for r in again.state()["resumes"] if r["version"] != "8"], [])
        return engines[0], again, reports[1]

    def test_between_two_pushes(self):
        engine, again, report = self.restarted("resume", 1, "done", 0, wait=4 * harness.SLOW)
        for each in (engine, again):
            self.assert_current(each, "8", model_digests("8"))
        # It served the base model meanwhile.
        self.assertEqual(len(report["notes"]), 1, report["notes"])
        self.assertIn("engine fe-b was found without version '7'", report["notes"][0])

    def test_while_the_next_push_begins(self):
        engine, again, _ = self.restarted("version", 2, "done", 0)
        for each in (engine, again):
            self.assert_current(each, "8", model_digests("8"))

    def test_after_its_finish(self):
        # Sessions: the empty and the real one of push 7, the real one of push 8.
        engine, again, _ = self.restarted("finish_weight_update", 3, "recovered", 0)
        for each in (engine, again):
            self.assert_current(each, "8", model_digests("8"))

    def test_after_its_verify(self):
        # Engine after engine is resumed: fe-b restarts while fe-a's turn lasts.
        _, again, report = self.restarted("resume", 2, "failed", 3, push={"wave": 1})
        self.assertEqual(report["first_cause"]["engine"], "fe-b")
        self.assertEqual(report["first_cause"]["phase"], "resume")
        self.assertIn("instead of '8'", report["first_cause"]["message"])
        rows = {row["name"]: row for row in report["engines"]}
        self.assertEqual(rows["fe-a"]["outcome"], "current")
        self.assertNotEqual(rows["fe-b"]["outcome"], "current")
        self.assertEqual(again.state()["resumes"], [])


class Case14(Case):
    """A dead engine inside the channel."""

    def test_killed_between_pushes_and_back_for_the_third(self):
        engines = [self.engine(f"fe-{name}") for name in "abc"]
        # Each push of its own job, as after a restart of the trainer.
        for version, alive in (("1", True), ("2", False), ("3", True)):
            if version == "2":
                engines[2].stop()
            if version == "3":
                engines[2] = self.engine("fe-c", port=engines[2].port)
            plan = {"repeat": MODEL, "pushes": [{"version": version}]}
            config = self.configured(engines, timeouts=AWAY)
            code, reports, text, seconds = self.drill(config, plan)
            self.assertEqual(code, 0 if alive else 3, text)
            self.assertLess(seconds, 12 * harness.SLOW)
            if not alive:
                self.assertEqual(reports[0]["first_cause"]["engine"], "fe-c")
                self.assertEqual(engines[0].calls("update_weights")[1:], [])
        for engine in engines:
            self.assert_current(engine, "3", model_digests("3"))

    def test_killed_in_mid_stream(self):
        engines = [self.engine(f"fe-{name}") for name in "abc"]
        engines[2].faults({"route": "update_weights", "nth": 1, "do": "die_after_chunks",
                           "after_chunks": 2})
        plan = {"repeat": MODEL, "pushes": [{"version": "7"}]}
        drilled = self.drill(self.configured(engines, timeouts=AWAY), plan)
        self.assert_failed(drilled, engines[:2], bound=20)
        self.assertEqual(drilled[1][0]["first_cause"]["engine"], "fe-c")

    def test_one_job_loses_it_and_gets_it_back(self):
        engines = [self.engine(f"fe-{name}") for name in "abc"]
        # It ends when it generates again, while the first push still resumes another.
        engines[0].faults({"route": "resume", "nth": 1, "do": "delay", "seconds": 1})
        plan = {"repeat": MODEL, "pushes": [
            {"version": "1"}, {"version": "2"}, {"version": "3", "wait_before_s": 3}]}
        job, report = self.begun(engines, plan, 2, timeouts={"connect": "2s"})
        self.await_that(lambda: engines[2].state()["resumes"], 30, "fe-c to generate")
        engines[2].stop()
        self.await_that(lambda: "push of version '2': failed" in self.rank_log(0), 30, "its end")
        engines[2] = self.engine("fe-c", port=engines[2].port)
        self.assertEqual(job.wait(timeout=40 * harness.SLOW), 3, self.rank_log(0))
        reports = json.loads(report.read_text())
        self.assertEqual([each["outcome"] for each in reports], ["done", "failed", "done"],
                         self.rank_log(0))
        self.assertEqual(reports[1]["first_cause"]["engine"], "fe-c")
        self.assertNotIn("stream", reports[1]["phases"])
        for engine in engines:
            self.assert_current(engine, "3", model_digests("3"))


class Case15(FlatCase):
    """Nothing may be lost at every push."""

    def test_flat_over_many_pushes_with_failures(self):
        # Sanitizers, where all is slow, see each kind of failure once all the same.
        pushes, every = (80, 6) if harness.SLOW == 1 else (56, 4)
        self.assert_flat("tcp", pushes=pushes, every=every, limit=120)


class Case18(Case):
    """Tensors that are not plain contiguous blocks, over both transports; with four ranks most of
    them are too small for each rank to have a share."""

    def test_every_kind_arrives_as_a_contiguous_copy_would(self):
        engines = [*self.two_engines(), self.engine("fe-c", backend="shm")]
        rows = [("transposed", [48, 32], {"layout": "transposed"}),
                ("every-second-row", [40, 16], {"layout": "strided"}),
                ("expanded", [16, 24], {"layout": "expanded"}), ("empty", [0, 128], {}),
                ("scalar", [], {}), ("one", [1], {})]
        plan = {"tensors": [{"name": name, "dtype": "bfloat16", "shape": shape, **more}
                            for name, shape, more in rows],
                "pushes": [{"version": "7"}]}
        code, _, text, _ = self.drill(self.configured(engines), plan, ranks=4)
        self.assertEqual(code, 0, text)
        expected = {name: digest(name, "bfloat16", shape, "7", expanded=name == "expanded")
                    for name, shape, _ in rows}
        for engine in engines:
            self.assertEqual(engine.state()["weights"], expected)

    def arrives(self, tensors, **sections):
        """uint8 tensors, `{name: (shape, owner)}`, from four ranks over both transports."""
        kinds = ("tcp",) if "owners" in sections.get("transport", {}) else ("tcp", "shm")
        engines = [self.engine(f"fe-{kind}-{len(self.engines)}", backend=kind) for kind in kinds]
        plan = {"tensors": [{"name": name, "dtype": "uint8", "shape": shape, "owner": owner}
                            for name, (shape, owner) in tensors.items()],
                "pushes": [{"version": "7"}]}
        code, reports, text, _ = self.drill(self.configured(engines, **sections), plan, ranks=4)
        self.assertEqual((code, reports[0]["outcome"]), (0, "done"), text)
        expected = {name: digest(name, "uint8", shape, "7") for name, (shape, _) in tensors.items()}
        for engine in engines:
            self.assert_current(engine, "7", expected)
            self.assertEqual([line["name"] for line in engine.journal("tensor")], list(tensors))

    def test_rounds_where_one_rank_or_none_has_a_share(self):
        # Of one byte rank 0 has all, of three rank 3 has nothing, of none nobody has any.
        self.arrives({"a": ([1], 0), "none": ([0, 128], 0), "b": ([3], 0), "c": ([1], 0)})

    def test_nothing_but_such_rounds(self):
        self.arrives({"a": ([1], 0), "b": ([1, 1], 0), "c": ([], 0)})
        self.arrives({"none": ([0], 0), "nor-this": ([4, 0], 0)})

    def test_one_rank_owns_all_and_rank_2_has_no_tensors(self):
        owners = {"transport": {"owners": "true"}}
        self.arrives({"a": ([64], 3), "b": ([1], 3), "none": ([0], 3)}, **owners)
        # Rounds of an owner whose tensors have no bytes, and of owners with nothing at all.
        self.arrives({"a": ([64], 0), "none": ([0], 1), "b": ([1], 1), "c": ([64], 3)}, **owners)
        self.arrives({"none": ([0], 1), "a": ([64], 3)}, **owners)


if __name__ == "__main__":
    unittest.main(verbosity=2)
