# SPDX-License-Identifier: Apache-2.0
"""An operator's orders to reference engines."""

import subprocess
import time
import unittest

import harness


class Orders(harness.Case):
    def order(self, config, name, *flags):
        """Returns (exit code, lines of standard output, everything on standard error)."""
        done = subprocess.run(
            [harness.PROGRAM, "engines", name, "--config", str(config), *flags],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            timeout=60 * harness.SLOW, check=False)
        return (done.returncode, done.stdout.decode().splitlines(),
                done.stderr.decode(errors="replace"))

    def set_version(self, engine, version):
        status, body = harness.request(engine.port, "POST", "/update_weight_version",
                                       {"new_version": version})
        self.assertEqual(status, 200, body)

    def open_session(self, engine):
        self.assertEqual(harness.request(engine.port, "POST", "/pause")[0], 200)
        return harness.request(engine.port, "POST", "/start_weight_update", {})

    def test_version_and_one_that_does_not_answer(self):
        engines = [self.engine("a"), self.engine("b"), self.engine("c")]
        self.set_version(engines[0], "7")
        self.set_version(engines[1], "6")
        engines[2].stop()
        config = self.config(engines, timeouts={"connect": "1s"})
        begin = time.monotonic()
        code, lines, text = self.order(config, "version")
        self.assertLess(time.monotonic() - begin, 15 * harness.SLOW)
        self.assertEqual(code, 3, text)
        self.assertEqual(lines[:2], ["a: version 7", "b: version 6"])
        self.assertTrue(lines[2].startswith("c: failed: "), lines)
        code, lines, text = self.order(config, "version", "--only", "b")
        self.assertEqual((code, lines), (0, ["b: version 6"]), text)

    def test_a_release_without_versions_says_so(self):
        config = self.config([self.engine("old", "--profile", "0.26")])
        for name, says in (("version", "no version route"), ("checksums", "no checksum route")):
            code, lines, text = self.order(config, name)
            self.assertEqual(code, 3, text)
            self.assertIn(says, lines[0])

    def test_pause_and_resume(self):
        engines = [self.engine("a"), self.engine("b", "--world-size", "2")]
        for engine in engines:
            self.set_version(engine, "7")
        config = self.config(engines)
        self.assertEqual(self.order(config, "pause")[:2], (0, ["a: paused", "b: paused"]))
        self.assertTrue(all(engine.state()["paused"] for engine in engines))
        self.assertEqual(self.order(config, "resume", "--only", "a")[:2],
                         (0, ["a: resumed, version 7"]))
        self.assertEqual([engine.state()["paused"] for engine in engines], [False, True])
        self.assertEqual(self.order(config, "resume")[0], 0)
        self.assertFalse(engines[1].state()["paused"])

    def test_resume_refuses_another_version_unless_forced(self):
        engines = [self.engine(name) for name in "abc"]
        for engine, version in zip(engines, "778"):
            self.set_version(engine, version)
        config = self.config(engines)
        self.assertEqual(self.order(config, "pause")[0], 0)
        code, lines, text = self.order(config, "resume")
        self.assertEqual(code, 3, text)
        self.assertEqual(lines[:2], ["a: resumed, version 7", "b: resumed, version 7"])
        self.assertIn("its version is 8, the others' is 7", lines[2])
        self.assertTrue(engines[2].state()["paused"])
        self.assertEqual(engines[2].calls("resume"), [])
        code, lines, text = self.order(config, "resume", "--only", "c")
        self.assertEqual(code, 3, text)
        code, lines, text = self.order(config, "resume", "--only", "c", "--force")
        self.assertEqual((code, lines), (0, ["c: resumed, version 8"]), text)
        self.assertFalse(engines[2].state()["paused"])

    def test_sessions_are_closed_and_nothing_is_provoked(self):
        engines = [self.engine("one"), self.engine("two", "--world-size", "2"),
                   self.engine("idle", "--world-size", "2")]
        for engine in engines[:2]:
            status, body = self.open_session(engine)
            self.assertEqual((status, engine.state()["session"]), (200, "open"), body)
        config = self.config(engines)
        code, lines, text = self.order(config, "resume")
        self.assertEqual(code, 3, text)
        self.assertIn("a session is open", lines[0])
        code, lines, text = self.order(config, "checksums", "--only", "two")
        self.assertEqual(code, 3, text)
        self.assertIn("a session is open", lines[0])
        code, lines, text = self.order(config, "close-session")
        self.assertEqual(code, 0, text)
        self.assertIn("session closed", lines[0])
        self.assertIn("session closed", lines[1])
        self.assertIn("no session was open", lines[2])
        for engine in engines:
            self.assertEqual(engine.state()["session"], "closed")
            self.assertEqual(set(engine.state()["lag"]), {0})
        self.assertEqual(engines[2].calls("finish_weight_update"), [])

    def test_an_unreadable_session_of_several_workers_is_not_tried_out(self):
        engine = self.engine("two", "--world-size", "2")
        self.assertEqual(self.open_session(engine)[0], 200)
        engine.faults({"route": "collective_rpc", "nth": "every", "do": "status", "status": 404,
                       "body": "no such route"})
        code, lines, text = self.order(self.config([engine]), "close-session")
        self.assertEqual(code, 3, text)
        self.assertTrue(lines[0].startswith("two: failed: "), lines)
        self.assertEqual(engine.calls("finish_weight_update"), [])
        self.assertEqual(engine.state()["session"], "open")

    def test_checksums_are_equal_where_weights_are(self):
        engines = [self.engine(name) for name in "ab"]
        folder, _ = self.checkpoint("v1", harness.layered("1", layers=1))
        config = self.config(engines)
        self.assertEqual(self.push(config, folder, "1", ranks=1)[0], 0)
        code, lines, text = self.order(config, "checksums")
        self.assertEqual(code, 0, text)
        sums = [line.split(": ", 1)[1] for line in lines]
        self.assertEqual(sums[0], sums[1])
        self.assertRegex(sums[0], r"^sha256 [0-9a-f]{64} over \d+ parameters")

    def test_what_is_refused_before_any_contact(self):
        config = self.config([self.engine("a")])
        code, _, text = self.order(config, "version", "--only", "nobody")
        self.assertEqual(code, 2, text)
        self.assertIn("--only nobody", text)
        self.assertEqual(self.order("/nowhere.yaml", "pause")[0], 2)
        self.assertEqual(self.order(config, "version", "--force")[0], 2)


if __name__ == "__main__":
    unittest.main()
