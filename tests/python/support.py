# SPDX-License-Identifier: Apache-2.0
"""Reference engines and trainer ranks for the tests of the Python package."""

import contextlib
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
        self.ranks = 0

    def start(self, script, ranks, given):
        """Every rank gets `given` as JSON on its command line."""
        self.ranks = ranks
        port = str(harness.free_port())
        for rank in range(ranks):
            own = {"RANK": str(rank), "LOCAL_RANK": str(rank)}
            self.spawn(f"rank-{rank}.log", port, own, script, json.dumps(given))
        return self

    def start_forked(self, script, ranks, given):
        """As start(), but torch is imported once for all ranks."""
        self.ranks = ranks
        words = [str(ranks), str(TRAINERS / script), json.dumps(given)]
        self.spawn("job.log", str(harness.free_port()), {}, "forked.py", *words)
        return self

    def spawn(self, log, port, own, script, *words):
        variables = {
            **os.environ,
            "WORLD_SIZE": str(self.ranks),
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": port,
            "OMP_NUM_THREADS": "1",
            # Compiled once, and none of it beside the sources.
            "PYTHONPYCACHEPREFIX": os.environ.get("PYTHONPYCACHEPREFIX", str(self.folder / "pycache")),
            **own,
        }
        variables.pop("PYTHONDONTWRITEBYTECODE", None)
        with open(self.folder / log, "wb") as out:
            self.processes.append(
                subprocess.Popen(
                    [sys.executable, str(TRAINERS / script), *words],
                    env=variables,
                    stdout=out,
                    stderr=subprocess.STDOUT,
                    cwd=self.folder,
                    start_new_session=True,
                )
            )

    def log(self, rank):
        return (self.folder / f"rank-{rank}.log").read_text(errors="replace")

    def logs(self):
        return "\n".join(path.read_text(errors="replace") for path in sorted(self.folder.glob("*.log")))

    def wait_for_text(self, rank, text, limit=60):
        what = f"{text!r} in {self.folder}/rank-{rank}.log"
        harness.wait_until(lambda: text in self.log(rank), limit, what)

    def wait(self, limit=90):
        """The exit code of every process."""
        end = time.monotonic() + limit * harness.SLOW
        codes = []
        for number, process in enumerate(self.processes):
            try:
                codes.append(process.wait(timeout=max(0.1, end - time.monotonic())))
            except subprocess.TimeoutExpired:
                raise AssertionError(f"process {number} did not end:\n{self.logs()}") from None
        return codes

    def results(self, limit=90):
        """What every rank printed last."""
        codes = self.wait(limit)
        assert codes == [0] * len(codes), self.logs()
        return [json.loads(self.log(rank).strip().splitlines()[-1]) for rank in range(self.ranks)]

    def stop(self):
        for process in self.processes:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
