# SPDX-License-Identifier: Apache-2.0
"""Proof of content: push.verify: checksum, push.check_replicas, and what engines may lie about."""

import json
import re
import unittest

import harness
from drill_test import REPEAT, DrillCase

CHECKED = {"push": {"verify": "checksum"}}


class ContentCase(DrillCase):
    def contents(self, report):
        return {row["name"]: row["content"] for row in report["engines"]}

    def asked(self, engine):
        return len(engine.calls("weight_checker"))


class Checksums(ContentCase):
    def test_plain_engines_are_proved_over_both_transports(self):
        engines = [self.engine("t0"), self.engine("s0", backend="shm")]
        folder, digests = self.weights("1")
        code, report, text = self.push(self.config(engines, **CHECKED), folder, "1")
        self.assertEqual(code, 0, text)
        self.assertEqual(self.contents(report), {"t0": "proved", "s0": "proved"}, text)
        self.assertEqual(report["notes"], [])
        for engine in engines:
            self.assert_current(engine, "1", digests)
            # Nothing but reading: "reset" would zero the weights.
            self.assertEqual(self.asked(engine), 1)

    def test_shards_are_compared_among_replicas_only(self):
        engines = [self.engine("a", "--world-size", "2"), self.engine("b", "--world-size", "2"),
                   self.engine("alone", "--world-size", "4")]
        folder, _ = self.weights("1", 2, 16)
        code, report, text = self.push(self.config(engines, **CHECKED), folder, "1", ranks=2)
        self.assertEqual(code, 0, text)
        self.assertEqual(self.contents(report),
                         {"a": "equal", "b": "equal", "alone": "not_comparable"}, text)
        self.assertIn("4 workers", " ".join(report["notes"]))

    def test_an_engine_whose_replies_come_late_is_not_asked(self):
        # A worker that fails leaves the other's reply behind (P16): the next call would get that one.
        engine = self.engine("late", "--world-size", "2")
        engine.faults({"route": "update_weights", "nth": 1, "do": "worker_fails"})
        folder, digests = self.weights("1", 2, 16)
        code, report, text = self.push(self.config([engine], **CHECKED), folder, "1", ranks=2)
        self.assertEqual((code, report["outcome"]), (0, "recovered"), text)
        self.assertGreater(report["engines"][0]["reply_lag"], 0)
        self.assertEqual(self.contents(report), {"late": "not_comparable"})
        self.assertIn("come late", " ".join(report["notes"]))
        self.assertEqual(self.asked(engine), 0)
        self.assert_current(engine, "1", digests)

    def test_a_release_without_the_route_is_said_to_be(self):
        engines = [self.engine("old", "--profile", "0.31"), self.engine("new")]
        folder, _ = self.weights("1", 2, 16)
        code, report, text = self.push(self.config(engines, **CHECKED), folder, "1", ranks=2)
        self.assertEqual(code, 0, text)
        self.assertEqual(self.contents(report), {"old": "not_comparable", "new": "proved"})
        self.assertIn("0.31", " ".join(report["notes"]))
        self.assertEqual(self.asked(engines[0]), 0)

    def test_what_the_version_does_not_show(self):
        """An engine takes other bytes, or none, and says 200 and the pushed version all the same."""
        folder, digests = self.weights("1")
        before, _ = self.weights("0")
        for backend, lie in (("tcp", {"do": "corrupt"}), ("tcp", {"do": "corrupt",
                                                                  "after_chunks": 1}),
                             ("shm", {"do": "corrupt"}),
                             ("shm", {"do": "ok_without_reading", "after_chunks": 1})):
            with self.subTest(backend=backend, **lie):
                name = f"e{len(self.engines)}"
                engine = self.engine(name, "--checkpoint", str(before), backend=backend)
                # Taken at its word it is believed: the control.
                engine.faults({"route": "update_weights", "nth": 1, **lie})
                code, report, text = self.push(self.config([engine]), folder, "1", ranks=2)
                self.assertEqual((code, report["outcome"]), (0, "done"), text)
                self.assertIsNone(report["engines"][0]["content"])
                self.assertNotEqual(engine.state()["weights"], digests)
                engine.faults({"route": "update_weights", "nth": 1, **lie})
                code, report, text = self.push(self.config([engine], **CHECKED), folder, "2",
                                               ranks=2)
                self.assertEqual((code, report["outcome"]), (0, "recovered"), text)
                self.assertEqual(report["first_cause"]["code"], "data_mismatch")
                self.assertEqual(report["first_cause"]["phase"], "verify")
                self.assertEqual(report["first_cause"]["engine"], name)
                self.assertEqual(self.contents(report), {name: "proved"})
                self.assert_current(engine, "2", digests)

    def test_an_engine_that_always_lies_stays_paused(self):
        engine = self.engine("e0")
        engine.faults({"route": "update_weights", "nth": "every", "do": "corrupt"})
        folder, _ = self.weights("1", 2, 16)
        code, report, text = self.push(self.config([engine], **CHECKED), folder, "1", ranks=2)
        self.assertEqual(code, 3, text)
        row = report["engines"][0]
        self.assertEqual((row["outcome"], row["content"], row["paused"]), ("mixed", None, True))
        self.assertIn("do not resume", row["remedy"])
        self.assertEqual(engine.state()["resumes"], [])
        self.assertEqual(report["attempts"], 2)

    def test_one_of_three_replicas_differs(self):
        engines = [self.engine(name, "--world-size", "2") for name in ("a", "b", "c")]
        engines[1].faults({"route": "update_weights", "nth": "every", "do": "corrupt"})
        folder, _ = self.weights("1", 2, 16)
        code, report, text = self.push(self.config(engines, **CHECKED), folder, "1", ranks=2)
        self.assertEqual(code, 3, text)
        self.assertEqual(report["first_cause"]["engine"], "b")
        self.assertIn("differs from that of engine", report["first_cause"]["message"])
        # With quarantine the two that agree go on.
        code, report, text = self.push(
            self.config(engines, engines={"on_loss": "quarantine"}, **CHECKED), folder, "2", ranks=2)
        self.assertEqual((code, report["dropped_engines"]), (0, ["b"]), text)
        self.assertEqual(self.contents(report)["a"], "equal")
        self.assertEqual(engines[1].state()["resumes"], [])

    def test_every_so_many_pushes_and_after_a_resend(self):
        engine = self.engine("e0")
        config = self.config([engine], push={"verify": "checksum", "verify_every": "3"})
        plan = {"repeat": REPEAT, "pushes": [{"version": str(i)} for i in range(1, 6)]}
        plan["pushes"][4]["faults"] = [{"rank": 1, "at": {"tensor": 3}, "kind": "throw"}]
        code, reports, text, _ = self.drill(config, plan)
        self.assertEqual(code, 0, text)
        self.assertEqual([each["engines"][0]["content"] for each in reports],
                         ["proved", None, None, "proved", "proved"], text)
        self.assertEqual(reports[4]["outcome"], "recovered")
        self.assertEqual(self.asked(engine), 3)

    def test_a_checker_that_fails_is_a_failed_check(self):
        engine = self.engine("e0")
        engine.faults({"route": "weight_checker", "nth": 1, "do": "status", "status": 500})
        folder, digests = self.weights("1", 2, 16)
        code, report, text = self.push(self.config([engine], **CHECKED), folder, "1", ranks=2)
        self.assertEqual((code, report["outcome"]), (0, "recovered"), text)
        self.assert_current(engine, "1", digests)
        self.assertEqual(self.contents(report), {"e0": "proved"})


class Copies(ContentCase):
    """Ranks that hold the same tensor must hold the same values."""

    def drilled(self, faults, ranks=4, push=None):
        engine = self.engine(f"e{len(self.engines)}")
        config = self.config([engine], push=push or {"check_replicas": "digest"})
        plan = {"repeat": REPEAT, "pushes": [{"version": "1", "faults": faults}, {"version": "2"}]}
        code, reports, text, _ = self.drill(config, plan, ranks=ranks)
        return engine, code, reports, text

    def other(self, rank, tensor):
        return {"rank": rank, "at": {"tensor": tensor}, "kind": "other_values"}

    def test_the_tensor_and_the_ranks_are_named(self):
        for rank, tensor, named in ((2, 5, "2"), (0, 11, "1, 2, 3"), (3, 0, "3")):
            with self.subTest(rank=rank, tensor=tensor):
                engine, code, reports, text = self.drilled([self.other(rank, tensor)])
                self.assertEqual(code, 3, text)
                cause = reports[0]["first_cause"]
                self.assertEqual((cause["code"], cause["phase"]), ("data_mismatch", "stream"))
                self.assertIn(f"tensor {tensor} 'model.layers.{tensor}.w", cause["message"])
                self.assertRegex(cause["message"], rf"of 4 ranks are not as rank 0: {named}\)")
                self.assertEqual(reports[0]["attempts"], 1)
                # Before its version is published; and the next push is a sound one.
                finishes = [re.sub(r"\s", "", json.dumps(line.get("body", "")))
                            for line in engine.calls("finish_weight_update")]
                self.assertFalse([body for body in finishes if '"1"' in body], finishes)
                self.assertEqual(reports[1]["outcome"], "done", text)

    def test_equal_copies_pass_and_unequal_ones_are_sent_when_nobody_asks(self):
        _, code, reports, text = self.drilled([])
        self.assertEqual((code, reports[0]["outcome"]), (0, "done"), text)
        _, code, reports, text = self.drilled([self.other(1, 4)], push={"check_replicas": "off"})
        self.assertEqual((code, reports[0]["outcome"]), (0, "done"), text)

    def test_two_ranks_and_two_tensors_of_one_step(self):
        _, code, reports, text = self.drilled([self.other(1, 3), self.other(3, 2)])
        self.assertEqual(code, 3, text)
        self.assertIn("not as rank 0: 1, 3", reports[0]["first_cause"]["message"])

    def test_with_passes_that_go_to_their_end(self):
        _, code, reports, text = self.drilled(
            [self.other(2, 1)], push={"check_replicas": "digest", "stop": "pass"})
        self.assertEqual(code, 3, text)
        self.assertEqual(reports[0]["first_cause"]["message"].count("not as rank 0"), 1)
        self.assertEqual(reports[1]["outcome"], "done", text)


if __name__ == "__main__":
    unittest.main()
