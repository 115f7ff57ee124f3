# SPDX-License-Identifier: Apache-2.0
"""Nothing grows from push 20 on, over either transport, whatever fails meanwhile. PUSHROD_TEST_FULL=1:
300 pushes with 30 failures each; else fewer, and over tcp by case 15."""

import os
import unittest

from flat import FlatCase

FULL = os.environ.get("PUSHROD_TEST_FULL") == "1"


class Leaks(FlatCase):
    def flat(self, backend):
        pushes, every = (300, 10) if FULL else (60, 5)
        first, last = self.assert_flat(backend, pushes, every, 300)
        for number, name in enumerate(("parent", "rank 0", "rank 1", "rank 2")):
            rows = [f"{before:.0f} -> {after:.0f}" for before, after in
                    list(zip(first, last))[3 * number:3 * number + 3]]
            print(f"{backend}, {pushes} pushes, {name}: descriptors {rows[0]}, threads {rows[1]},"
                  f" resident KiB {rows[2]}")
        print(f"{backend}: at engines {', '.join(self.injected)}")
        print(f"{backend}: files in shared memory {first[-2]:.0f} -> {last[-2]:.0f}, series"
              f" {first[-1]:.0f} -> {last[-1]:.0f}", flush=True)

    def test_nothing_grows(self):
        for backend in ("shm", "tcp") if FULL else ("shm",):
            with self.subTest(backend=backend):
                self.flat(backend)


if __name__ == "__main__":
    unittest.main(verbosity=2)
