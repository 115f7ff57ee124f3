# SPDX-License-Identifier: Apache-2.0
"""Idle connections, cut replies, proxies and exporters: cases 25 to 29."""

import contextlib
import http.client
import json
import os
import re
import socket
import subprocess
import threading
import time
import unittest

import harness
from outcome import SHORT, Case
from servers import Flood, Relay, answer


class Case25(Case):
    """The server drops idle keep-alive connections."""

    def through(self, delay, **relay):
        engine = self.engine("fe-a")
        # The other engine keeps the push busy while this one's connections idle.
        slow = self.engine("fe-b")
        slow.faults({"route": "finish_weight_update", "nth": 2, "do": "delay", "seconds": delay},
                    {"route": "pause", "nth": 1, "do": "delay", "seconds": delay})
        front = Relay(engine, **relay)
        self.addCleanup(front.stop)
        pushed = self.pushed([front, slow], timeouts={"request": "10s", "pause": "10s"})
        self.assert_done(pushed, [engine, slow])
        self.assertNotIn("warning", pushed.text)
        self.assertGreater(front.closed, 0)
        # No call was executed twice.
        self.assertEqual(len(engine.calls("update_weights")), 1)
        self.assertEqual(len(engine.calls("start_weight_update")), 2)
        self.assertEqual(len(engine.calls("finish_weight_update")), 2)

    def test_idle_for_a_second(self):
        self.through(2, idle=1)

    def test_after_each_reply_without_a_word(self):
        self.through(1, after_reply=True)

    def test_at_the_moment_of_the_write(self):
        # What is safe to repeat is repeated without a word. The other calls may have been carried
        # out: reads tell, and a session's call costs the one resend.
        for route, nth, outcome in (
                ("pause", 1, "done"), ("is_paused", 1, "done"), ("weight_info", 2, "done"),
                ("reset_prefix_cache", 1, "done"), ("finish_weight_update", 1, "done"),
                ("resume", 1, "done"), ("start_weight_update", 2, "recovered"),
                ("finish_weight_update", 2, "recovered")):
            with self.subTest(route=route, nth=nth):
                engine = self.engine(f"fe-{route}-{nth}")
                front = Relay(engine, at_write=(route, nth))
                self.addCleanup(front.stop)
                pushed = self.pushed([front])
                self.assert_done(pushed, [engine], outcome)
                self.assertEqual(front.closed, 1)
                self.assertEqual(len(engine.calls("resume")), 1)
                silent = outcome == "done" and route != "resume"
                self.assertEqual("warning" in pushed.text, not silent, pushed.text)

    def test_ten_pushes_further_apart_than_the_server_keeps_connections(self):
        engine = self.engine("fe-a")
        front = Relay(engine, idle=0.3)
        self.addCleanup(front.stop)
        plan, report = self.folder / "plan.json", self.folder / "drill.json"
        plan.write_text(json.dumps({
            "tensors": [{"name": "w", "dtype": "bfloat16", "shape": [64, 64]}],
            "pushes": [{"version": str(number), "wait_before_s": 1} for number in range(1, 11)]}))
        job = self.launch([[harness.PROGRAM, "drill", "--config",
                            str(self.config([front], timeouts=SHORT)), "--plan", str(plan),
                            "--report", str(report)]])[0]
        self.assertEqual(job.wait(timeout=60 * harness.SLOW), 0, self.rank_log(0))
        for each in json.loads(report.read_text()):
            self.assertEqual((each["outcome"], each["notes"]), ("done", []), self.rank_log(0))
        self.assertNotRegex(self.rank_log(0), "warning|error")
        self.assertGreaterEqual(front.closed, 9)
        for route, times in {"pause": 10, "update_weights": 10, "start_weight_update": 11,
                             "finish_weight_update": 11, "resume": 10}.items():
            self.assertEqual(len(engine.calls(route)), times, route)


class Case26(Case):
    """A reply that was cut off is no reply."""

    VERSION = b'{"weight_version":"12"}'

    def told(self, raw):
        engine = self.engine(f"fe-{time.monotonic_ns()}")
        engine.faults({"route": "weight_info", "nth": list(range(3, 60)), "do": "raw",
                       "bytes": raw.decode("latin-1")})
        return engine, self.pushed([engine], "12")

    def chunked(self, pieces, tail):
        body = b"".join(b"%x%s\r\n%s\r\n" % (len(piece), extension, piece)
                        for piece, extension in pieces)
        return answer("Transfer-Encoding: chunked", body + tail)

    def test_valid_forms_pass(self):
        bytewise = [(self.VERSION[i:i + 1], b";a=b" if i % 2 else b"")
                    for i in range(len(self.VERSION))]
        for tail in (b"0\r\n\r\n", b"0\r\nX-Trailer: 1\r\n\r\n"):
            engine, pushed = self.told(self.chunked(bytewise, tail))
            self.assertEqual(pushed.code, 0, pushed.text)
            self.assertFalse(engine.state()["paused"])

    def test_cut_forms_fail(self):
        for name, raw in {
                "inside the version": self.chunked([(b'{"weight_version":"1', b"")], b""),
                "no last chunk": self.chunked([(self.VERSION, b"")], b""),
                "length too long": answer("Content-Length: 60", self.VERSION),
                "length too short": answer("Content-Length: 20", self.VERSION)}.items():
            with self.subTest(name):
                engine, pushed = self.told(raw)
                self.assertEqual(pushed.code, 3, pushed.text)
                self.assertEqual(engine.state()["resumes"], [])

    def test_64_mib_are_refused_at_a_limit(self):
        server = Flood()
        self.addCleanup(server.stop)
        pushed = self.pushed([server], ranks=1)
        self.assertEqual(pushed.code, 3, pushed.text)
        self.assertEqual(pushed.report["first_cause"]["engine"], "flood")
        self.assertGreater(server.most, 1 << 20)
        self.assertLess(server.most, 32 << 20)


class Case27(Case):
    """A body that is not what the contract says."""

    def once(self, route, outcome, nth=None, **fault):
        engine = self.engine(f"fe-{route}-{time.monotonic_ns()}")
        engine.faults({"route": route, "nth": nth or 1, **fault})
        pushed = self.pushed([engine])
        if outcome == "failed":
            self.assertEqual((pushed.code, pushed.report["outcome"]), (3, outcome), pushed.text)
            self.assertEqual(engine.state()["resumes"], [])
        else:
            self.assert_done(pushed, [engine], outcome)
        return pushed

    def test_a_gateways_page_on_start(self):
        page = "<html>" + "x" * (200 << 10) + "</html>"
        pushed = self.once("start_weight_update", "recovered", nth=2, do="status", status=502,
                           body=page, ctype="text/html")
        self.assertRegex(pushed.report["first_cause"]["message"], r"502 \(text/html\): <html>x")
        self.assertLess(len(pushed.report["first_cause"]["message"]), 2048 + 512)

    def test_a_page_where_the_version_should_be(self):
        pushed = self.once("weight_info", "failed", nth=list(range(3, 60)), do="status", status=200,
                           body="<html>ok</html>", ctype="text/html")
        self.assertIn("200 (text/html) without", pushed.report["first_cause"]["message"])

    def test_an_empty_200_on_the_update(self):
        self.once("update_weights", "recovered", do="status", status=200, body="")

    def test_an_empty_200_on_finish_is_resolved_by_reading(self):
        engine = self.engine("fe-a")
        engine.faults({"route": "finish_weight_update", "nth": 2, "do": "status", "status": 200,
                       "body": ""})
        # This one did not act: the version that is read decides.
        self.assert_recovered(self.pushed([engine]), [engine])

    def test_a_204_is_no_answer_of_the_contract(self):
        raw = "HTTP/1.1 204 No Content\r\n\r\n"
        for route, nth in (("start_weight_update", 2), ("update_weights", 1)):
            pushed = self.once(route, "recovered", nth=nth, do="raw", bytes=raw)
            self.assertIn("204", pushed.report["first_cause"]["message"])

    def test_a_redirect_to_a_login_page(self):
        pushed = self.once("start_weight_update", "recovered", nth=2, do="status", status=302,
                           body="<a href=/login>", ctype="text/html")
        self.assertIn("302 (text/html), a redirect", pushed.report["first_cause"]["message"])

    def test_invalid_utf_8(self):
        raw = "HTTP/1.1 500 Oops\r\nContent-Length: 9\r\nConnection: close\r\n\r\n\xff\xfe\xfdabc"
        pushed = self.once("start_weight_update", "recovered", nth=2, do="raw", bytes=raw)
        self.assertIn("500", pushed.report["first_cause"]["message"])


class Case28(Case):
    """Proxy variables of the outside world."""

    def test_they_are_ignored(self):
        engine = self.engine("fe-a")
        seen = []
        proxy = socket.create_server(("127.0.0.1", 0))

        def serve():
            while True:
                try:
                    client, _ = proxy.accept()
                except OSError:
                    return
                with client:
                    seen.append(client.recv(65536))
                    client.sendall(answer("Content-Length: 2", b"{}"))
        helper = threading.Thread(target=serve)
        helper.start()
        try:
            for version, address in (("2", "http://127.0.0.1:1"),
                                     ("3", f"http://127.0.0.1:{proxy.getsockname()[1]}")):
                for no_proxy in (None, "10.0.0.0/8,.svc"):
                    self.push_behind(engine, f"{version}-{no_proxy is None}", address, no_proxy)
        finally:
            proxy.shutdown(socket.SHUT_RDWR)
            proxy.close()
            helper.join()
        self.assertEqual(seen, [])

    def push_behind(self, engine, version, address, no_proxy):
        folder, digests = self.checkpoint(f"v{version}", harness.layered(version, 1, 16))
        environment = dict(os.environ, HTTP_PROXY=address, http_proxy=address, ALL_PROXY=address,
                           HTTPS_PROXY=address)
        environment.pop("NO_PROXY", None)
        environment.pop("no_proxy", None)
        if no_proxy is not None:
            environment["NO_PROXY"] = environment["no_proxy"] = no_proxy
        done = subprocess.run(
            self.command(self.config([engine], timeouts=SHORT), folder, version, "--ranks", "2"),
            env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, timeout=30 * harness.SLOW, check=False)
        self.assertEqual(done.returncode, 0, done.stdout.decode())
        self.assert_current(engine, version, digests)


class Scraper:
    """Reads the pages of some ports every 200 ms, and connects to the first one once more without
    ever reading. `pages`: {port: texts}."""

    def __init__(self, ports):
        self.pages, self.stuck = {port: [] for port in ports}, None
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        while not self.ended.wait(0.2):
            for port, texts in self.pages.items():
                # Before the page is served, or while its process ends.
                with contextlib.suppress(OSError, http.client.HTTPException):
                    texts.append(harness.request(port, "GET", "/metrics")[1])
                    if self.stuck is None:
                        self.stuck = socket.create_connection(("127.0.0.1", port))
                        self.stuck.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")

    def stop(self):
        self.ended.set()
        self.thread.join()
        if self.stuck is not None:
            self.stuck.close()


class Case29(Case):
    """Exporters: one port for all ranks, engines that go, scrapers that never read, counters that
    never fall."""

    def listed(self, *engines):
        self.file.write_text("".join(f'- {{url: "{each.url}", name: {each.name}}}\n'
                                     for each in engines))

    def told_of(self, port, engine):
        page = harness.request(port, "GET", "/metrics")[1]
        return [line for line in page.splitlines() if f'engine="{engine.name}"' in line]

    def begun(self, engines, port):
        """Three pushes of one job of four ranks, over a list of engines that is read before each."""
        self.file = self.folder / "engines.yaml"
        self.listed(*engines)
        config = self.config([], engines={"file": self.file}, timeouts=SHORT,
                             transport={"buffer": "16KiB"},
                             metrics={"listen": f"127.0.0.1:{port}", "ranks": "all",
                                      "linger": "1s"})
        config.write_text(config.read_text().replace("  list:\n", ""))
        plan = self.folder / "plan.json"
        plan.write_text(json.dumps({
            "repeat": {"prefix": "w{}", "count": 8, "dtype": "bfloat16", "shape": [64, 64]},
            "pushes": [{"version": str(number)} for number in (1, 2, 3)]}))
        return self.launch([[harness.PROGRAM, "drill", "--config", str(config), "--plan", str(plan),
                             "--report", str(self.folder / "drill.json")]] * 4)

    def test_an_engine_goes_and_comes_back_and_the_channel_is_rebuilt(self):
        engines = [self.engine(f"fe-{name}") for name in "abc"]
        engines[0].faults({"route": "resume", "nth": [1, 2], "do": "delay", "seconds": 1})
        engines[1].faults({"route": "update_weights", "nth": 1, "do": "fail_after_chunks",
                           "after_chunks": 2})
        # One of the ranks' ports is somebody else's.
        taken = socket.socket()
        self.addCleanup(taken.close)
        port = harness.free_port()
        taken.bind(("127.0.0.1", port + 1))
        taken.listen()
        scraper = Scraper([port, port + 2, port + 3])
        self.addCleanup(scraper.stop)
        ranks = self.begun(engines, port)
        # The next push's list is written while the present one waits for fe-a.
        self.await_that(lambda: len(engines[0].calls("resume")) == 1, 30, "the first push")
        self.assertNotEqual(self.told_of(port, engines[2]), [])
        self.listed(*engines[:2])
        self.await_that(lambda: len(engines[0].calls("resume")) == 2, 30, "the second push")
        self.assertEqual(self.told_of(port, engines[2]), [])
        self.listed(*engines)
        for rank, process in enumerate(ranks):
            self.assertEqual(process.wait(timeout=30 * harness.SLOW), 0, self.rank_log(rank))
        self.assertIn(str(port + 1), self.rank_log(1))
        reports = json.loads((self.folder / "drill.json").read_text())
        self.assertEqual([each["outcome"] for each in reports], ["recovered", "done", "done"])
        # Beside the second that fe-a took; the stuck scraper slows nothing.
        self.assertLess(max(each["duration_s"] for each in reports), 4 * harness.SLOW)
        for engine in engines:
            self.assertEqual(engine.state()["version"], "3")
        for each, texts in scraper.pages.items():
            last = self.counters(texts, gone=engines[2].name)
            self.assertEqual(last['pushrod_resends_total{transport="tcp"}'], 1.0)
            # The channel is rank 0's.
            self.assertEqual(last['pushrod_channel_rebuilds_total{transport="tcp"}'] > 0, each == port)
        self.assertIn(f'pushrod_engine_current{{engine="{engines[2].name}"}} 1',
                      scraper.pages[port][-1])

    def counters(self, pages, gone):
        """The last value of each, none of which ever fell but those of an engine that went."""
        self.assertGreater(len(pages), 3)
        last = {}
        for page in pages:
            for name, value in re.findall(r"^(\w+_(?:total|count|sum|bucket)\S*) (\S+)$", page,
                                          re.MULTILINE):
                if f'"{gone}"' not in name:
                    self.assertGreaterEqual(float(value), last.get(name, 0.0), name)
                    last[name] = float(value)
        return last


if __name__ == "__main__":
    unittest.main(verbosity=2)
