# SPDX-License-Identifier: Apache-2.0
"""Whole pushes: real ranks, real Gloo, real sockets, reference engines."""

import json
import re
import signal
import time
import unittest

import harness


class CleanPush(harness.Case):
    def test_every_byte_arrives_and_generation_goes_on(self):
        engines = [self.engine(f"e{i}", "--world-size", "2") for i in range(3)]
        folder, digests = self.weights("1")
        code, report, text = self.push(self.config(engines), folder, "1")
        self.assertEqual(code, 0, text)
        self.assertEqual(report["outcome"], "done")
        self.assertEqual(report["attempts"], 1)
        self.assertFalse(report["resent"])
        self.assertEqual(report["ranks"], 4)
        self.assertEqual(report["tensors"], len(digests))
        self.assertIsNone(report["first_cause"])
        for engine in engines:
            self.assert_current(engine, "1", digests)
            self.assertEqual(len(engine.state()["resumes"]), 1)
        for row in report["engines"]:
            self.assertEqual((row["outcome"], row["version"], row["paused"], row["session"]),
                             ("current", "1", False, "closed"))
            self.assertEqual(row["bytes"], 2 * report["bytes"])

    def test_processes_may_end_more_slowly_than_a_push_may_shut_down(self):
        folder, _ = self.weights("1", 1, 16)
        code, report, text = self.push(
            self.config([self.engine("e0")], timeouts={"shutdown": "1ms"}), folder, "1", ranks=3)
        self.assertEqual((code, report["outcome"]), (0, "done"), text)

    def test_two_pushes_and_a_version_that_is_there_already(self):
        engine = self.engine("e0")
        config = self.config([engine])
        for version in ("1", "2"):
            folder, digests = self.weights(version)
            code, _, text = self.push(config, folder, version, ranks=2)
            self.assertEqual(code, 0, text)
            self.assert_current(engine, version, digests)
        # The label is there before the push: only a marker set first makes it a proof.
        folder, digests = self.checkpoint("again", harness.layered("other"))
        code, _, text = self.push(config, folder, "2", ranks=2)
        self.assertEqual(code, 0, text)
        self.assert_current(engine, "2", digests)
        self.assertEqual(len(engine.calls("update_weight_version")), 1)

    def test_one_rank_and_every_profile(self):
        folder, digests = self.weights("1")
        for profile in ("0.27", "0.28", "0.30", "0.32", "0.33"):
            with self.subTest(profile=profile):
                engine = self.engine(f"p{profile}", "--profile", profile, "--world-size", "2")
                code, _, text = self.push(self.config([engine]), folder, "1", ranks=1)
                self.assertEqual(code, 0, text)
                self.assert_current(engine, "1", digests)

    def test_releases_without_versions_only_unproved(self):
        folder, digests = self.weights("1")
        for profile in ("0.22", "0.24", "0.26"):
            with self.subTest(profile=profile):
                engine = self.engine(f"p{profile}", "--profile", profile)
                code, _, text = self.push(self.config([engine]), folder, "1", ranks=2)
                self.assertEqual(code, 3, text)
                self.assertIn("push.verify", text)
                code, report, text = self.push(self.config([engine], push={"verify": "none"}),
                                               folder, "1", ranks=2)
                self.assertEqual(code, 0, text)
                self.assertEqual(report["engines"][0]["outcome"], "unproved")
                self.assertEqual(engine.state()["weights"], digests)


class OneFault(harness.Case):
    """One failure at one engine is mended by exactly one resend."""

    def recover(self, fault, world_size="1"):
        engines = [self.engine("good"), self.engine("bad", "--world-size", world_size),
                   self.engine("fine", "--world-size", "2")]
        config = self.config(engines)
        folder, digests = self.weights("1")
        engines[1].faults(fault)
        code, report, text = self.push(config, folder, "1")
        self.assertEqual(code, 0, text)
        self.assertEqual(report["outcome"], "recovered", report)
        self.assertEqual(report["attempts"], 2)
        self.assertTrue(report["resent"])
        for engine in engines:
            self.assert_current(engine, "1", digests)
        return engines, report

    def test_start(self):
        # The first start of a job is the empty session's.
        self.recover({"route": "start_weight_update", "nth": 2, "do": "status", "status": 500,
                      "body": '{"error":{"message":"boom"}}'})

    def test_update_before_the_first_byte(self):
        _, report = self.recover({"route": "update_weights", "nth": 1, "do": "status",
                                  "status": 500, "body": '{"error":{"message":"no memory left"}}'})
        self.assertEqual(report["first_cause"]["engine"], "bad")
        self.assertIn("no memory left", report["first_cause"]["message"])

    def test_update_in_mid_stream(self):
        engines, report = self.recover({"route": "update_weights", "nth": 1,
                                        "do": "fail_after_chunks", "after_chunks": 2})
        self.assertEqual(report["first_cause"]["engine"], "bad")
        # An empty session clears what the interrupted stream left, before the resend.
        for engine in engines:
            self.assertGreaterEqual(len(engine.calls("start_weight_update")), 3, engine.name)

    def test_update_after_the_last_chunk(self):
        self.recover({"route": "update_weights", "nth": 1, "do": "apply_reset"})

    def test_finish(self):
        self.recover({"route": "finish_weight_update", "nth": 2, "do": "status", "status": 500,
                      "body": '{"error":{"message":"boom"}}'})

    def test_wrong_version_reported(self):
        # The first two reads are connect's: the route's presence and the label found.
        self.recover({"route": "weight_info", "nth": 3, "do": "version", "value": " 1"})

    def test_lost_resume_is_not_a_resend(self):
        engine = self.engine("e0")
        folder, digests = self.weights("1")
        engine.faults({"route": "resume", "nth": 1, "do": "close"})
        code, report, text = self.push(self.config([engine]), folder, "1", ranks=2)
        self.assertEqual(code, 0, text)
        self.assertEqual(report["outcome"], "done")
        self.assert_current(engine, "1", digests)


class EveryAttemptFails(harness.Case):
    def test_all_ranks_say_the_same_and_nothing_is_resumed(self):
        engines = [self.engine("good", "--world-size", "2"), self.engine("bad"), self.engine("fine")]
        config = self.config(engines)
        folder, _ = self.weights("1")
        engines[1].faults({"route": "update_weights", "nth": "every", "do": "fail_after_chunks",
                           "after_chunks": 1})
        ranks = self.ranks(config, folder, "1", 4)
        for process in ranks:
            self.assertEqual(process.wait(timeout=60 * harness.SLOW), 3)
        causes = set()
        for rank in range(4):
            found = re.search(r"Cause: (.*?) \[", self.rank_log(rank))
            self.assertIsNotNone(found, self.rank_log(rank))
            causes.add(found.group(1))
        self.assertEqual(len(causes), 1, causes)
        self.assertIn("bad", causes.pop())
        for engine in engines:
            state = engine.state()
            self.assertTrue(state["paused"])
            self.assertEqual(state["resumes"], [])
            self.assertNotEqual(state["version"], "1")
            self.assertEqual(state["session"], "closed")

    def test_a_refusal_that_would_repeat_is_not_resent(self):
        engine = self.engine("e0")
        folder, _ = self.weights("1")
        engine.faults({"route": "update_weights", "nth": 1, "do": "status", "status": 400,
                       "body": '{"error":{"message":"unknown name"}}'})
        code, report, text = self.push(self.config([engine]), folder, "1", ranks=2)
        self.assertEqual(code, 3, text)
        self.assertEqual(report["attempts"], 1)
        self.assertIn("unknown name", report["first_cause"]["message"])

    def test_failure_before_any_start_puts_engines_back(self):
        engines = [self.engine("good"), self.engine("bad")]
        folder, _ = self.weights("1")
        engines[1].faults({"route": "pause", "nth": "every", "do": "status", "status": 500,
                           "body": '{"error":"Failed to pause: boom"}'})
        code, report, text = self.push(
            self.config(engines, timeouts={"pause": "2s"}), folder, "1", ranks=2)
        self.assertEqual(code, 3, text)
        self.assertEqual(report["attempts"], 1)
        self.assertFalse(engines[0].state()["paused"])
        self.assertEqual(engines[0].calls("start_weight_update"), [])
        # Each engine that was put back is named (P3).
        self.assertIn("engine good generates again, as it did before this push", report["notes"])


class DeadEngine(harness.Case):
    def test_the_report_tells_each_engines_state(self):
        engines = [self.engine("good"), self.engine("bad")]
        folder, _ = self.weights("1")
        engines[1].faults({"route": "update_weights", "nth": 1, "do": "die_after_chunks",
                           "after_chunks": 2})
        code, report, text = self.push(self.config(engines), folder, "1", ranks=2)
        self.assertEqual(code, 3, text)
        self.assertEqual(report["attempts"], 2)
        self.assertEqual(report["first_cause"]["engine"], "bad")
        rows = {row["name"]: row for row in report["engines"]}
        # Part of a stream was loaded, then cleared by an empty session: no checkpoint's weights.
        self.assertEqual(rows["good"]["outcome"], "mixed")
        self.assertTrue(rows["good"]["paused"])
        self.assertEqual(rows["good"]["session"], "closed")
        self.assertIn("push again", rows["good"]["remedy"])
        self.assertIn(rows["bad"]["outcome"], ("unknown", "lost"))
        self.assertIn("restart it", rows["bad"]["remedy"])
        state = engines[0].state()
        self.assertTrue(state["paused"])
        self.assertEqual(state["version"], "default")
        self.assertEqual(state["resumes"], [])


class Ranks(harness.Case):
    AGREEMENT = 5  # seconds, the harness's

    def stuck_push(self, count, more=()):
        """`count` ranks in the middle of a stream that their engine has stopped reading. `more`:
        engines that read on."""
        engine = self.engine("e0")
        config = self.config([engine, *more], timeouts={"progress": "30s", "request": "30s"})
        folder, _ = self.checkpoint(f"v1-{len(self.children)}", harness.layered("1"))
        engine.faults({"route": "update_weights", "nth": 1, "do": "stop_reading",
                       "after_chunks": 1})
        ranks = self.ranks(config, folder, "1", count)
        self.await_that(lambda: engine.journal("chunk"), 30, "the stream to run")
        return engine, ranks

    def test_a_killed_rank_ends_the_push_for_all(self):
        for killed in (2, 0):
            with self.subTest(killed=killed):
                others = [self.engine(f"e1-{killed}", "--world-size", "2"),
                          self.engine(f"e2-{killed}")]
                engine, ranks = self.stuck_push(4, others)
                begin = time.monotonic()
                ranks[killed].kill()
                for rank in set(range(4)) - {killed}:
                    left = begin + self.AGREEMENT + 1 - time.monotonic()
                    self.assertEqual(ranks[rank].wait(timeout=max(left, 0.01) * harness.SLOW), 3,
                                     self.rank_log(rank))
                    self.assertIn(f"rank {killed} is gone", self.rank_log(rank))
                for each in [engine, *others]:
                    state = each.state()
                    self.assertEqual((state["paused"], state["resumes"]), (True, []), each.name)
                    self.assertNotEqual(state["version"], "1")

    def test_a_signal_ends_the_push_cleanly(self):
        engine, ranks = self.stuck_push(3)
        ranks[1].send_signal(signal.SIGTERM)
        self.assert_ended(1, 143, limit=20)
        for rank in (0, 2):
            self.assert_ended(rank, 3, limit=20)
        self.assertTrue(engine.state()["paused"])

    def test_a_closed_terminal_is_a_stop_order_too(self):
        # Where nohup runs the tests, ranks would inherit that it is ignored.
        self.addCleanup(signal.signal, signal.SIGHUP, signal.signal(signal.SIGHUP, signal.SIG_DFL))
        engine = self.engine("e0")
        config = self.config([engine], timeouts={"drain": "30s", "request": "30s"})
        folder, _ = self.checkpoint("v1", harness.layered("1"))
        engine.faults({"route": "update_weights", "nth": 1, "do": "hang"})
        ranks = self.ranks(config, folder, "1", 2)
        self.await_that(lambda: engine.calls("update_weights"), 30, "the update")
        ranks[0].send_signal(signal.SIGHUP)
        self.assert_ended(0, 129)
        self.assert_ended(1, 3)
        state = engine.state()
        self.assertEqual((state["session"], state["paused"]), ("closed", True), self.rank_log(0))

    def test_rank_zero_writes_the_report_of_a_failed_push(self):
        engine = self.engine("e0")
        config = self.config([engine])
        folder, _ = self.weights("1")
        engine.faults({"route": "pause", "nth": 1, "do": "status", "status": 400})
        self.ranks(config, folder, "1", 2)
        for rank in range(2):
            self.assert_ended(rank, 3)
        report = json.loads((self.folder / "ranks.json").read_text())
        self.assertEqual((report["outcome"], report["first_cause"]["engine"]), ("failed", "e0"))
        self.assertEqual(report["engines"][0]["outcome"], "old")

    def test_the_next_rank_writes_it_when_rank_zero_is_gone(self):
        _, ranks = self.stuck_push(2)
        ranks[0].kill()
        self.assert_ended(1, 3, limit=20)
        report = json.loads((self.folder / "ranks.json").read_text())
        self.assertEqual((report["outcome"], report["first_cause"]["rank"]), ("failed", 0))
        self.assertIn("rank 0 is gone", report["first_cause"]["message"])

    def test_ranks_configured_differently_refuse(self):
        engine = self.engine("e0")
        folder, _ = self.weights("1")
        configs = [self.config([engine]), self.config([engine], transport={"buffer": "64KiB"})]
        self.ranks(configs, folder, "1", 2)
        for rank in range(2):
            self.assert_ended(rank, 2, "transport.buffer")
        self.assertEqual(engine.calls("pause"), [])


class StaleState(harness.Case):
    def test_a_session_left_open_by_a_dead_job(self):
        engine = self.engine("e0", "--world-size", "2")
        harness.request(engine.port, "POST", "/start_weight_update", {})
        self.assertEqual(engine.state()["session"], "open")
        folder, digests = self.weights("1")
        code, report, text = self.push(self.config([engine]), folder, "1", ranks=2)
        self.assertEqual(code, 0, text)
        self.assertEqual(report["outcome"], "done")
        self.assert_current(engine, "1", digests)

    def test_an_engine_resumed_by_somebody_else(self):
        engine = self.engine("e0")
        folder, _ = self.weights("1")
        engine.faults({"route": "finish_weight_update", "nth": 2, "do": "delay", "seconds": 2})
        self.ranks(self.config([engine]), folder, "1", 2)
        self.await_that(lambda: len(engine.calls("finish_weight_update")) == 2, 30, "the finish")
        harness.request(engine.port, "POST", "/resume")
        for rank in range(2):
            self.assert_ended(rank, 3, "somebody else resumed it")

    def test_a_restarted_engine_gets_the_weights(self):
        engine = self.engine("e0")
        config = self.config([engine])
        folder, _ = self.weights("1")
        self.assertEqual(self.push(config, folder, "1", ranks=2)[0], 0)
        engine.stop()
        again = self.engine("e0", port=engine.port)
        folder, digests = self.weights("2")
        code, _, text = self.push(config, folder, "2", ranks=2)
        self.assertEqual(code, 0, text)
        self.assert_current(again, "2", digests)


if __name__ == "__main__":
    unittest.main(verbosity=2)
