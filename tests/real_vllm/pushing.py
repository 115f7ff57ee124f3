# SPDX-License-Identifier: Apache-2.0
"""A user of a real server, and a trainer that pushes into it with the command line."""

import http.client
import json
import os
import pathlib
import re
import subprocess
import time

import model
import server

# Short, over one block of the KV cache, and over several: the last finds old blocks when they stay.
PROMPTS = [[5, 6, 7, 8], [3 + 7 * i % 500 for i in range(40)], [4 + 11 * i % 500 for i in range(300)]]
LENGTH = 12  # tokens of a continuation, as in reference.py
PUSH_LIMIT = 240 * server.SLOW
ANSWER_LIMIT = 120 * server.SLOW


class Failed(Exception):
    """What was seen instead of what must be."""


def expect(condition, text):
    if not condition:
        raise Failed(text)


def equal(seen, wanted, what):
    expect(seen == wanted, f"{what}: {seen} instead of {wanted}")


class User:
    """Asks one server."""

    def __init__(self, port):
        self.port = port

    def ask(self, method, path, body=None, limit=ANSWER_LIMIT):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=limit)
        try:
            headers = {"Content-Type": "application/json"}
            connection.request(method, path, json.dumps(body) if body is not None else None, headers)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    def told(self, path):
        status, text = self.ask("GET", path)
        equal(status, 200, f"status of {path}")
        return json.loads(text)

    def generate(self, prompt, length=LENGTH):
        status, text = self.ask("POST", "/v1/completions", {
            "model": "tiny", "prompt": prompt, "max_tokens": length, "temperature": 0,
            "ignore_eos": True, "skip_special_tokens": False})
        expect(status == 200, f"generation answered {status}: {text}")
        return [int(word) for word in re.findall(r"t(\d+)", json.loads(text)["choices"][0]["text"])]

    def tokens(self):
        return [self.generate(prompt) for prompt in PROMPTS]

    def version(self):
        return self.told("/weight_info")["weight_version"]

    def paused(self):
        return self.told("/is_paused")["is_paused"]


class Pushed:
    """The end of one run of the command line."""

    def __init__(self, code, text, report):
        self.code, self.text, self.report = code, text, report

    def good(self, outcome="done"):
        expect(self.code == 0 and self.report.get("outcome") == outcome,
               f"exit code {self.code}, report {self.report}:\n{self.text}")
        return self


class Trainer:
    """Pushes into the servers at `ports`."""

    def __init__(self, program, folder, ports, transport="tcp", **sections):
        self.program, self.folder = str(program), pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.port = server.free_port()
        self.config, self.report = self.folder / "push.yaml", self.folder / "report.json"
        # YAML reads JSON. Chunks are small, so that there are several of them.
        self.config.write_text(json.dumps({
            "job": "real", "engines": {"list": [{"url": f"http://127.0.0.1:{port}", "name": f"e{number}"}
                                                for number, port in enumerate(ports)]}
            | sections.pop("engines", {}),
            "transport": {"kind": transport, "buffer": "160KiB"} | sections.pop("transport", {}),
            "metrics": {"listen": f"127.0.0.1:{self.port}"}} | sections))

    def command(self, *words):
        return [self.program, *map(str, words), "--config", str(self.config), "--report", str(self.report),
                "--ranks", "2"]

    def begin(self, *words):
        self.report.unlink(missing_ok=True)
        return subprocess.Popen(self.command(*words), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True, cwd=self.folder, env=dict(os.environ))

    def end(self, process):
        text, _ = process.communicate(timeout=PUSH_LIMIT)
        report = json.loads(self.report.read_text()) if self.report.exists() else {}
        report = report[-1] if isinstance(report, list) else report  # A drill has one for each push.
        return Pushed(process.returncode, text, report)

    def wait_phase(self, process, phase, limit=120):
        """Returns once the running push is in `phase`, as its metrics say; its end ends the wait."""
        wanted = f'pushrod_push_phase{{phase="{phase}"}} 1'
        end = time.monotonic() + limit
        while time.monotonic() < end:
            try:
                if wanted in User(self.port).ask("GET", "/metrics", limit=5)[1]:
                    return
            except OSError:
                pass  # Not started yet.
            try:
                code = process.wait(timeout=0.02)
            except subprocess.TimeoutExpired:
                continue
            raise Failed(f"the push ended with {code} before it was in phase {phase}")
        raise Failed(f"the push was not in phase {phase} within {limit} s")

    def push(self, checkpoint, version):
        return self.end(self.begin("push", "--checkpoint", checkpoint, "--version", version))

    def begin_drill(self, faults, version="drill", kind="llama"):
        """A push of made-up values for the tensors of `kind`, with faults."""
        plan = self.folder / "plan.json"
        plan.write_text(json.dumps({
            "tensors": [{"name": name, "dtype": "bfloat16", "shape": shape}
                        for name, shape in model.shapes(kind)],
            "pushes": [{"version": version, "faults": faults}]}))
        return self.begin("drill", "--plan", plan)


def references(python, folders):
    """The greedy continuations of PROMPTS for each checkpoint folder."""
    script = pathlib.Path(__file__).with_name("reference.py")
    done = subprocess.run([str(python), str(script), json.dumps(PROMPTS), *map(str, folders)],
                          capture_output=True, text=True, timeout=300, check=False,
                          env=server.settings(folders[0].parent))
    expect(done.returncode == 0, f"reference.py ended with {done.returncode}:\n{done.stderr[-3000:]}")
    return [json.loads(line) for line in done.stdout.splitlines()]
