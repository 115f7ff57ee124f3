# SPDX-License-Identifier: Apache-2.0
"""Engines that fail or fall silent while others wait: cases 02, 05, 09, 10, 11, 12 and 13."""

import socket
import subprocess
import sys
import unittest

import harness
from outcome import SHORT, Case

MEMORY = '{"error":{"message":"CUDA out of memory. Tried to allocate 2.00 GiB"}}'


class Case02(Case):
    """An engine's error must reach the sender, which must not wait without a limit."""

    def engines_with(self, **fault):
        engines = [self.engine("fe-a"), self.engine("fe-b")]
        engines[1].faults({"route": "update_weights", **fault})
        return engines

    def test_once_in_mid_stream(self):
        engines = self.engines_with(nth=1, do="fail_after_chunks", after_chunks=3)
        pushed = self.pushed(engines, ranks=3, transport={"buffer": "4KiB"})
        self.assert_recovered(pushed, engines)
        for engine in engines:
            # The channel was rebuilt in between.
            self.assertEqual(len(engine.calls("init_weight_transfer_engine")), 2)

    def test_every_time(self):
        engines = self.engines_with(nth="every", do="fail_after_chunks", after_chunks=3)
        pushed = self.pushed(engines, ranks=3, transport={"buffer": "4KiB"})
        self.assert_clean_fail(pushed, engines, 6, says=("fe-b", engines[1].url, "500"))

    def test_the_engines_own_words_are_told(self):
        engines = self.engines_with(nth="every", do="status", status=500, body=MEMORY)
        pushed = self.pushed(engines, ranks=3)
        self.assert_clean_fail(pushed, engines, 6, says=("fe-b", "500", "CUDA out of memory"))

    def test_a_reader_that_stops_without_a_word(self):
        engines = self.engines_with(nth="every", do="stop_reading", after_chunks=3)
        pushed = self.pushed(engines, ranks=3, transport={"buffer": "4KiB"},
                             tensors=harness.layered("2", 8, 512),
                             timeouts={"progress": "2s", "request": "10s"})
        self.assert_clean_fail(pushed, engines[:1], 25, says=("fe-b", "progress"))


class Case05(Case):
    """Joining is a call that returns when all have joined: the calls must run side by side."""

    def test_all_healthy(self):
        engines = [self.engine(f"fe-{i}", "--world-size", "2") for i in range(4)]
        pushed = self.pushed(engines)
        self.assert_done(pushed, engines)
        self.assertLess(pushed.report["phases"]["channel"], 2 * harness.SLOW)

    def test_one_never_joins_and_nothing_of_it_is_left(self):
        engines = [self.engine(f"fe-{i}") for i in range(4)]
        engines[2].faults({"route": "init_weight_transfer_engine", "nth": 1, "do": "hang"})
        pushed = self.pushed(engines, ranks=3)
        # A job's first push to an engine starts with an empty session: it stays paused (P3, P15).
        self.assert_clean_fail(pushed, engines, 10, says=("fe-2", "channel"))
        again = self.pushed(engines, "3", ranks=3)
        self.assert_done(again, engines)


class Case09(Case):
    """A server that answers /health and nothing else."""

    # Twice the route's limit and 2 s.
    BOUND = 2 * 3 + 2

    def silent(self, route, says, **fault):
        engines = [self.engine(f"fe-{name}") for name in "abc"]
        engines[2].faults({"route": route, "nth": "every", "do": "hang", **fault})
        # The last closing of sessions has three quarters of timeouts.shutdown.
        pushed = self.pushed(engines, ranks=4, timeouts={"shutdown": "1s"})
        # What begins and ends the processes is no part of the push.
        self.assert_clean_fail(pushed, engines[:2], self.BOUND + 6, says=("fe-c", says))
        self.assertLess(pushed.report["duration_s"], self.BOUND * harness.SLOW, pushed.text)
        return engines[2]

    # The first start and the first finish are the empty session's, the others the push's own.
    OWN = list(range(2, 40))

    def test_start(self):
        self.silent("start_weight_update", "start_weight_update", nth=self.OWN)

    def test_update(self):
        # timeouts.drain holds once all bytes are there.
        self.silent("update_weights", "stream")

    def test_finish(self):
        engine = self.silent("finish_weight_update", "finish_weight_update", nth=self.OWN)
        # The push's own, the recovery's close, which ends the push unanswered, and the last clean-up's.
        routes = [line["path"][1:] for line in engine.journal("request")]
        finishes = [at for at, route in enumerate(routes) if route == "finish_weight_update"]
        self.assertEqual(len(finishes), 4, routes)
        self.assertIn("collective_rpc", routes[finishes[1]:finishes[2]])
        self.assertEqual(routes.count("update_weights"), 1)

    def test_weight_info(self):
        # The first two are looks at connect, where nothing is paused yet.
        self.silent("weight_info", "weight_info", nth=list(range(3, 40)))

    def test_one_byte_a_second_for_ever(self):
        self.silent("start_weight_update", "start_weight_update", do="trickle", per_second=1)


class Case10(Case):
    """The one resume call is lost."""

    def test_closed_without_acting(self):
        engines = [self.engine("fe-a"), self.engine("fe-b")]
        engines[0].faults({"route": "resume", "nth": 1, "do": "close"})
        pushed = self.pushed(engines)
        self.assert_done(pushed, engines)
        self.assertEqual(len(engines[0].calls("update_weights")), 1)
        self.assertEqual({each["session"] for each in pushed.report["engines"]}, {"closed"})

    def test_503_twice(self):
        engines = [self.engine("fe-a"), self.engine("fe-b")]
        engines[0].faults({"route": "resume", "nth": [1, 2], "do": "status", "status": 503})
        self.assert_done(self.pushed(engines), engines)

    def test_never(self):
        engines = [self.engine("fe-a"), self.engine("fe-b")]
        engines[0].faults({"route": "resume", "nth": "every", "do": "status", "status": 503})
        pushed = self.pushed(engines)
        self.assertEqual((pushed.code, pushed.report["outcome"]), (3, "failed"), pushed.text)
        told = {each["name"]: each for each in pushed.report["engines"]}
        self.assertEqual((told["fe-a"]["version"], told["fe-a"]["paused"]), ("2", True))
        self.assertEqual((told["fe-b"]["version"], told["fe-b"]["paused"]), ("2", False))
        self.assertEqual(len(engines[0].calls("update_weights")), 1)


class Case11(Case):
    """No engine is resumed before the last one's version was verified."""

    def test_slow_engines_hold_the_others(self):
        engines = [self.engine(f"fe-{name}") for name in "abc"]
        # Longer than a call is out before /health is asked beside it. The second finish is the
        # push's own; the first ends the empty session.
        engines[1].faults({"route": "update_weights", "nth": 1, "do": "delay", "seconds": 5},
                          {"route": "health", "nth": "every", "do": "hang"})
        engines[2].faults({"route": "finish_weight_update", "nth": 2, "do": "delay", "seconds": 4},
                          {"route": "health", "nth": "every", "do": "hang"})
        pushed = self.pushed(engines, timeouts={"drain": "12s", "request": "15s"})
        self.assert_done(pushed, engines)
        for engine in engines[1:]:
            self.assertGreater(len(engine.calls("health")), 0, engine.name)
        # Each engine's last read comes right before its own resume.
        verified = max(engine.calls("weight_info")[-2]["t"] for engine in engines)
        for engine in engines:
            self.assertGreaterEqual(engine.calls("resume")[0]["t"], verified, engine.name)


class Case12(Case):
    """A pause that never ends."""

    def failed_pause(self, fault, says):
        engines = [self.engine("fe-a"), self.engine("fe-b")]
        engines[1].faults(fault)
        pushed = self.pushed(engines)
        self.assertEqual((pushed.code, pushed.report["outcome"]), (3, "failed"), pushed.text)
        self.assertIn(says, pushed.report["first_cause"]["message"])
        self.assertLess(pushed.seconds, 12 * harness.SLOW)
        for engine in engines:
            self.assertEqual(engine.calls("start_weight_update"), [])
        # Put back as it was found, and the report says so.
        self.assertFalse(engines[0].state()["paused"])
        told = {each["name"]: each for each in pushed.report["engines"]}
        self.assertEqual(told["fe-a"]["paused"], False)

    def test_pause_never_returns(self):
        self.failed_pause({"route": "pause", "nth": "every", "do": "hang"}, "pause")

    def test_never_paused(self):
        self.failed_pause({"route": "is_paused", "nth": "every", "do": "status", "status": 200,
                           "body": '{"is_paused":false}'}, "pause")

    def test_paused_late(self):
        engines = [self.engine("fe-a"), self.engine("fe-b")]
        engines[1].faults({"route": "is_paused", "nth": [1, 2, 3], "do": "status", "status": 200,
                           "body": '{"is_paused":false}'})
        self.assert_done(self.pushed(engines), engines)


SLOW_START = """
import socket, subprocess, sys, time
program, port, kind, seconds, journal = sys.argv[1:6]
end = time.monotonic() + float(seconds)
if kind == "503":
    server = socket.create_server(("127.0.0.1", int(port)))
    while (left := end - time.monotonic()) > 0:
        server.settimeout(left)
        try:
            client, _ = server.accept()
            client.settimeout(1)
            client.recv(65536)
            client.sendall(b"HTTP/1.1 503 Service Unavailable\\r\\nConnection: close\\r\\n"
                           b"Content-Length: 9\\r\\n\\r\\ncompiling")
            client.close()
        except OSError:
            pass
    server.close()
else:
    import select
    select.select([], [], [], float(seconds))
subprocess.run([program, "engine", "--port", port, "--name", "fe-b", "--journal", journal])
"""


class Case13(Case):
    """An engine that is still compiling; limits that do not fit together."""

    def late_engine(self, kind, seconds):
        """Its port answers 503, or refuses, for `seconds`; then it is a reference engine."""
        port = harness.free_port()
        engine = LateEngine(port, self.folder / "fe-b.journal")
        self.children.append(subprocess.Popen(
            [sys.executable, "-c", SLOW_START, harness.PROGRAM, str(port), kind, str(seconds),
             str(engine.journal_path)],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True))
        if kind == "503":
            harness.wait_until(engine.listens, 10, "the late engine's port")
        return engine

    def tearDown(self):
        for child in self.children:
            if child.poll() is None:
                harness.end_group(child)
        super().tearDown()

    def test_503_and_refusals_are_waited_out(self):
        for kind in ("503", "refused"):
            with self.subTest(kind):
                engines = [self.engine(f"fe-a-{kind}"), self.late_engine(kind, 4)]
                pushed = self.pushed(engines, ranks=4,
                                     timeouts={"agreement": "2s", "startup": "20s"})
                self.assert_done(pushed, engines)

    def test_no_longer_than_the_limit(self):
        engines = [self.engine("fe-a"), self.late_engine("503", 60)]
        pushed = self.pushed(engines, ranks=4, timeouts={"agreement": "2s", "startup": "3s"})
        self.assertEqual((pushed.code, pushed.report["outcome"]), (3, "failed"), pushed.text)
        self.assertIn("503", pushed.report["first_cause"]["message"])
        self.assertIn("compiling", pushed.report["first_cause"]["message"])
        self.assertLess(pushed.seconds, 7 * harness.SLOW)
        self.assertEqual(engines[0].calls("pause"), [])

    def test_ranks_wait_rightly_longer_than_the_agreement(self):
        engines = [self.engine("fe-a"), self.engine("fe-b")]
        engines[1].faults({"route": "update_weights", "nth": 1, "do": "delay", "seconds": 4})
        pushed = self.pushed(engines, ranks=4, timeouts={"agreement": "2s", "drain": "10s",
                                                         "request": "10s"})
        self.assert_done(pushed, engines)

    def test_limits_that_contradict_each_other_are_refused(self):
        engine = self.engine("fe-a")
        config = self.config([engine], timeouts={**SHORT, "push": "2s", "request": "3s"})
        folder, _ = self.checkpoint("v1", harness.layered("1", 1, 16))
        code, _, text = self.push(config, folder, "1", ranks=2)
        self.assertEqual(code, 2, text)
        self.assertIn("timeouts.push", text)


class LateEngine(harness.EngineClient):
    def __init__(self, port, journal_path):
        super().__init__("fe-b", port, journal_path)

    def listens(self):
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0


if __name__ == "__main__":
    unittest.main(verbosity=2)
