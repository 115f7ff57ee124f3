# SPDX-License-Identifier: Apache-2.0
"""Tensors that several ranks send: each owner is a source of its own, and all are one unit."""

import time
import unittest

import drill_test
import harness

PER_OWNER = 6
SHAPE = [64, 64]
LONG = {"drain": "40s", "progress": "40s", "request": "50s", "init": "40s", "agreement": "40s",
        "push": "55s"}


def tensors(owners, each=PER_OWNER, shape=SHAPE):
    """A manifest that lists each owner's tensors together."""
    return [{"name": f"model.layers.{owner}.w{i}", "dtype": "bfloat16", "shape": shape,
             "owner": owner} for owner in owners for i in range(each)]


def digests(plan_tensors, version):
    return {row["name"]: drill_test.digest(row["name"], row["dtype"], row["shape"], version)
            for row in plan_tensors}


def turns(engine):
    """The sources of the updates that a worker began to read, in order."""
    worker = engine.journal("chunk")[0]["worker"]
    return [line["src"] for line in engine.journal("chunk")
            if line["worker"] == worker and line["index"] == 0]


class OwnersCase(drill_test.DrillCase):
    def config(self, engines, /, **sections):
        sections.setdefault("transport", {"kind": "tcp", "buffer": "20KiB", "owners": "true"})
        return super().config(engines, **sections)

    def two(self):
        return [self.engine(f"e{len(self.engines)}", "--world-size", "2"),
                self.engine(f"f{len(self.engines)}")]

    def run_plan(self, rows, faults=(), engines=None, pushes=1, ranks=3, timeouts=None):
        engines = engines or self.two()
        plan = {"tensors": rows, "pushes": [{"version": str(i + 1)} for i in range(pushes)]}
        plan["pushes"][0]["faults"] = list(faults)
        config = self.config(engines, timeouts=timeouts or {})
        return engines, self.drill(config, plan, ranks=ranks)

    def assert_all_current(self, engines, version, rows):
        for engine in engines:
            self.assert_current(engine, version, digests(rows, version))


class Clean(OwnersCase):
    def test_each_owner_sends_its_own_in_one_update(self):
        rows = tensors([0, 1, 2])
        rows[8]["stream_dtype"] = "float32"
        engines, (code, reports, text, _) = self.run_plan(rows, pushes=2)
        self.assertEqual((code, [r["outcome"] for r in reports]), (0, ["done", "done"]), text)
        self.assert_all_current(engines, "2", rows)
        total = len(rows) * 64 * 64 * 2
        for report in reports:
            self.assertEqual((report["bytes"], report["tensors"]), (total, len(rows)))
            self.assertEqual([row["bytes"] for row in report["engines"]], [2 * total, total])
            self.assertEqual(report["casts"], 1)
        for engine in engines:
            self.assertEqual(turns(engine), [0, 1, 2] * 2)
            self.assertEqual(len(engine.calls("update_weights")), 6)
            # The second push uses the first one's channel.
            self.assertEqual(len(engine.calls("init_weight_transfer_engine")), 1)
            self.assertEqual({line["sources"] for line in engine.journal("joined")}, {3})
            self.assertEqual(sorted({line["rank"] for line in engine.journal("joined")}),
                             [3, 4] if engine is engines[0] else [5])

    def test_a_manifest_in_any_order_is_one_update_per_run(self):
        rows = [row for group in zip(*[tensors([owner]) for owner in (2, 0, 1)]) for row in group]
        rows.append({"name": "empty", "dtype": "bfloat16", "shape": [0, 4], "owner": 0})
        engines, (code, reports, text, _) = self.run_plan(rows)
        self.assertEqual((code, reports[0]["outcome"]), (0, "done"), text)
        self.assert_all_current(engines, "1", rows)
        self.assertEqual(turns(engines[0]), [2, 0, 1] * 6)
        # The tensor without bytes is an update as well.
        self.assertEqual(len(engines[0].calls("update_weights")), 19)

    def test_only_the_ranks_that_own_something_are_sources(self):
        rows = tensors([1, 3])
        engines, (code, reports, text, _) = self.run_plan(rows, ranks=4)
        self.assertEqual((code, reports[0]["outcome"]), (0, "done"), text)
        self.assert_all_current(engines, "1", rows)
        self.assertEqual(turns(engines[1]), [0, 1])
        total = len(rows) * 64 * 64 * 2
        self.assertEqual([row["bytes"] for row in reports[0]["engines"]], [2 * total, total])

    def test_one_rank_alone(self):
        rows = tensors([0])
        engines, (code, _, text, _) = self.run_plan(rows, ranks=1)
        self.assertEqual(code, 0, text)
        self.assert_all_current(engines, "1", rows)


class Refused(OwnersCase):
    def refused(self, rows, says, ranks=3, **sections):
        engine = self.engine(f"e{len(self.engines)}")
        plan = {"tensors": rows, "pushes": [{"version": "1"}]}
        code, reports, text, _ = self.drill(self.config([engine], **sections), plan, ranks=ranks)
        self.assertEqual((code, reports[0]["outcome"]), (2, "refused"), text)
        self.assertIn(says, reports[0]["first_cause"]["message"])
        self.assertEqual(engine.journal("request"), [])

    def test_an_owner_that_is_no_rank(self):
        self.refused(tensors([0, 3]), "has owner rank 3, and the job has ranks 0 to 2")

    def test_owners_without_the_key(self):
        self.refused(tensors([0, 1]), "transport.owners",
                     transport={"kind": "tcp", "owners": "false"})

    def test_owners_over_shared_memory(self):
        self.refused(tensors([0, 1]), "transport.owners: true is not in this build but over tcp",
                     transport={"kind": "shm", "owners": "true"})


class GathersFail(OwnersCase):
    def test_a_throw_in_each_owners_turn_is_mended_as_one_unit(self):
        rows = tensors([0, 1, 2])
        for at in (3, 9, 15):
            with self.subTest(at=at):
                engines, (code, reports, text, seconds) = self.run_plan(
                    rows, [{"rank": at // 6, "at": {"tensor": at}, "kind": "throw"}],
                    timeouts=LONG)
                self.assertEqual((code, reports[0]["outcome"]), (0, "recovered"), text)
                self.assertEqual(reports[0]["first_cause"]["rank"], at // 6)
                self.assertLess(seconds, 20 * harness.SLOW)
                self.assert_all_current(engines, "1", rows)
                # The whole model again, by every owner.
                self.assertEqual(turns(engines[1])[-3:], [0, 1, 2])

    def test_a_stream_that_differs_fails_at_once_whoever_sends(self):
        engines, (code, reports, text, seconds) = self.run_plan(
            tensors([0, 1, 2]), [{"rank": 0, "at": {"tensor": 9}, "kind": "wrong_shape"}],
            timeouts=LONG)
        self.assertEqual((code, reports[0]["first_cause"]["code"]), (3, "data_mismatch"), text)
        self.assertLess(seconds, 20 * harness.SLOW)
        self.assertTrue(all(engine.state()["paused"] for engine in engines))

    def test_an_owner_that_ends_in_its_turn_or_anothers(self):
        for at, pushes in ((9, 2), (3, 1)):
            with self.subTest(at=at):
                engines, (code, reports, text, seconds) = self.run_plan(
                    tensors([0, 1, 2]), [{"rank": 1, "at": {"tensor": at}, "kind": "exit"}],
                    pushes=pushes, timeouts=LONG)
                self.assertEqual((code, reports[0]["outcome"]), (3, "failed"), text)
                self.assertIn("rank 1 is gone", reports[0]["first_cause"]["message"])
                self.assertLess(seconds, 20 * harness.SLOW)
                for engine in engines:
                    self.assertTrue(engine.state()["paused"])
                    self.assertNotEqual(engine.state()["version"], "1")


class EnginesFail(OwnersCase):
    """An engine's failure in each owner's turn ends all streams at once, and both engines get the
    whole model again."""

    def check(self, fault, turn, seconds=20, shape=SHAPE, **more):
        engines = self.two()
        engines[1].faults({"route": "update_weights", "nth": turn, **fault})
        rows = tensors([0, 1, 2], shape=shape)
        engines, (code, reports, text, took) = self.run_plan(
            rows, engines=engines, timeouts={**LONG, **more})
        self.assertLess(took, seconds * harness.SLOW, text)
        return engines, rows, code, reports[0], text

    def recovered(self, fault, turn, says="", **more):
        engines, rows, code, report, text = self.check(fault, turn, **more)
        self.assertEqual((code, report["outcome"]), (0, "recovered"), text)
        self.assertEqual(report["first_cause"]["engine"], engines[1].name, text)
        self.assertIn(says, text)
        self.assert_all_current(engines, "1", rows)
        self.assertEqual(turns(engines[0])[-3:], [0, 1, 2])
        self.assertEqual(len(engines[0].calls("start_weight_update")), 4)

    def test_a_500_before_anything_was_read(self):
        for turn in (1, 2, 3):
            with self.subTest(turn=turn):
                self.recovered({"do": "status", "status": 500, "body": "{}"}, turn)

    def test_a_failure_after_a_chunk(self):
        for turn in (1, 2, 3):
            with self.subTest(turn=turn):
                self.recovered({"do": "fail_after_chunks", "after_chunks": 1}, turn,
                               "injected failure after 1 chunks")

    def test_a_refusal_while_the_other_engine_reads_is_not_waited_out(self):
        for turn in (1, 2, 3):
            with self.subTest(turn=turn):
                engines, _, code, report, text = self.check(
                    {"do": "status", "status": 400, "body": "{}"}, turn)
                self.assertEqual((code, report["outcome"]), (3, "failed"), text)
                self.assertEqual(report["first_cause"]["engine"], engines[1].name, text)
                self.assertTrue(all(engine.state()["paused"] for engine in engines))

    def test_an_engine_that_stops_reading_an_owner(self):
        engines, _, code, report, text = self.check(
            {"do": "stop_reading", "after_chunks": 0}, 2, shape=[1024, 512], progress="2s",
            drain="2s", request="8s", seconds=30)
        self.assertEqual((code, report["outcome"]), (3, "failed"), text)
        self.assertEqual((report["first_cause"]["engine"], report["first_cause"]["rank"]),
                         (engines[1].name, 1), text)
        self.assertIn("timeouts.progress", report["first_cause"]["message"])
        self.assertEqual(engines[0].state()["resumes"], [])

    def test_an_engine_that_is_behind_is_the_one_that_is_named(self):
        # All bytes fit the system's buffers: only the missing answer tells.
        self.recovered({"do": "hang"}, 2, request="4s")

    def test_an_update_that_is_answered_but_not_read(self):
        for turn in (2, 3):
            with self.subTest(turn=turn):
                engines, rows, code, report, text = self.check(
                    {"do": "ok_without_reading"}, turn, shape=[1024, 512], progress="2s",
                    drain="2s", request=f"{int(6000 * harness.SLOW)}ms")
                self.assertEqual((code, report["outcome"]), (0, "recovered"), text)
                self.assert_all_current(engines, "1", rows)

    def test_an_engine_that_dies_in_the_second_turn(self):
        engines, _, code, report, text = self.check({"do": "die_after_chunks", "after_chunks": 1}, 2)
        self.assertEqual((code, report["outcome"]), (3, "failed"), text)
        self.assertEqual(report["first_cause"]["engine"], engines[1].name, text)
        self.assertTrue(engines[0].state()["paused"])

    def test_an_init_that_fails_ends_every_sources_wait(self):
        engines = self.two()
        engines[1].faults({"route": "init_weight_transfer_engine", "nth": 1, "do": "status",
                           "status": 500, "body": "{}"})
        rows = tensors([0, 1, 2])
        begin = time.monotonic()
        engines, (code, reports, text, _) = self.run_plan(rows, engines=engines, timeouts=LONG)
        self.assertLess(time.monotonic() - begin, 20 * harness.SLOW, text)
        self.assertEqual((code, reports[0]["outcome"]), (0, "recovered"), text)
        self.assert_all_current(engines, "1", rows)


if __name__ == "__main__":
    unittest.main()
