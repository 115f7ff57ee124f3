# SPDX-License-Identifier: Apache-2.0
"""Flight records of failed and resent pushes, pushrod explain, and what a waiting push tells."""

import json
import os
import re
import signal
import subprocess
import sys
import time
import unittest

import harness

REPEAT = {"prefix": "model.layers.{}.w", "count": 12, "dtype": "bfloat16", "shape": [64, 64]}


class FlightCase(harness.Case):
    def setUp(self):
        super().setUp()
        self.flights = self.folder / "flights"

    def drill(self, config, pushes, *flags, ranks=3, limit=60):
        """Returns (exit code, everything printed)."""
        plan = self.folder / f"plan-{time.monotonic_ns()}.json"
        plan.write_text(json.dumps({"repeat": REPEAT, "pushes": pushes}))
        done = subprocess.run(
            [harness.PROGRAM, "drill", "--config", str(config), "--plan", str(plan), "--ranks",
             str(ranks), "--flight-record", str(self.flights), *flags],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            timeout=limit * harness.SLOW, check=False)
        return done.returncode, done.stdout.decode(errors="replace")

    def records(self):
        return sorted(self.flights.glob("flight-*.jsonl")) if self.flights.exists() else []

    def explain(self, path):
        done = subprocess.run([harness.PROGRAM, "explain", str(path)], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=20 * harness.SLOW, check=False)
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    def culprit(self, text):
        """The culprit of the only record, which must be sound. `text`: what the push printed."""
        records = self.records()
        self.assertEqual(len(records), 1, text)
        self.assertEqual(list(self.flights.iterdir()), records, "leftovers")
        code, story, errors = self.explain(records[0])
        if os.environ.get("PUSHROD_SHOW"):
            sys.stderr.write(story)
        self.assertEqual((code, errors), (0, ""), story)
        self.assertIn("the recorded states follow", story)
        return re.search(r"^Culprit: (.*)$", story, re.M).group(1), story

    def header(self):
        return json.loads(self.records()[0].read_text().splitlines()[0])


class Culprits(FlightCase):
    def test_an_engine_that_refuses(self):
        good, bad = self.engine("good"), self.engine("bad")
        bad.faults({"route": "finish_weight_update", "nth": "every", "do": "status", "status": 400,
                    "body": "no such format"})
        code, text = self.drill(self.config([good, bad]), [{"version": "1"}])
        self.assertEqual(code, 3, text)
        who, story = self.culprit(text)
        self.assertTrue(who.startswith("engine bad: "), story)
        self.assertIn("no such format", story)
        self.assertEqual(self.header()["missing"], [])

    def test_a_pass_that_goes_to_its_end(self):
        config = self.config([self.engine("e0")],
                             push={"stop": "pass", "check_replicas": "digest"})
        code, text = self.drill(config, [{"version": "1", "faults": [
            {"rank": 1, "at": {"tensor": 2}, "kind": "other_values"}]}])
        self.assertEqual(code, 3, text)
        who, story = self.culprit(text)
        self.assertIn("rank 1", who, story)
        self.assertIn("tensor 2 'model.layers.2.w", story)

    def test_a_resent_push(self):
        engine = self.engine("e0")
        engine.faults({"route": "update_weights", "nth": 1, "do": "fail_after_chunks",
                       "after_chunks": 1})
        code, text = self.drill(self.config([engine]), [{"version": "1"}])
        self.assertEqual(code, 0, text)
        who, story = self.culprit(text)
        self.assertTrue(who.startswith("engine e0: "), story)
        self.assertEqual(self.header()["outcome"], "recovered")

    def test_a_failed_pass_that_goes_on(self):
        engine = self.engine("e0")
        engine.faults({"route": "update_weights", "nth": 1, "do": "fail_after_chunks",
                       "after_chunks": 1})
        code, text = self.drill(self.config([engine], push={"stop": "pass"}), [{"version": "1"}])
        self.assertEqual(code, 0, text)
        who, story = self.culprit(text)
        self.assertTrue(who.startswith("engine e0: "), story)

    def test_copies_that_differ(self):
        engine = self.engine("e0")
        config = self.config([engine], push={"check_replicas": "digest"})
        code, text = self.drill(config, [
            {"version": "1", "faults": [{"rank": 1, "at": {"tensor": 3}, "kind": "other_values"}]}])
        self.assertEqual(code, 3, text)
        who, story = self.culprit(text)
        self.assertIn("rank 1", who, story)

    def test_a_good_push_and_a_refused_one_leave_none(self):
        engine = self.engine("e0")
        code, text = self.drill(self.config([engine]), [{"version": "1"}])
        self.assertEqual((code, self.records()), (0, []), text)
        config = self.config([engine])
        plan = self.folder / "differ.json"
        plan.write_text(json.dumps({"repeat": REPEAT, "pushes": [{"version": "2"}],
                                    "config_overrides": {"1": {"transport.buffer": "2MiB"}}}))
        done = subprocess.run([harness.PROGRAM, "drill", "--config", str(config), "--plan",
                               str(plan), "--ranks", "2", "--flight-record", str(self.flights)],
                              stdin=subprocess.DEVNULL, capture_output=True,
                              timeout=30 * harness.SLOW, check=False)
        self.assertEqual((done.returncode, self.records()), (2, []), done.stderr)

    def test_a_rank_that_is_killed(self):
        engine = self.engine("e0")
        code, text = self.drill(self.config([engine]), [
            {"version": "1", "faults": [{"rank": 2, "at": {"tensor": 5}, "kind": "exit"}]}])
        self.assertEqual(code, 3, text)
        who, story = self.culprit(text)
        self.assertTrue(who.startswith("rank 2: "), story)
        self.assertEqual([each["rank"] for each in self.header()["missing"]], [2])

    def test_rank_0_that_is_killed(self):
        engine = self.engine("e0")
        code, text = self.drill(self.config([engine]), [
            {"version": "1", "faults": [{"rank": 0, "at": {"tensor": 5}, "kind": "exit"}]}])
        self.assertEqual(code, 3, text)
        who, story = self.culprit(text)
        self.assertTrue(who.startswith("rank 0: "), story)
        self.assertEqual(self.header()["writer"], 1)

    def test_an_engine_whose_core_is_frozen(self):
        good, bad = self.engine("good"), self.engine("bad")
        bad.faults({"route": "start_weight_update", "nth": "every", "do": "freeze_core"})
        code, text = self.drill(self.config([good, bad]), [{"version": "1"}])
        self.assertEqual(code, 3, text)
        who, story = self.culprit(text)
        self.assertTrue(who.startswith("engine bad: "), story)

    def test_a_source_that_hangs(self):
        engine = self.engine("e0")
        config = self.config([engine], timeouts={"gather": "1s"})
        code, text = self.drill(config, [
            {"version": "1", "faults": [{"rank": 2, "at": {"tensor": 3}, "kind": "hang",
                                         "seconds": 60}]}])
        self.assertEqual(code, 0, text)
        who, story = self.culprit(text)
        self.assertTrue(who.startswith("the weight source of rank 2: it hung"), story)
        self.assertIn("3 model.layers.3.w [64, 64]", story)

    def test_a_source_that_throws(self):
        engine = self.engine("e0")
        code, text = self.drill(self.config([engine]), [
            {"version": "1", "faults": [{"rank": 1, "at": {"tensor": 3}, "kind": "throw"}]}])
        self.assertEqual(code, 0, text)
        who, story = self.culprit(text)
        self.assertTrue(who.startswith("the weight source of rank 1: "), story)

    def test_a_rank_that_hangs_before_a_vote(self):
        engine = self.engine("e0")
        config = self.config([engine], timeouts={"agreement": "1s", "pause": "1s"})
        code, text = self.drill(config, [
            {"version": "1", "faults": [{"rank": 1, "at": {"phase": "pause"}, "kind": "hang",
                                         "seconds": 60}]}])
        self.assertEqual(code, 3, text)
        who, story = self.culprit(text)
        self.assertTrue(who.startswith("rank 1: "), story)

    def test_what_stands_in_a_record(self):
        engine = self.engine("e0")
        # The first finish is the empty session's.
        engine.faults({"route": "finish_weight_update", "nth": 2, "do": "status",
                       "status": 400, "body": "x" * 9000})
        code, text = self.drill(self.config([engine]), [{"version": "1"}])
        self.assertEqual(code, 3, text)
        raw = self.records()[0].read_text()
        lines = [json.loads(line) for line in raw.splitlines()]
        self.assertEqual(lines[0]["lines"], len(lines) - 1)
        self.assertEqual({line["rank"] for line in lines[1:]}, {0, 1, 2})
        init = [line for line in lines[1:] if line["event"] == "request"
                and line["call"] == "init_weight_transfer_engine"]
        self.assertEqual(json.loads(init[0]["text"])["channel"], "(hidden)")
        self.assertNotIn("x" * 2049, raw)
        item = [line for line in lines if line.get("on") == "SourceItem" and line["rank"] == 1][3]
        self.assertEqual(item["tensor"], {"index": 3, "name": "model.layers.3.w",
                                          "shape": [64, 64], "bytes": 8192})
        self.assertEqual(item["gathers"], [4, 4])
        update = [line for line in lines[1:] if line["event"] == "reply"
                  and line["call"] == "update_weights"]
        self.assertEqual((update[0]["declared"], update[0]["actual"]), (12 * 8192, 12 * 8192))


class Files(FlightCase):
    def test_twenty_of_five_and_twenty_stay(self):
        engine = self.engine("e0")
        engine.faults({"route": "pause", "nth": "every", "do": "status", "status": 400})
        other = self.flights / "flight-other-20200101T000000.000Z-1.jsonl"
        self.flights.mkdir()
        other.write_text("another job's\n")
        code, text = self.drill(self.config([engine]),
                                [{"version": str(i)} for i in range(25)], ranks=2)
        self.assertEqual(code, 3, text)
        mine = [path for path in self.records() if path != other]
        self.assertTrue(other.exists())
        self.assertEqual([json.loads(path.read_text().splitlines()[0])["push"] for path in mine],
                         list(range(6, 26)))

    def test_a_folder_that_cannot_be_written_only_warns(self):
        engine = self.engine("e0")
        engine.faults({"route": "pause", "nth": "every", "do": "status", "status": 400})
        self.flights.write_text("a file")
        report = self.folder / "report.json"
        code, text = self.drill(self.config([engine]), [{"version": "1"}], "--report", str(report))
        self.assertEqual(code, 3, text)
        self.assertIn("no flight record", text)
        self.assertEqual(json.loads(report.read_text())[0]["first_cause"]["engine"], "e0")

    def test_beside_the_report_unless_told_otherwise(self):
        engine = self.engine("e0")
        engine.faults({"route": "pause", "nth": "every", "do": "status", "status": 400})
        code, _, text = self.push(self.config([engine]), self.weights("1")[0], "1", ranks=2)
        self.assertEqual(code, 3, text)
        self.assertEqual(len(list(self.folder.glob("flight-*.jsonl"))), 1, text)


class Unreadable(FlightCase):
    def check(self, content, says):
        path = self.folder / "broken.jsonl"
        path.write_bytes(content)
        code, story, errors = self.explain(path)
        self.assertEqual((code, story), (2, ""), errors)
        self.assertEqual(errors.count("\n"), 1, errors)
        self.assertIn(says, errors)

    def test_what_is_no_record(self):
        engine = self.engine("e0")
        engine.faults({"route": "pause", "nth": "every", "do": "status", "status": 400})
        self.drill(self.config([engine]), [{"version": "1"}])
        good = self.records()[0].read_bytes()
        self.assertEqual(self.explain(self.records()[0])[0], 0)
        self.check(b"", "is empty")
        self.check(b"\x00\xff garbage", "line 1 is no line of a flight record")
        self.check(b"{}\n", "line 1 is no line")
        self.check(good[:len(good) // 2], "is cut off")
        self.check(b"\n".join(good.split(b"\n")[:-3]) + b"\n", "is the file complete?")
        self.check(good.replace(b'"event":"step"', b'"event":"jump"', 1), "is none of its values")
        self.check(good.replace(b'"attempt":1', b'"attempt":1,"attempt":1', 1), "twice")
        self.check(b"[" * 300000 + b"\n", "longer")
        code, story, errors = self.explain(self.folder / "none.jsonl")
        self.assertEqual((code, story), (2, ""))
        self.assertIn("cannot be read", errors)
        huge = self.folder / "huge.jsonl"
        with open(huge, "wb") as file:
            file.truncate(1 << 40)
        code, story, errors = self.explain(huge)
        self.assertEqual((code, story), (2, ""))
        self.assertIn("is larger than", errors)

    def test_states_that_do_not_follow(self):
        engine = self.engine("e0")
        engine.faults({"route": "pause", "nth": "every", "do": "status", "status": 400})
        self.drill(self.config([engine]), [{"version": "1"}])
        text = self.records()[0].read_text()
        path = self.folder / "changed.jsonl"
        path.write_text(text.replace('"rows":["goal-failed"]', '"rows":["goal-reached"]', 1))
        code, story, _ = self.explain(path)
        self.assertEqual(code, 0)
        self.assertIn("do NOT follow", story)
        self.assertIn("goal-reached", story)


class Waiting(FlightCase):
    def launch_waiting(self, faults, timeouts, ranks=2):
        engine = self.engine("e0")
        engine.faults(*faults)
        plan = self.folder / "plan.json"
        plan.write_text(json.dumps({"repeat": REPEAT, "pushes": [{"version": "1"}]}))
        config = self.config([engine], timeouts=timeouts,
                             metrics={"listen": "127.0.0.1:0"})
        processes = self.launch([[harness.PROGRAM, "drill", "--config", str(config), "--plan",
                                  str(plan), "--flight-record", str(self.flights)]] * ranks)
        address = self.await_that(
            lambda: re.search(r"metrics: http://127.0.0.1:(\d+)", self.rank_log(0)), 20,
            "the status server's address")
        return engine, processes, int(address.group(1))

    def status(self, port):
        return json.loads(harness.request(port, "GET", "/status")[1])

    def test_the_state_on_a_signal(self):
        engine, processes, port = self.launch_waiting(
            [{"route": "finish_weight_update", "nth": 1, "do": "hang"}],
            {"request": "60s", "agreement": "60s"})
        self.await_that(lambda: engine.calls("finish_weight_update"), 20, "the finish")
        self.assertNotIn("state asked for", self.rank_log(0))
        for process in processes:
            process.send_signal(signal.SIGUSR1)
        self.await_that(lambda: "waits for engine e0 (finish_weight_update)" in self.rank_log(0),
                        10, "the waiting engine in the log")
        self.assertRegex(self.rank_log(0), r"state asked for: rank 0 waits for engine e0")
        self.await_that(lambda: re.search(r"state asked for: rank 1 waits for rank 0 \(Vote\)",
                                          self.rank_log(1)), 10, "the waiting rank in the log")
        waiting = self.status(port)["waiting"]
        self.assertIn("engine e0", [wait["for"] for wait in waiting["waits"]])
        self.assertEqual([rank["rank"] for rank in waiting["ranks"]], [0, 1])
        self.assertEqual(waiting["engines"][0]["call"], "finish_weight_update")
        self.assertTrue(waiting["engines"][0]["out"])

    def test_a_long_wait_is_logged_once(self):
        _, processes, port = self.launch_waiting(
            [{"route": "finish_weight_update", "nth": "every", "do": "hang"}],
            {"request": "3s", "agreement": "30s"})
        stalled = self.await_that(
            lambda: [wait for wait in (self.status(port)["waiting"] or {"waits": []})["waits"]
                     if wait["state"] == "stuck"], 20, "the stuck wait on the status page")
        self.assertEqual(stalled[0]["for"], "engine e0")
        for process in processes:
            self.assertEqual(process.wait(timeout=40 * harness.SLOW), 3)
        log = self.rank_log(0)
        waits = re.findall(r"waits for engine e0 \(finish_weight_update\).*stuck", log)
        ended = re.findall(r"engine e0, finish_weight_update: .* no complete answer came", log)
        self.assertEqual(len(waits), len(ended), log)
        self.assertRegex(log, r"engine e0: finish_weight_update out for")
        self.assertRegex(log, r"rank 1: clean, attempt 1, step 1, vote; gathers 0 begun")

    def test_a_signal_to_the_parent_goes_to_its_ranks(self):
        engine = self.engine("e0")
        engine.faults({"route": "finish_weight_update", "nth": 1, "do": "hang"})
        checkpoint, _ = self.weights("1")
        log = open(self.folder / "rank-parent.log", "wb")
        parent = subprocess.Popen(
            self.command(self.config([engine]), checkpoint, "1", "--ranks", "2"),
            stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        log.close()
        self.children.append(parent)
        self.await_that(lambda: engine.calls("finish_weight_update"), 20, "the finish")
        parent.send_signal(signal.SIGUSR1)
        self.await_that(lambda: "waits for engine e0" in self.rank_log("parent"), 10, "the state")
        self.assertIsNone(parent.poll())
        parent.send_signal(signal.SIGTERM)
        self.assertEqual(parent.wait(timeout=30 * harness.SLOW), 128 + signal.SIGTERM)


if __name__ == "__main__":
    unittest.main()
