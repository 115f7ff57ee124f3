# SPDX-License-Identifier: Apache-2.0
"""Ends while a push is under way in another thread: the main thread returns, raises or exits."""

import json
import sys
import threading

import pushrod

given = json.loads(sys.argv[1])
coordinator = pushrod.Coordinator(given["config"], flight_record=None)
inside = threading.Event()


def weights():
    inside.set()
    if given.get("in_iterator"):
        threading.Event().wait()
    yield "w", memoryview(b"never asked for")


def push():
    coordinator.push("1", weights, manifest=[pushrod.TensorSpec("w", "uint8", (15,))])


threading.Thread(target=push, daemon=True).start()
sys.stdin.readline()  # the test says when
print("ending", flush=True)
if given.get("how") == "raise":
    raise SystemExit(5)
