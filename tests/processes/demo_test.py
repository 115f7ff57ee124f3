# SPDX-License-Identifier: Apache-2.0
"""pushrod demo tells its story to the end."""

import subprocess
import time
import unittest

import harness


class Story(harness.Case):
    def test_a_clean_push_a_recovery_and_a_clean_failure(self):
        begin = time.monotonic()
        done = subprocess.run([harness.PROGRAM, "demo"], cwd=self.folder, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              timeout=90 * harness.SLOW, check=False)
        text = done.stdout.decode()
        self.assertEqual(done.returncode, 0, text)
        self.assertLess(time.monotonic() - begin, 60 * harness.SLOW)
        for told in ("outcome    done in", "outcome    recovered by one resend",
                     "outcome    failed in", "differs from the checkpoint, torn",
                     "do not resume it; push again"):
            self.assertIn(told, text)
        # Three engines after each of the two good pushes.
        self.assertEqual(text.count("= checkpoint"), 6, text)
        self.assertEqual(list(self.folder.iterdir()), [], "leftovers")


if __name__ == "__main__":
    unittest.main(verbosity=2)
