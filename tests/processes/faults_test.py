# SPDX-License-Identifier: Apache-2.0
"""Failures from outside, whatever they are: the push ends within its limits, all ranks say the same,
nobody is resumed with other weights than reported, and healthy engines keep no session."""

import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import threading
import unittest

import harness

SHORT = {"push": "20s", "connect": "3s", "startup": "3s", "init": "2s", "request": "2s",
         "pause": "2s", "resume": "2s", "progress": "2s", "drain": "1s", "gather": "3s",
         "agreement": "2s", "shutdown": "2s"}


def answer(body):
    return (b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: "
            + str(len(body)).encode() + b"\r\n\r\n" + body)


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
RUBBISH = {
    "html": answer(b"<html>nginx</html>"),
    "empty": answer(b""),
    "null": answer(b"null"),
    "deep": answer(b"[" * 100000),
    "not-utf8": answer(b'{"version":"\xff\xfe"}'),
    "no-number": answer(b'{"version":"0.33.0","world_size":99999999999999999999}'),
    "control": answer(b'{"version":"0.33\\u001b[31m\\u0000"}'),
    "long": answer(b'{"version":"' + b"9" * 1000000 + b'"}'),
    "ancient": answer(b'{"version":"0.1.0"}'),
    "cut": CHUNKED + b"10\r\nabc",
    "no-chunk": CHUNKED + b"ZZZ\r\nabc\r\n",
    "huge-chunk": CHUNKED + b"ffffffffffffffff\r\nabc\r\n",
    "two-lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 7\r\n\r\nabcde",
    "redirect": b"HTTP/1.1 307 T\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n",
    "interim": b"HTTP/1.1 100 Continue\r\n\r\n" * 1000,
    "long-header": b"HTTP/1.1 200 OK\r\nX: " + b"y" * 1000000 + b"\r\n\r\n",
    "no-http": b"\x15\x03\x01\x00\x02\x02\x46" + bytes(range(256)),
    "silence": b"",
}


class RubbishServer:
    """Answers the same bytes to whatever it is sent."""

    def __init__(self, reply):
        self.reply = reply
        self.name = "rubbish"
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        self.open = []
        self.thread = threading.Thread(target=self.serve)
        self.thread.start()

    def serve(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.open.append(connection)
            threading.Thread(target=self.talk, args=(connection,), daemon=True).start()

    def talk(self, connection):
        try:
            while connection.recv(65536):
                connection.sendall(self.reply)
        except OSError:
            pass

    def stop(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join()
        for connection in self.open:
            connection.close()


class Rubbish(harness.Case):
    def test_a_server_that_is_no_engine(self):
        good = self.engine("good")
        folder, _ = self.weights("1", 1, 16)
        for name, reply in RUBBISH.items():
            with self.subTest(rubbish=name):
                server = RubbishServer(reply)
                self.addCleanup(server.stop)
                config = self.config([good, server], timeouts={**SHORT, "connect": "1s",
                                                               "startup": "1s"})
                code, report, text = self.push(config, folder, "1", ranks=1)
                self.assertEqual(code, 3, text)
                self.assertEqual(report["first_cause"]["phase"], "connect")
                self.assertEqual(report["first_cause"]["engine"], "rubbish")
                self.assertIsNone(re.search(r"[\x00-\x09\x0b-\x1f]", text), text)
                self.assertLess(len(text), 20000)
        self.assertEqual(good.calls("pause"), [])


    def test_another_protocol_is_refused_at_once(self):
        folder, _ = self.weights("1", 1, 16)
        for reply in (b"SSH-2.0-OpenSSH_9.2p1\r\n", b"-ERR unknown command\r\n",
                      b"\x15\x03\x01\x00\x02\x02\x46"):
            with self.subTest(reply=reply):
                server = RubbishServer(reply)
                self.addCleanup(server.stop)
                config = self.config([server], timeouts={"push": "300s", "startup": "200s"})
                code, report, text = self.push(config, folder, "1", ranks=1, limit=30)
                self.assertEqual(code, 3, text)
                self.assertEqual(report["first_cause"]["code"], "failed_precondition")
                self.assertIn("no HTTP server", report["first_cause"]["message"])


class RouteCase(harness.Case):
    """One fault at one route of one of two engines, with two ranks."""

    ROUTES = ("version", "get_world_size", "collective_rpc", "is_paused", "pause",
              "start_weight_update", "shutdown_weight_transfer_engine",
              "init_weight_transfer_engine", "update_weights", "finish_weight_update",
              "reset_prefix_cache", "weight_info", "resume")

    def setUp(self):
        super().setUp()
        self.model, self.digests = self.weights("1", 2, 32)

    def each(self, limits, **fault):
        for route in self.ROUTES:
            with self.subTest(route=route, **fault):
                self.once(limits, {"route": route, **fault})

    def once(self, limits, fault):
        engines = [self.engine("good"), self.engine("bad", "--world-size", "2")]
        engines[1].faults(fault)
        ranks = self.ranks(self.config(engines, timeouts=limits), self.model, "1", 2)
        codes = [process.wait(timeout=25 * harness.SLOW) for process in ranks]
        logs = [self.rank_log(rank) for rank in range(2)]
        self.assertEqual(codes[0], codes[1], logs)
        self.assertIn(codes[0], (0, 3), logs)
        causes = {(re.findall(r"Cause: (.*?) \[", log) or [""])[-1] for log in logs}
        self.assertEqual(len(causes), 1, causes)
        self.assertEqual(codes[0] == 0, causes == {""}, logs)
        self.check(engines[0], codes[0])
        self.assertEqual(engines[0].state()["session"], "closed")
        if fault["do"] not in ("die", "freeze_core"):
            self.check(engines[1], codes[0])
        for engine in engines:
            engine.stop()

    def check(self, engine, code):
        state = engine.state()
        complete = state["weights"] == self.digests
        self.assertFalse(any(resume["torn"] for resume in state["resumes"]), state)
        if code == 0:
            self.assertTrue(complete)
            self.assertFalse(state["paused"])
        elif state["resumes"] and engine.calls("start_weight_update"):
            self.assertTrue(complete, "resumed with other weights")
        if state["version"] == "1":
            self.assertTrue(complete, "a version without its weights")


class Routes(RouteCase):
    def test_refused_with_500(self):
        self.each(SHORT, nth="every", do="status", status=500,
                  body='{"error":{"message":"boom"}}')

    def test_503_once(self):
        self.each(SHORT, nth=1, do="status", status=503)

    def test_404(self):
        self.each(SHORT, nth="every", do="status", status=404)

    def test_connections_that_break(self):
        self.each(SHORT, nth=1, do="reset")

    def test_answers_that_are_lost(self):
        self.each(SHORT, nth=1, do="apply_reset")

    def test_engines_that_die(self):
        self.each(SHORT, nth=1, do="die")


class SilentRoutes(RouteCase):
    LIMITS = {**SHORT, "connect": "1s", "startup": "1s", "init": "1s", "request": "1s",
              "pause": "1s", "resume": "1s"}

    def test_no_answer(self):
        self.each(self.LIMITS, nth=1, do="hang")

    def test_a_frozen_core(self):
        self.each(self.LIMITS, nth=1, do="freeze_core")


class Causes(harness.Case):
    def fails(self, fault):
        engine = self.engine("e0")
        folder, _ = self.weights("1", 1, 16)
        engine.faults(fault)
        code, report, text = self.push(self.config([engine], timeouts=SHORT), folder, "1", ranks=2)
        self.assertEqual(code, 3, text)
        return report["first_cause"]

    def test_what_used_the_limit_up_is_the_cause(self):
        cause = self.fails({"route": "resume", "nth": "every", "do": "status", "status": 500,
                            "body": '{"error":{"message":"boom"}}'})
        self.assertIn("boom", cause["message"])
        self.assertEqual(cause["phase"], "resume")

    def test_answers_are_the_cause_of_the_connections_that_close_with_them(self):
        engines = [self.engine("e0"), self.engine("e1", "--world-size", "2")]
        first, _ = self.weights("1", 2, 64)
        other, _ = self.weights("2", 8, 96)
        config = self.config(engines, timeouts=SHORT, transport={"buffer": "4KiB"})
        self.assertEqual(self.push(config, first, "1", ranks=2)[0], 0)
        for _ in range(3):
            _, report, text = self.push(config, other, "2", ranks=2)
            self.assertIn("torch.Size([256, 96])", report["first_cause"]["message"], text)

    def test_one_failure_is_told_once(self):
        engine = self.engine("e0")
        folder, _ = self.weights("1", 1, 16)
        engine.faults({"route": "update_weights", "nth": "every", "do": "status", "status": 500,
                       "body": '{"error":{"message":"boom"}}'})
        _, report, _ = self.push(self.config([engine], timeouts=SHORT), folder, "1", ranks=2)
        told = [report["first_cause"]["message"], *report["notes"]]
        self.assertEqual(len(told), len(set(told)), told)
        # One of each attempt.
        self.assertEqual(len([each for each in told if "boom" in each]), 2, told)

    def test_an_engine_that_never_answers_its_update_is_named(self):
        cause = self.fails({"route": "update_weights", "nth": "every", "do": "hang"})
        self.assertEqual(cause["engine"], "e0")
        self.assertIn("timeouts.drain", cause["message"])
        # Declared and actual bytes (P28): which side is behind.
        sent, declared = re.search(r"e0: (\d+) of (\d+) bytes sent", cause["message"]).groups()
        self.assertGreater(int(declared), 0)
        self.assertLessEqual(int(sent), int(declared))


    def test_an_engine_that_answers_before_it_has_read_is_found_out(self):
        engine = self.engine("e0")
        # More than the sockets between the two can hold.
        folder, _ = self.checkpoint("large", {"w": harness.tensor("w", "1", "U8", [32 << 20])})
        engine.faults({"route": "update_weights", "nth": "every", "do": "ok_without_reading"})
        code, report, text = self.push(
            self.config([engine], timeouts={**SHORT, "progress": "10s"}), folder, "1", ranks=2)
        self.assertEqual(code, 3, text)
        message = report["first_cause"]["message"]
        self.assertIn("the engines answered while bytes remained within timeouts.drain", message)
        sent, declared = re.search(r"e0: (\d+) of (\d+) bytes sent", message).groups()
        self.assertEqual(int(declared), 32 << 20)
        self.assertLess(int(sent), int(declared))
        self.assertEqual((engine.state()["resumes"], engine.state()["version"]), ([], "default"))


class LateReplies(harness.Case):
    """Each failed update leaves one more reply of the second worker unread (P16)."""

    def test_a_lag_that_grows_past_the_limit_is_never_misread(self):
        engine = self.engine("e0", "--world-size", "2")
        folder, _ = self.weights("1", 4, 32)
        config = self.config([engine], timeouts=SHORT, transport={"buffer": "4KiB"})
        for push in range(7):
            engine.faults({"route": "update_weights", "nth": "every", "do": "fail_after_chunks",
                           "after_chunks": 1})
            code, report, text = self.push(config, folder, "1", ranks=2)
            self.assertEqual(code, 3, text)
            real = max(engine.state()["lag"])
            told = report["engines"][0]
            if real <= 8:
                self.assertEqual(told["reply_lag"], real, f"push {push}: {text}")
            else:
                self.assertEqual(told["outcome"], "lost", f"push {push}: {text}")
                self.assertIn("restart", told["remedy"])
        self.assertGreater(real, 8)


class Stops(harness.Case):
    def test_a_rank_that_was_stopped_contacts_no_engine_when_it_wakes(self):
        engine = self.engine("e0")
        folder, _ = self.weights("1", 1, 16)
        # The answer is there when it wakes, as are the others' farewells.
        engine.faults({"route": "pause", "nth": 1, "do": "delay", "seconds": 1.0})
        ranks = self.ranks(self.config([engine], timeouts=SHORT), folder, "1", 3)
        self.await_that(lambda: engine.calls("pause"), 30, "the pause")
        ranks[0].send_signal(signal.SIGSTOP)
        for rank in (1, 2):
            self.assertEqual(ranks[rank].wait(timeout=20 * harness.SLOW), 3, self.rank_log(rank))
            self.assertIn("rank 0 is gone", self.rank_log(rank))
        before = len(engine.journal("request"))
        ranks[0].send_signal(signal.SIGCONT)
        self.assertEqual(ranks[0].wait(timeout=20 * harness.SLOW), 3, self.rank_log(0))
        self.assertIn("this rank did not run for", self.rank_log(0))
        self.assertEqual(len(engine.journal("request")), before)
        self.assertTrue(engine.state()["paused"])

    def test_a_signal_before_the_push_ends_it_at_once(self):
        engine = self.engine("e0")
        folder, _ = self.weights("1", 1, 16)
        config = self.config([engine], timeouts={"connect": "60s"})
        ranks = self.ranks(config, folder, "1", 2)
        ranks[1].kill()  # Rank 0 waits for it.
        self.await_that(lambda: "rank 0 of 2" in self.rank_log(0), 20, "rank 0's first line")
        ranks[0].send_signal(signal.SIGTERM)
        self.assertEqual(ranks[0].wait(timeout=20 * harness.SLOW), 143, self.rank_log(0))
        self.assertEqual(engine.journal("request"), [])

    def supervised(self, ranks=3, **timeouts):
        """A push by a supervisor with a TMPDIR of its own, held in its first update, beside an
        earlier push's report. Returns (engine, supervisor)."""
        engine = self.engine("e0")
        folder, _ = self.weights("1", 1, 16)
        engine.faults({"route": "update_weights", "nth": 1, "do": "hang"})
        self.temporary = self.folder / "tmp"
        self.temporary.mkdir()
        self.report = self.folder / "report.json"
        self.report.write_text('{"version": "0", "outcome": "done"}')
        config = self.config([engine], timeouts={"drain": "30s", "request": "30s", **timeouts})
        with open(self.folder / "rank-0.log", "wb") as log:
            parent = subprocess.Popen(
                self.command(config, folder, "1", "--ranks", str(ranks), "--report",
                             str(self.report)),
                env=dict(os.environ, TMPDIR=str(self.temporary)), stdin=subprocess.DEVNULL,
                stdout=log, stderr=log)
        self.children.append(parent)
        return engine, parent

    def children_of(self, parent, count):
        """The supervisor's ranks, once all were started."""
        path = pathlib.Path(f"/proc/{parent.pid}/task/{parent.pid}/children")
        self.await_that(lambda: len(path.read_text().split()) == count, 20, "the ranks")
        return [int(pid) for pid in path.read_text().split()]

    def told(self):
        report = json.loads(self.report.read_text())
        self.assertEqual((report["version"], report["outcome"]), ("1", "failed"))
        return report["first_cause"]["message"]

    def test_the_supervisor_passes_one_signal_on(self):
        engine, parent = self.supervised()
        self.await_that(lambda: engine.calls("update_weights"), 30, "the update")
        parent.send_signal(signal.SIGINT)
        self.assertEqual(parent.wait(timeout=20 * harness.SLOW), 130, self.rank_log(0))
        state = engine.state()
        self.assertTrue(state["paused"])
        self.assertEqual((state["session"], state["resumes"]), ("closed", []),
                         self.rank_log(0))

    def test_a_second_order_ends_the_supervisor_in_order_too(self):
        engine, parent = self.supervised()
        self.await_that(lambda: engine.calls("update_weights"), 30, "the update")
        parent.send_signal(signal.SIGINT)
        # Its ranks are about to end, or have ended: it comes at every moment of that sooner or later.
        while parent.poll() is None:
            parent.send_signal(signal.SIGTERM)
            parent.send_signal(signal.SIGUSR1)
        self.assertEqual(parent.wait(), 130, self.rank_log(0))
        self.assertIn("pushrod:", self.rank_log(0).splitlines()[-1])
        self.told()
        self.assertEqual(list(self.temporary.iterdir()), [])

    def test_where_no_rank_lives_to_tell_the_supervisor_does(self):
        engine, parent = self.supervised(ranks=2)
        self.await_that(lambda: engine.calls("update_weights"), 30, "the update")
        ranks = self.children_of(parent, 2)
        for pid in ranks:
            os.kill(pid, signal.SIGSTOP)  # so that neither hears of the other's end
        for pid in ranks:
            os.kill(pid, signal.SIGKILL)
        self.assertEqual(parent.wait(timeout=20 * harness.SLOW), 3, self.rank_log(0))
        self.assertIn("No rank lived to leave a result. Rank 0 was ended by signal 9.", self.told())
        row = json.loads(self.report.read_text())["engines"][0]
        self.assertEqual((row["name"], row["outcome"]), ("e0", "unknown"))

    def test_a_killed_supervisor_leaves_no_earlier_report(self):
        engine, parent = self.supervised(ranks=2)
        self.await_that(lambda: engine.calls("update_weights"), 30, "the update")
        parent.kill()
        parent.wait()
        self.assertFalse(self.report.exists())

    def test_ranks_that_wait_for_one_that_died_tell_so(self):
        _, parent = self.supervised(connect="5s", startup="5s", shutdown="1s")
        os.kill(self.children_of(parent, 3)[2], signal.SIGKILL)
        self.assertEqual(parent.wait(timeout=30 * harness.SLOW), 3, self.rank_log(0))
        self.assertNotIn("did not end in time", self.rank_log(0))
        self.assertIn("rank 2", self.told())


if __name__ == "__main__":
    unittest.main(verbosity=2)
