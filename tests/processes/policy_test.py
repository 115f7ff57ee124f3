# SPDX-License-Identifier: Apache-2.0
"""What is left to configuration: engines lost under quarantine, waves, and sleeping engines."""

import json
import unittest

import harness

SHORT = {"push": "30s", "connect": "2s", "startup": "3s", "init": "3s", "request": "3s",
         "pause": "3s", "resume": "4s", "progress": "3s", "drain": "2s", "gather": "5s",
         "agreement": "3s", "shutdown": "2s"}
QUARANTINE = {"on_loss": "quarantine"}


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


class ExternalCache(harness.Case):
    def test_asked_for_where_there_is_none_it_harms_nobody(self):
        engine = self.engine("e0")
        model, digests = self.checkpoint("v1", harness.layered("1", 1, 16))
        config = self.config([engine], push={"flush_external": "true"}, timeouts=SHORT)
        code, _, text = self.push(config, model, "1", ranks=2)
        self.assertEqual(code, 0, text)
        self.assert_current(engine, "1", digests)
        self.assertEqual([line["query"] for line in engine.calls("reset_prefix_cache")], [""])


if __name__ == "__main__":
    unittest.main()
