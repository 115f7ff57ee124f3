# SPDX-License-Identifier: Apache-2.0
"""The outcome words of the cases, each as one assertion over ranks, report and engines.

DONE: success, no resend, every engine holds the new bytes. RECOVERED: the same after one resend.
CLEAN FAIL: exit 3 with a cause within a bound, nothing resumed, no session left open. REFUSED:
exit 2 before any engine was contacted.
"""

import time

import harness

# The ranks' start and meeting is a machine's load, no case: it has more than the rest.
SHORT = {"push": "40s", "connect": "15s", "startup": "15s", "init": "3s", "request": "3s",
         "pause": "3s", "resume": "3s", "progress": "3s", "drain": "1s", "gather": "5s",
         "agreement": "3s", "shutdown": "3s"}
# For cases in which somebody is not there, which these limits tell.
AWAY = {"connect": "3s", "startup": "3s"}


class Case(harness.Case):
    """One push, or several, of a small model by real ranks to reference engines."""

    def pushed(self, engines, version="2", ranks=2, tensors=None, timeouts=None, **sections):
        """Pushes `version`. Returns an object with code, report, text, seconds and digests."""
        tensors = tensors or harness.layered(version, 2, 32)
        folder, digests = self.checkpoint(f"v{version}-{time.monotonic_ns()}", tensors)
        config = self.config(engines, timeouts={**SHORT, **(timeouts or {})}, **sections)
        begin = time.monotonic()
        code, report, text = self.push(config, folder, version, ranks=ranks)
        return Pushed(code, report, text, time.monotonic() - begin, digests, version)

    def assert_done(self, pushed, engines, outcome="done"):
        self.assertEqual(pushed.code, 0, pushed.text)
        self.assertEqual(pushed.report["outcome"], outcome, pushed.text)
        self.assertEqual(pushed.report["resent"], outcome == "recovered")
        for engine in engines:
            self.assert_current(engine, pushed.version, pushed.digests)

    def assert_recovered(self, pushed, engines):
        self.assert_done(pushed, engines, "recovered")

    def assert_clean_fail(self, pushed, alive, bound, says=()):
        """`alive`: the engines that still answer."""
        self.assertEqual(pushed.code, 3, pushed.text)
        self.assertEqual(pushed.report["outcome"], "failed")
        cause = pushed.report["first_cause"]
        for part in says:
            self.assertIn(part, f"{cause['engine']} {cause['phase']} {cause['message']}")
        self.assertLess(pushed.seconds, bound * harness.SLOW, pushed.text)
        for engine in alive:
            state = engine.state()
            self.assertEqual(state["session"], "closed", engine.name)
            self.assertNotEqual(state["version"], pushed.version, engine.name)
            self.assertTrue(state["paused"], engine.name)
            self.assertEqual(state["resumes"], [], engine.name)


class Pushed:
    """What one push came to."""

    def __init__(self, code, report, text, seconds, digests, version):
        self.code, self.report, self.text = code, report, text
        self.seconds, self.digests, self.version = seconds, digests, version
