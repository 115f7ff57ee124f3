# SPDX-License-Identifier: Apache-2.0
"""A push that carries a draft model besides the target: one pause, both or none."""

import unittest

import drill_test
import harness

ROWS = [{"name": f"model.layers.{i}.w", "dtype": "bfloat16", "shape": [64, 64]} for i in range(6)]


def digests(version):
    return {row["name"]: drill_test.digest(row["name"], row["dtype"], row["shape"], version)
            for row in ROWS}


class DraftCase(drill_test.DrillCase):
    def draft_engine(self, name, *flags):
        engine = self.engine(name, *flags)
        status, body = harness.request(engine.port, "POST", "/__ctl",
                                       {"set": {"draft_model": True}})
        self.assertEqual(status, 200, body)
        return engine

    def two(self):
        return [self.draft_engine(f"e{len(self.engines)}", "--world-size", "2"),
                self.draft_engine(f"f{len(self.engines)}")]

    def run_pushes(self, engines, pushes, ranks=3, rows=ROWS, **sections):
        plan = {"tensors": rows, "pushes": pushes}
        return self.drill(self.config(engines, **sections), plan, ranks=ranks)

    def assert_both(self, engine, version, draft=None):
        self.assert_current(engine, version, digests(version))
        self.assertEqual(engine.state()["draft_weights"], digests(draft or version))

    def sessions(self, engine):
        """Starts and finishes in order: t and d for a start, a dot for a finish."""
        letters = {"/start_weight_update": "t", "/start_draft_weight_update": "d",
                   "/finish_weight_update": "."}
        return "".join(letters[line["path"]] for line in engine.journal("request")
                       if line["path"] in letters)


class Clean(DraftCase):
    def test_target_then_draft_in_one_pause(self):
        engines = self.two()
        code, reports, text, _ = self.run_pushes(
            engines, [{"version": "1", "draft": True}, {"version": "2", "draft": True}])
        self.assertEqual((code, [r["outcome"] for r in reports]), (0, ["done", "done"]), text)
        total = 2 * len(ROWS) * 64 * 64 * 2
        for report in reports:
            self.assertEqual((report["bytes"], report["tensors"]), (total, 2 * len(ROWS)))
            self.assertEqual([row["bytes"] for row in report["engines"]], [2 * total, total])
        for engine in engines:
            self.assert_both(engine, "2")
            # An empty session of each at first (P15), then target and draft per push.
            self.assertEqual(self.sessions(engine), "t.d." + "t.d." * 2)
            self.assertEqual(len(engine.calls("pause")), 2)
            self.assertEqual(len(engine.calls("init_weight_transfer_engine")), 1)

    def test_a_push_of_the_target_alone_leaves_the_draft(self):
        engine = self.draft_engine("e0")
        code, reports, text, _ = self.run_pushes(
            [engine], [{"version": "1", "draft": True}, {"version": "2"}])
        self.assertEqual((code, [r["outcome"] for r in reports]), (0, ["done", "done"]), text)
        self.assert_both(engine, "2", draft="1")
        self.assertEqual(self.sessions(engine), "t.d.t.d.t.")

    def test_with_owners(self):
        engines = self.two()
        rows = [{**row, "owner": i // 2} for i, row in enumerate(ROWS)]
        code, reports, text, _ = self.run_pushes(
            engines, [{"version": "1", "draft": True}], rows=rows,
            transport={"kind": "tcp", "buffer": "20KiB", "owners": "true"})
        self.assertEqual((code, reports[0]["outcome"]), (0, "done"), text)
        total = 2 * len(ROWS) * 64 * 64 * 2
        self.assertEqual([row["bytes"] for row in reports[0]["engines"]], [2 * total, total])
        for engine in engines:
            self.assert_both(engine, "1")
            self.assertEqual(len(engine.calls("update_weights")), 6)


class Refused(DraftCase):
    def test_a_release_without_draft_sessions_is_not_paused(self):
        engine = self.engine("e0", "--profile", "0.25")
        code, reports, text, _ = self.run_pushes([engine], [{"version": "1", "draft": True}],
                                                 push={"verify": "none"})
        self.assertEqual((code, reports[0]["outcome"]), (3, "failed"), text)
        self.assertIn("has no sessions of a draft model", reports[0]["first_cause"]["message"])
        self.assertEqual(engine.calls("pause"), [])

    def test_an_engine_without_a_draft_model_is_not_sent_it_again(self):
        engine = self.engine("e0")
        code, reports, text, _ = self.run_pushes([engine], [{"version": "1", "draft": True}])
        self.assertEqual((code, reports[0]["outcome"], reports[0]["attempts"]),
                         (3, "failed", 1), text)
        self.assertIn("no draft model", reports[0]["first_cause"]["message"])
        self.assertNotEqual(engine.state()["version"], "1")


class Faults(DraftCase):
    def resent_as_a_pair(self, engines, code, reports, text):
        self.assertEqual((code, reports[0]["outcome"], reports[0]["attempts"]),
                         (0, "recovered", 2), text)
        for engine in engines:
            self.assert_both(engine, "1")
            self.assertTrue(self.sessions(engine).endswith("t.d."), self.sessions(engine))
            self.assertEqual(len(engine.state()["resumes"]), 1)

    def test_a_throw_in_either_pass(self):
        for draft in (False, True):
            with self.subTest(draft=draft):
                engines = self.two()
                code, reports, text, _ = self.run_pushes(
                    engines, [{"version": "1", "draft": True, "faults": [
                        {"rank": 1, "at": {"tensor": 3}, "kind": "throw", "draft": draft}]}])
                self.resent_as_a_pair(engines, code, reports, text)

    def test_an_engine_that_fails_in_either_stream(self):
        for nth in (1, 2):
            for fault in ({"do": "fail_after_chunks", "after_chunks": 0},
                          {"do": "status", "status": 500, "body": "{}"}):
                with self.subTest(nth=nth, fault=fault["do"]):
                    engines = self.two()
                    engines[1].faults({"route": "update_weights", "nth": nth, **fault})
                    code, reports, text, _ = self.run_pushes(
                        engines, [{"version": "1", "draft": True}])
                    self.resent_as_a_pair(engines, code, reports, text)

    def test_a_start_or_finish_that_fails(self):
        # The first two of each are the empty sessions.
        for route, nth in (("start_draft_weight_update", 2), ("finish_weight_update", 3),
                           ("finish_weight_update", 4)):
            with self.subTest(route=route, nth=nth):
                engines = self.two()
                engines[1].faults({"route": route, "nth": nth, "do": "status", "status": 500,
                                   "body": "{}"})
                code, reports, text, _ = self.run_pushes(
                    engines, [{"version": "1", "draft": True}])
                self.resent_as_a_pair(engines, code, reports, text)

    def test_no_version_before_both_are_there(self):
        engines = self.two()
        engines[1].faults({"route": "update_weights", "nth": [2, 4], "do": "status",
                           "status": 500, "body": "{}"})
        code, reports, text, _ = self.run_pushes(
            engines, [{"version": "1", "draft": True}, {"version": "2"}])
        self.assertEqual((code, [r["outcome"] for r in reports]), (3, ["failed", "done"]), text)
        for engine in engines:
            # What failed was of the draft; the push that follows is of the target again.
            self.assert_current(engine, "2", digests("2"))
            self.assertEqual(len(engine.state()["resumes"]), 1)
        self.assertIsNone(next((row for row in reports[0]["engines"] if row["version"] == "1"),
                               None))


if __name__ == "__main__":
    unittest.main()
