# SPDX-License-Identifier: Apache-2.0
"""Real processes for tests from outside: reference engines, trainer ranks, checkpoints.

Only the standard library, and only what docs/ promises: command line, exit codes, report, journal.
"""

import hashlib
import http.client
import json
import os
import pathlib
import select
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time
import unittest

PROGRAM = os.path.abspath(os.environ.get("PUSHROD_PROGRAM", "build/bin/pushrod"))
# Sanitizer builds are several times slower; limits in tests are multiplied by this.
SLOW = float(os.environ.get("PUSHROD_TEST_SLOW", "1"))
ITEM = {"BF16": 2, "F16": 2, "F32": 4, "F64": 8, "I64": 8, "I32": 4, "U8": 1, "BOOL": 1}


def wait_until(condition, limit, what):
    """Polls until `condition()` is true; fails the test after `limit` seconds."""
    end = time.monotonic() + limit * SLOW
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"not within {limit} s: {what}")
        select.select([], [], [], 0.02)


def free_port():
    """A port below the system's own range whose successor, the store's, is free as well."""
    start = (os.getpid() * 31 + time.monotonic_ns() // 1000) % 5000
    for offset in range(5000):
        port = 20000 + 2 * ((start + offset) % 5000)
        try:
            with socket.socket() as first, socket.socket() as second:
                first.bind(("127.0.0.1", port))
                second.bind(("127.0.0.1", port + 1))
            return port
        except OSError:
            continue
    raise AssertionError("no free port")


def end_group(child):
    """Ends a child that leads its own process group, with all that it started."""
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    child.wait()


def request(port, method, path, body=None, limit=10, host="127.0.0.1"):
    connection = http.client.HTTPConnection(host, port, timeout=limit * SLOW)
    try:
        text = None if body is None else json.dumps(body)
        connection.request(method, path, text, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


class EngineClient:
    """What a test sees of an engine, whoever runs it."""

    backend = "tcp"

    def __init__(self, name, port, journal_path, host="127.0.0.1"):
        self.name, self.port, self.journal_path = name, port, pathlib.Path(journal_path)
        self.host, self.url = host, f"http://{host}:{port}"

    def state(self):
        return json.loads(request(self.port, "GET", "/__state", host=self.host)[1])

    def control(self, orders):
        status, body = request(self.port, "POST", "/__ctl", orders, host=self.host)
        assert status == 200, (status, body)

    def faults(self, *faults):
        self.control({"faults": list(faults)})

    def journal(self, event=None):
        text = self.journal_path.read_text()
        # The last line may still be written.
        lines = [json.loads(line) for line in text[:text.rfind("\n") + 1].splitlines() if line]
        return [line for line in lines if event is None or line["event"] == event]

    def calls(self, route):
        return [line for line in self.journal("request") if line["path"] == "/" + route]


class Engine(EngineClient):
    """One reference engine process. `within`: a command that runs it elsewhere, at `host`."""

    def __init__(self, folder, name, *flags, port=0, backend="tcp", within=(), host="127.0.0.1"):
        self.backend = backend
        journal_path = pathlib.Path(folder) / f"{name}-{time.monotonic_ns()}.journal"
        self.log = open(pathlib.Path(folder) / f"{name}.log", "ab")
        self.process = subprocess.Popen(
            [*within, PROGRAM, "engine", "--port", str(port), "--name", name, "--backend", backend,
             "--journal", str(journal_path), *flags,
             *(() if host == "127.0.0.1" else ("--host", host))],
            stdout=subprocess.PIPE, stderr=self.log)
        line = self.process.stdout.readline()
        if not line:
            raise AssertionError(f"engine {name} did not start: {self.process.wait()}")
        super().__init__(name, json.loads(line)["port"], journal_path, host)

    def stop(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.log.close()


def write_safetensors(path, tensors):
    """`tensors`: {name: (dtype, shape, bytes)}. Returns {name: sha256}."""
    header, offset, digests = {}, 0, {}
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [offset, offset + len(data)]}
        offset += len(data)
        digests[name] = hashlib.sha256(data).hexdigest()
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for _, _, data in tensors.values():
            file.write(data)
    return digests


def tensor(name, version, dtype, shape):
    count = ITEM[dtype]
    for extent in shape:
        count *= extent
    return dtype, shape, hashlib.shake_128(f"{name}/{version}".encode()).digest(count)


def layered(version, layers=4, width=64):
    """A small model with fused layers: {name: (dtype, shape, bytes)}."""
    shapes = {"model.embed_tokens.weight": [256, width]}
    for layer in range(layers):
        for part in ("q", "k", "v", "o"):
            shapes[f"model.layers.{layer}.self_attn.{part}_proj.weight"] = [width, width]
        for part in ("gate", "up", "down"):
            shapes[f"model.layers.{layer}.mlp.{part}_proj.weight"] = [width, width]
        shapes[f"model.layers.{layer}.input_layernorm.weight"] = [width]
    shapes["model.norm.weight"] = [width]
    return {name: tensor(name, version, "BF16", shape) for name, shape in shapes.items()}


class Case(unittest.TestCase):
    """A temporary folder, and everything that was started in it ended."""

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="pushrod-test-"))
        self.engines = []
        self.children = []

    def tearDown(self):
        for child in self.children:
            if child.poll() is None:
                child.send_signal(signal.SIGCONT)
                child.kill()
            child.wait()
        for engine in self.engines:
            engine.stop()
        shutil.rmtree(self.folder)

    def await_that(self, condition, limit, what):
        """wait_until, with what the ranks printed when it fails."""
        try:
            return wait_until(condition, limit, what)
        except AssertionError as error:
            logs = [path.read_text(errors="replace") for path in self.folder.glob("rank-*.log")]
            raise AssertionError(f"{error}\n" + "\n".join(logs)) from None

    def engine(self, name, *flags, port=0, backend="tcp"):
        engine = Engine(self.folder, name, *flags, port=port, backend=backend)
        self.engines.append(engine)
        return engine

    def checkpoint(self, name, tensors):
        folder = self.folder / name
        folder.mkdir()
        return folder, write_safetensors(folder / "model.safetensors", tensors)

    def weights(self, version, layers=4, width=64):
        """A checkpoint of one training step of the small model."""
        return self.checkpoint(f"v{version}", layered(version, layers, width))

    def config(self, engines, /, **sections):
        """`sections`: {"timeouts": {"request": "5s"}}; values are written as they are."""
        text = {"job": {"job": f"test-{os.getpid()}"},
                "transport": {"kind": "tcp", "buffer": "32KiB"},
                "timeouts": {"push": "60s", "connect": "10s", "startup": "10s", "init": "10s",
                             "request": "10s", "pause": "5s", "resume": "5s", "progress": "5s",
                             "drain": "3s", "gather": "10s", "agreement": "5s", "shutdown": "5s"},
                "metrics": {"listen": '""'}}
        for section, values in sections.items():
            text.setdefault(section, {}).update(values)
        job = text.pop("job")
        lines = [f"{key}: {value}" for key, value in job.items()]
        lines.append("engines:")
        for key, value in text.pop("engines", {}).items():
            lines.append(f"  {key}: {value}")
        lines.append("  list:")
        for engine in engines:
            lines += [f"    - url: {engine.url}", f"      name: {engine.name}"]
            if getattr(engine, "backend", "tcp") != "tcp":
                lines.append(f"      transport: {engine.backend}")
        for section, values in text.items():
            lines.append(f"{section}:")
            lines += [f"  {key}: {value}" for key, value in values.items()]
        path = self.folder / f"push-{time.monotonic_ns()}.yaml"
        path.write_text("\n".join(lines) + "\n")
        return path

    def command(self, config, checkpoint, version, *flags):
        # Without a report flight records would go to the working folder.
        flight = [] if "--report" in flags else ["--flight-record", str(self.folder)]
        return [PROGRAM, "push", "--config", str(config), "--checkpoint", str(checkpoint),
                "--version", version, *flight, *flags]

    def push(self, config, checkpoint, version, ranks=4, limit=60):
        """One push by a supervisor. Returns (exit code, report or None, everything printed)."""
        report = self.folder / f"report-{time.monotonic_ns()}.json"
        done = subprocess.run(
            self.command(config, checkpoint, version, "--ranks", str(ranks),
                         "--report", str(report)),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            timeout=limit * SLOW, check=False)
        text = done.stdout.decode(errors="replace")
        return done.returncode, json.loads(report.read_text()) if report.exists() else None, text

    def launch(self, commands, master="127.0.0.1", hosts=None):
        """One rank process per command, as a launcher starts them. Their output goes to files.
        `hosts`: their host ids."""
        port = free_port()
        for rank, command in enumerate(commands):
            environment = dict(os.environ, RANK=str(rank), WORLD_SIZE=str(len(commands)),
                               LOCAL_RANK=str(rank), MASTER_ADDR=master,
                               MASTER_PORT=str(port))
            if hosts is not None:
                environment["PUSHROD_HOST_ID"] = hosts[rank]
            log = open(self.folder / f"rank-{rank}.log", "wb")
            self.children.append(subprocess.Popen(
                command, cwd=self.folder, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log))
            log.close()
        return self.children[-len(commands):]

    def ranks(self, config, checkpoint, version, count, master="127.0.0.1", hosts=None):
        """`count` ranks of one push. `config` and `checkpoint` may be lists, one for each rank."""
        return self.launch([
            self.command(config[rank] if isinstance(config, list) else config,
                         checkpoint[rank] if isinstance(checkpoint, list) else checkpoint,
                         version, "--report", str(self.folder / "ranks.json"))
            for rank in range(count)], master, hosts)

    def rank_log(self, rank):
        return (self.folder / f"rank-{rank}.log").read_text(errors="replace")

    def assert_ended(self, rank, code, text="", limit=30):
        """The rank of the case's only launch ends with `code` in time, and has said `text`."""
        process = self.children[rank]
        self.assertEqual(process.wait(timeout=limit * SLOW), code, self.rank_log(rank))
        self.assertIn(text, self.rank_log(rank))

    def assert_current(self, engine, version, digests):
        state = engine.state()
        self.assertEqual(state["version"], version)
        self.assertFalse(state["paused"])
        self.assertEqual(state["session"], "closed")
        self.assertFalse(state["torn"])
        self.assertEqual(state["weights"], digests)
        self.assertTrue(all(not r["torn"] and r["version"] == version
                            for r in state["resumes"][-1:]), state["resumes"])
