# SPDX-License-Identifier: Apache-2.0
"""Ports, names, idle connections, cut replies, proxies and exporters: cases 23 to 29."""

import contextlib
import http.client
import json
import os
import re
import select
import socket
import subprocess
import threading
import time
import unittest

import harness
from outcome import SHORT, Case
from servers import Flood, Relay, answer


def listeners(pid):
    """The listening TCP sockets of one process, by inode."""
    held = set()
    for name in os.listdir(f"/proc/{pid}/fd"):
        try:
            held.add(os.readlink(f"/proc/{pid}/fd/{name}"))
        except OSError:
            continue
    with open(f"/proc/{pid}/net/tcp", encoding="ascii") as table:
        rows = [line.split() for line in table.readlines()[1:]]
    return {row[9] for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in held}


class Case23(Case):
    """A port that is taken between its choice and its use."""

    def test_held_by_another_process(self):
        engine = self.engine("fe-a")
        with socket.create_server(("127.0.0.1", 0)) as holder:
            port = holder.getsockname()[1]
            folder, _ = self.checkpoint("v2", harness.layered("2", 1, 16))
            config = self.config([engine], timeouts=SHORT, transport={"port": port})
            begin = time.monotonic()
            for rank, process in enumerate(self.ranks(config, folder, "2", 3)):
                self.assertEqual(process.wait(timeout=20 * harness.SLOW), 3, self.rank_log(rank))
                self.assertIn(str(port), self.rank_log(rank))
            self.assertLess(time.monotonic() - begin, 2 * harness.SLOW)
        self.assertEqual(engine.calls("pause"), [])

    def test_automatic_while_others_grab_ports(self):
        engine = self.engine("fe-a")
        stop = threading.Event()
        grabbed = []

        def grab():
            while not stop.is_set() and len(grabbed) < 2000:
                try:
                    grabbed.append(socket.create_server(("127.0.0.1", 0)))
                except OSError:
                    return
        helper = threading.Thread(target=grab)
        helper.start()
        try:
            self.assert_done(self.pushed([engine], ranks=3), [engine])
        finally:
            stop.set()
            helper.join()
            for each in grabbed:
                each.close()

    def test_25_rebuilds_leave_no_listener_behind(self):
        engine = self.engine("fe-a")
        # Each push's first update fails, so that each rebuilds the channel.
        odd = [*range(1, 51, 2)]
        engine.faults({"route": "update_weights", "nth": odd, "do": "status", "status": 500})
        plan, report = self.folder / "plan.json", self.folder / "drill.json"
        tensors = [{"name": "w", "dtype": "bfloat16", "shape": [64, 64]}]
        pushes = [{"version": str(number)} for number in range(1, 26)]
        plan.write_text(json.dumps({"tensors": tensors, "pushes": pushes}))
        config = str(self.config([engine], timeouts=SHORT))
        job = self.launch([[harness.PROGRAM, "drill", "--config", config, "--plan", str(plan),
                            "--report", str(report)]])[0]
        held = {}
        while job.poll() is None:
            with contextlib.suppress(FileNotFoundError):  # it ended just now
                held[len(engine.calls("resume"))] = len(listeners(job.pid))
            select.select([], [], [], 0.02)
        self.assertEqual(job.wait(timeout=60 * harness.SLOW), 0, self.rank_log(0))
        outcomes = [each["outcome"] for each in json.loads(report.read_text())]
        self.assertEqual(outcomes, ["recovered"] * 25)
        early, late = [max(held.get(done, 0) for done in part)
                       for part in (range(1, 10), range(15, 26))]
        self.assertLessEqual(late, early, held)

    def test_two_jobs_on_one_host(self):
        engines = [self.engine("fe-a"), self.engine("fe-b")]
        folder, digests = self.checkpoint("v2", harness.layered("2", 2, 32))
        jobs = [subprocess.Popen(
            self.command(self.config([engine], timeouts=SHORT), folder, "2", "--ranks", "3"),
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            for engine in engines]
        self.children += jobs
        for job, engine in zip(jobs, engines):
            self.assertEqual(job.wait(timeout=30 * harness.SLOW), 0)
            self.assert_current(engine, "2", digests)


class Case24(Case):
    """Addresses that are not plain IPv4."""

    def test_every_form_of_an_engine(self):
        name, six = self.engine("name"), self.engine("six", "--host", "::1", "--prefix", "/a/b")
        slash = self.engine("slash")
        # It listens on 127.0.0.1 only; the name may give ::1 first.
        name.url = f"http://localhost:{name.port}"
        six.url = f"http://[::1]:{six.port}/a/b"
        slash.url += "/"
        pushed = self.pushed([name, six, slash])
        self.assert_done(pushed, [name, slash])
        self.assertEqual({row["outcome"] for row in pushed.report["engines"]}, {"current"})

    def test_master_addresses(self):
        engine = self.engine("fe-a")
        folder, digests = self.checkpoint("v2", harness.layered("2", 1, 16))
        for address in ("::1", "localhost"):
            with self.subTest(address):
                processes = self.ranks(self.config([engine], timeouts=SHORT), folder, "2", 2,
                                       master=address)
                for rank, process in enumerate(processes):
                    self.assertEqual(process.wait(timeout=30 * harness.SLOW), 0,
                                     self.rank_log(rank))
                self.assert_current(engine, "2", digests)

    def test_a_wildcard_as_master_is_named_in_time_or_replaced(self):
        engine = self.engine("fe-a")
        folder, _ = self.checkpoint("v2", harness.layered("2", 1, 16))
        begin = time.monotonic()
        config = self.config([engine], timeouts=SHORT)
        processes = self.ranks(config, folder, "2", 2, master="0.0.0.0")
        codes = {process.wait(timeout=30 * harness.SLOW) for process in processes}
        self.assertLess(time.monotonic() - begin, 8 * harness.SLOW)
        self.assertIn(codes, ({0}, {3}), self.rank_log(0))
        if codes == {3}:
            for rank in range(2):
                for part in ("0.0.0.0", "MASTER_ADDR"):
                    self.assertIn(part, self.rank_log(rank))
            self.assertEqual(engine.journal("request"), [])

    def test_a_wildcard_is_no_destination(self):
        engine = self.engine("fe-a")
        pushed = self.pushed([engine], transport={"bind": "0.0.0.0"})
        if pushed.code == 0:
            self.assert_done(pushed, [engine])
        else:
            self.assertEqual(pushed.code, 2, pushed.text)
            self.assertIn("transport.bind", pushed.text)

    def test_an_unknown_name_ends_in_the_connect_limit(self):
        engine = self.engine("fe-a")
        engine.url = "http://no-such-host.invalid:8000"
        pushed = self.pushed([engine])
        self.assertEqual(pushed.code, 3, pushed.text)
        self.assertIn("no-such-host.invalid", pushed.report["first_cause"]["message"])
        self.assertLess(pushed.seconds, 8 * harness.SLOW)


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


class Case29(Case):
    """Exporters: one port for all ranks, scrapers that never read, counters that never fall."""

    def test_scraped_through_a_rebuild(self):
        engines = [self.engine("fe-a"), self.engine("fe-b")]
        engines[1].faults({"route": "update_weights", "nth": 1, "do": "fail_after_chunks",
                           "after_chunks": 2},
                          {"route": "finish_weight_update", "nth": 2, "do": "delay", "seconds": 1})
        port = harness.free_port()
        folder, digests = self.checkpoint("v2", harness.layered("2", 4, 64))
        config = self.config(engines, timeouts=SHORT, transport={"buffer": "4KiB"},
                             metrics={"listen": f"127.0.0.1:{port}", "ranks": "all",
                                      "linger": "2s"})
        ranks = self.ranks(config, folder, "2", 4)
        pages = []
        stuck = None
        while any(process.poll() is None for process in ranks):
            try:
                pages.append(harness.request(port, "GET", "/metrics")[1])
                if stuck is None:
                    stuck = socket.create_connection(("127.0.0.1", port))
                    stuck.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
            except (OSError, http.client.HTTPException):
                pass  # Before the page is served, or while its process ends.
            select.select([], [], [], 0.05)
        if stuck is not None:
            stuck.close()
        for rank, process in enumerate(ranks):
            self.assertEqual(process.wait(timeout=30 * harness.SLOW), 0, self.rank_log(rank))
        for engine in engines:
            self.assert_current(engine, "2", digests)
        self.assertGreater(len(pages), 3)
        last = {}
        for page in pages:
            for name, value in re.findall(r"^(\w+_(?:total|count|sum|bucket)\S*) (\S+)$", page,
                                          re.MULTILINE):
                self.assertGreaterEqual(float(value), last.get(name, 0.0), name)
                last[name] = float(value)
        self.assertEqual(last['pushrod_channel_rebuilds_total{transport="tcp"}'], 1.0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
