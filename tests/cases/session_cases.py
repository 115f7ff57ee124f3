# SPDX-License-Identifier: Apache-2.0
"""What engines keep from earlier runs, and answers that are not what they seem: cases 03, 04, 08,
20, 21 and 22."""

import json
import unittest

import harness
from outcome import AWAY, SHORT, Case

OPEN_SESSION = ("start_weight_update", {"is_checkpoint_format": True})


class Case03(Case):
    """A trainer that died in mid-stream leaves sessions and channels behind."""

    def test_the_next_job_cleans_up(self):
        engines = [self.engine("fe-a"), self.engine("fe-b", "--world-size", "2")]
        for engine in engines:
            engine.faults({"route": "update_weights", "nth": 1, "do": "stop_reading",
                           "after_chunks": 1})
        folder, _ = self.checkpoint("dead", harness.layered("1", 4, 64))
        dead = self.ranks(self.config(engines, transport={"buffer": "4KiB"}), folder, "1", 2)
        for engine in engines:
            self.await_that(lambda each=engine: each.journal("chunk"), 30, "the stream to run")
        for process in dead:
            process.kill()
        before = {engine.name: len(engine.journal("request")) for engine in engines}
        for engine in engines:
            # As its trainer's sockets died with it.
            engine.faults()
            self.await_that(lambda each=engine: each.state()["connections"] <= 1, 30, "no stream")
        pushed = self.pushed(engines, tensors=harness.layered("2", 4, 64))
        self.assert_done(pushed, engines)
        for engine in engines:
            paths = [line["path"][1:] for line in engine.journal("request")[before[engine.name]:]]
            transfers = [path for path in paths if path.endswith("_weight_update")]
            session = ["start_weight_update", "finish_weight_update"]
            # P6 where the session is still open, then P15's empty session, then this push's own.
            self.assertIn(transfers, (session * 2, session[1:] + session * 2), engine.name)
            self.assertEqual(engine.state()["version"], "2")


class Case04(Case):
    """Sessions opened or closed at the wrong time."""

    def test_open_at_push_time(self):
        engine = self.engine("fe-a")
        harness.request(engine.port, "POST", "/pause")
        self.assertEqual(harness.request(engine.port, "POST", "/" + OPEN_SESSION[0],
                                         OPEN_SESSION[1])[0], 200)
        before = len(engine.journal("request"))
        pushed = self.pushed([engine])
        self.assert_done(pushed, [engine])
        sent = [line for line in engine.journal("request")[before:]
                if line["path"].endswith("_weight_update")]
        self.assertEqual([line["path"].split("_")[0] for line in sent],
                         ["/finish", "/start", "/finish", "/start", "/finish"])

    def test_a_rank_that_is_late_with_its_last_chunk(self):
        # Four hosts, whose ranks each pack their own engine's chunks; the last one is late.
        hosts = ["h0", "h1", "h2", "h3"]
        engines = [self.engine(f"fe-{host}", "--host-id", host, backend="shm") for host in hosts]
        plan = self.folder / "plan.json"
        plan.write_text(json.dumps({
            "repeat": {"prefix": "w{}", "count": 8, "dtype": "bfloat16", "shape": [64, 64]},
            "pushes": [{"version": "7", "faults": [
                {"rank": 3, "at": {"tensor": 7}, "kind": "hang", "seconds": 2}]}]}))
        config = self.config(engines, timeouts=SHORT, transport={"buffer": "16KiB"})
        ranks = self.launch([[harness.PROGRAM, "drill", "--config", str(config), "--plan",
                              str(plan)]] * 4, hosts=hosts)
        for rank, process in enumerate(ranks):
            self.assertEqual(process.wait(timeout=30 * harness.SLOW), 0, self.rank_log(rank))
        for engine in engines:
            paths = [line["path"] for line in engine.journal("request")]
            last = len(paths) - 1 - paths[::-1].index("/finish_weight_update")
            self.assertEqual(paths[:last].count("/update_weights"), 4, engine.name)
            self.assertNotIn("/update_weights", paths[last:], engine.name)
            self.assertEqual((engine.state()["version"], len(engine.state()["resumes"])), ("7", 1))

    def test_a_session_that_ended_by_itself_is_not_closed_again(self):
        engine = self.engine("fe-a", "--world-size", "2")
        engine.faults({"route": "update_weights", "nth": 1, "do": "fail_after_chunks",
                       "after_chunks": 2})
        pushed = self.pushed([engine], transport={"buffer": "4KiB"})
        self.assert_recovered(pushed, [engine])
        failed = [line["path"] for line in engine.journal("reply") if line.get("status") == 500]
        # A close of a closed session would be a provoked 500 (P16). The other is the second
        # worker's own answer to the update, one call late, taken by a harmless read.
        self.assertEqual(failed, ["/update_weights", "/collective_rpc"])


class Case08(Case):
    """A version probe that returns something else."""

    def probe(self, says, resent=True, **fault):
        for backend in ("tcp", "shm"):
            with self.subTest(backend=backend):
                self.probe_over(backend, says, resent, fault)

    def probe_over(self, backend, says, resent, fault):
        engines = [self.engine(f"fe-{name}", backend=backend) for name in "abc"]
        # The first two reads are those at connect.
        engines[1].faults({"route": "weight_info", "nth": list(range(3, 60)), **fault})
        pushed = self.pushed(engines, "8")
        self.assertEqual((pushed.code, pushed.report["outcome"]), (3, "failed"), pushed.text)
        self.assertEqual(pushed.report["resent"], resent, pushed.text)
        cause = pushed.report["first_cause"]
        self.assertEqual(cause["engine"], "fe-b")
        self.assertIn(says, cause["message"])
        for engine in engines:
            self.assertEqual(engine.state()["resumes"], [], engine.name)

    def body(self, text, says):
        self.probe(says, do="status", status=200, body=text)

    def test_default(self):
        self.body('{"weight_version":"default"}', "default")

    def test_null(self):
        self.body('{"weight_version":null}', "weight_version")

    def test_no_such_key(self):
        self.body("{}", "weight_version")

    def test_a_number(self):
        self.body('{"weight_version":8}', "weight_version")

    def test_a_blank_before_it(self):
        self.body('{"weight_version":" 8"}', "' 8'")

    def test_a_path(self):
        self.body('{"weight_version":"/models/qwen3"}', "/models/qwen3")

    def test_a_list(self):
        self.body('["8"]', "weight_info")

    def test_404_is_not_resent(self):
        self.probe("404", resent=False, do="status", status=404)

    def test_a_connection_that_breaks(self):
        self.probe("weight_info", do="reset")

    def test_a_connection_that_is_refused(self):
        for backend in ("tcp", "shm"):
            with self.subTest(backend=backend):
                self.refused(backend)

    def refused(self, backend):
        """Nobody listens at fe-b's port any more once all have finished."""
        engines = [self.engine(f"fe-{name}", backend=backend) for name in "abc"]
        engines[0].faults({"route": "reset_prefix_cache", "nth": 1, "do": "delay", "seconds": 1})
        folder, _ = self.checkpoint(f"v8-{backend}", harness.layered("8", 2, 32))
        config = self.config(engines, timeouts={**SHORT, **AWAY})
        ranks = self.ranks(config, folder, "8", 2)
        self.await_that(lambda: "reset_prefix_cache" in [
            line["path"][1:] for line in engines[1].journal("reply")], 30, "fe-b's caches reset")
        engines[1].stop()
        for rank, process in enumerate(ranks):
            self.assertEqual(process.wait(timeout=30 * harness.SLOW), 3, self.rank_log(rank))
        report = json.loads((self.folder / "ranks.json").read_text())
        self.assertEqual((report["outcome"], report["resent"]), ("failed", True))
        cause = report["first_cause"]
        # Its end may cut the answer that its journal has already.
        self.assertIn((cause["engine"], cause["phase"]), (("fe-b", "verify"), ("fe-b", "flush")))
        if cause["phase"] == "verify":
            self.assertRegex(cause["message"], "weight_info.*refused")
        for engine in (engines[0], engines[2]):
            state = engine.state()
            self.assertEqual((state["resumes"], state["session"], state["paused"]),
                             ([], "closed", True), engine.name)


class Case20(Case):
    """A refusal that would repeat."""

    def test_two_attempts_and_the_engines_text(self):
        engines = [self.engine("fe-a"), self.engine("fe-b")]
        text = "w2.scale: shape mismatch, expected 128 elements, got 512"
        engines[1].faults({"route": "update_weights", "nth": "every", "do": "status",
                           "status": 500, "body": '{"error":{"message":"%s"}}' % text})
        pushed = self.pushed(engines)
        self.assert_clean_fail(pushed, engines, 10, says=("fe-b", "w2.scale"))
        self.assertLessEqual(len(engines[1].calls("update_weights")), 2)


class Case21(Case):
    """Caches that outlive the weights they were computed from."""

    def test_one_reset_between_finish_and_resume(self):
        engines = [self.engine("fe-a"), self.engine("fe-b")]
        self.assert_done(self.pushed(engines), engines)
        for engine in engines:
            resets = engine.calls("reset_prefix_cache")
            self.assertEqual(len(resets), 1)
            self.assertGreaterEqual(resets[0]["t"], engine.calls("finish_weight_update")[-1]["t"])
            self.assertLessEqual(resets[0]["t"], engine.calls("resume")[0]["t"])

    def test_503_twice(self):
        engines = [self.engine("fe-a"), self.engine("fe-b")]
        engines[1].faults({"route": "reset_prefix_cache", "nth": [1, 2], "do": "status",
                           "status": 503})
        self.assert_done(self.pushed(engines), engines)

    def failing(self, status):
        engines = [self.engine("fe-a"), self.engine("fe-b")]
        engines[1].faults({"route": "reset_prefix_cache", "nth": "every", "do": "status",
                           "status": status})
        pushed = self.pushed(engines)
        self.assertEqual((pushed.code, pushed.report["outcome"]), (3, "failed"), pushed.text)
        self.assertEqual(pushed.report["first_cause"]["engine"], "fe-b")
        for engine in engines:
            self.assertEqual(engine.state()["resumes"], [], engine.name)
        return pushed

    def test_always_503(self):
        self.failing(503)

    def test_404_is_not_resent(self):
        self.assertFalse(self.failing(404).report["resent"])

    def test_skipped_only_when_the_configuration_says_so(self):
        engines = [self.engine("fe-a")]
        engines[0].faults({"route": "reset_prefix_cache", "nth": "every", "do": "status",
                           "status": 404})
        pushed = self.pushed(engines, push={"flush": "false"})
        self.assert_done(pushed, engines)
        self.assertEqual(engines[0].calls("reset_prefix_cache"), [])


class Case22(Case):
    """Request shapes that changed between releases."""

    def test_an_old_and_a_new_engine_in_one_push(self):
        engines = [self.engine("older", "--profile", "0.23"), self.engine("newer")]
        pushed = self.pushed(engines, push={"verify": "none"})
        self.assertEqual(pushed.code, 0, pushed.text)
        self.assert_current(engines[1], "2", pushed.digests)
        # That release has no version to tell, and the report says so.
        state = engines[0].state()
        self.assertEqual((state["weights"], state["paused"]), (pushed.digests, False))
        self.assertEqual(pushed.report["engines"][0]["outcome"], "unproved")

    def test_start_is_not_there(self):
        engines = [self.engine("fe-a"), self.engine("fe-b")]
        engines[1].faults({"route": "start_weight_update", "nth": "every", "do": "status",
                           "status": 404})
        pushed = self.pushed(engines)
        self.assertEqual(pushed.code, 3, pushed.text)
        self.assertFalse(pushed.report["resent"])
        cause = pushed.report["first_cause"]
        self.assertEqual(cause["engine"], "fe-b")
        self.assertIn("start_weight_update", cause["message"])
        self.assertEqual(engines[1].calls("update_weights"), [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
