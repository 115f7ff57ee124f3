# SPDX-License-Identifier: Apache-2.0
"""Reference engines and trainer ranks for the tests of the Python package."""

import hashlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "processes"))

import harness  # noqa: E402

TRAINERS = HERE / "trainers"


def config(engines, **sections):
    """A configuration dict for reference engines; sections are merged in."""
    made = {
        "engines": {"list": [{"url": engine.url, "name": engine.name} for engine in engines]},
        "transport": {"kind": engines[0].backend if engines else "tcp", "buffer": "64KiB"},
        "metrics": {"listen": ""},
        "timeouts": {
            "push": "60s",
            "request": "20s",
            "gather": "20s",
            "connect": "10s",
            "startup": "10s",
            "agreement": "5s",
            "init": "20s",
            "shutdown": "10s",
        },
    }
    for name, section in sections.items():
        made[name] = {**made.get(name, {}), **section}
    return made


def sha(data):
    return hashlib.sha256(bytes(data)).hexdigest()


class Job:
    """Ranks of one trainer script, each a process that prints one JSON object as its last line."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.processes = []

    def start(self, script, ranks, given, **environment):
        """Every rank gets `given` as JSON on its command line."""
        port = harness.free_port()
        for rank in range(ranks):
            variables = {
                **os.environ,
                "RANK": str(rank),
                "WORLD_SIZE": str(ranks),
                "LOCAL_RANK": str(rank),
                "MASTER_ADDR": "127.0.0.1",
                "MASTER_PORT": str(port),
                "OMP_NUM_THREADS": "1",
                # Compiled once, and none of it beside the sources.
                "PYTHONPYCACHEPREFIX": os.environ.get("PYTHONPYCACHEPREFIX", str(self.folder / "pycache")),
                **environment,
            }
            with open(self.folder / f"rank-{rank}.log", "wb") as log:
                self.processes.append(
                    subprocess.Popen(
                        [sys.executable, str(TRAINERS / script), json.dumps(given)],
                        env=variables,
                        stdout=log,
                        stderr=subprocess.STDOUT,
                        cwd=self.folder,
                        start_new_session=True,
                    )
                )
        return self

    def log(self, rank):
        return (self.folder / f"rank-{rank}.log").read_text(errors="replace")

    def wait_for_text(self, rank, text, limit=60):
        what = f"{text!r} in {self.folder}/rank-{rank}.log"
        harness.wait_until(lambda: text in self.log(rank), limit, what)

    def wait(self, limit=90):
        """Every rank's exit code."""
        end = time.monotonic() + limit * harness.SLOW
        codes = []
        for rank, process in enumerate(self.processes):
            try:
                codes.append(process.wait(timeout=max(0.1, end - time.monotonic())))
            except subprocess.TimeoutExpired:
                raise AssertionError(f"rank {rank} did not end:\n{self.log(rank)}") from None
        return codes

    def results(self, limit=90):
        """What every rank printed last."""
        codes = self.wait(limit)
        logs = [self.log(rank) for rank in range(len(codes))]
        assert codes == [0] * len(codes), "\n".join(logs)
        return [json.loads(log.strip().splitlines()[-1]) for log in logs]

    def stop(self):
        for process in self.processes:
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
            process.wait()
