# SPDX-License-Identifier: Apache-2.0
"""One real vLLM server on the CPU: a group of processes that is always ended as a whole."""

import http.client
import json
import os
import pathlib
import re
import shlex
import signal
import socket
import subprocess
import time


# s; about 40 on a quiet machine, more at the first start, which compiles what it imports.
SLOW = float(os.environ.get("PUSHROD_TEST_SLOW", "1"))
START_LIMIT = 300 * SLOW


README = pathlib.Path(__file__).resolve().parents[2] / "README.md"


class CannotStart(Exception):
    """Says why the server never answered, with the end of its log."""


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def end(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass  # It has ended by itself.


def settings(folder):
    environment = dict(os.environ)
    # Without bytecode every start compiles all of torch and vLLM anew.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    home = folder / "home"
    home.mkdir(exist_ok=True)
    environment.update({
        "VLLM_CPU_KVCACHE_SPACE": "1",
        # The default wants a NUMA node for each worker.
        "VLLM_CPU_OMP_THREADS_BIND": "nobind", "OMP_NUM_THREADS": "1",
        # Spawned workers would import everything again.
        "VLLM_WORKER_MULTIPROC_METHOD": "fork",
        "VLLM_HOST_IP": "127.0.0.1", "VLLM_LOOPBACK_IP": "127.0.0.1",
        "HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1",
        "VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1",
        "HOME": str(home), "TMPDIR": str(home),
    })
    return environment


def readme_command(python, model, port, backend):
    """What README's section "Into vLLM" starts a server with, for another folder, port and backend:
    settings of the environment, and words."""
    section = README.read_text(encoding="utf-8").partition("\n## Into vLLM\n")[2]
    block = re.search(r"^```sh\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)[1]
    setting, *words = shlex.split(block.replace("\\\n", " "))
    own = {"python": str(python), "DIR": str(model), "8000": str(port)}
    words = [own.get(word, word).replace("pushrod_tcp", backend) for word in words]
    return dict([setting.split("=")]), words


class Server:
    """Starts on entering a `with`, and is gone with all its processes after it."""

    def __init__(self, python, folder, model, workers, backend="ipc", name="", port=0, extra=(),
                 variables=None):
        self.folder, self.port = pathlib.Path(folder), port or free_port()
        self.log_path = self.folder / f"server-{name or workers}.log"
        self.variables = {"VLLM_SERVER_DEV_MODE": "1"} | (variables or {})
        transfer = ["--weight-transfer-config", json.dumps({"backend": backend})]
        # `vllm serve` of the CPU distribution does not start: it asks for the other one's metadata.
        self.words = [str(python), "-m", "vllm.entrypoints.openai.api_server", "--model", str(model),
                      "--port", str(self.port), *(transfer if backend else [])]
        self.extra = ["--host", "127.0.0.1", "--served-model-name", "tiny", "--enforce-eager",
                      "--max-num-seqs", "4", "-tp", str(workers), *extra]
        self.process = None
        self.mapped = set()  # files in /dev/shm that a killed process would leave

    def __enter__(self):
        self.log_path.unlink(missing_ok=True)
        self.start()
        return self

    def start_as(self, variables, words):
        """Replaces what it is started with, but for what makes it small."""
        self.variables, self.words = variables, words

    def start(self):
        command = ["nice", "-n", "5", *self.words, *self.extra]
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                command, env=settings(self.folder) | self.variables, stdin=subprocess.DEVNULL,
                stdout=log, stderr=subprocess.STDOUT, start_new_session=True)

    def restart(self):
        """A new server in the place of one that was killed."""
        self.stop()
        self.start()
        self.wait_ready()

    def __exit__(self, *_):
        self.stop()

    def log_end(self, size=4000):
        return self.log_path.read_text(errors="replace")[-size:]

    def healthy(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        try:
            connection.request("GET", "/health")
            return connection.getresponse().status == 200
        except OSError:
            return False
        finally:
            connection.close()

    def wait_ready(self, limit=START_LIMIT):
        end = time.monotonic() + limit
        while not self.healthy():
            try:
                code = self.process.wait(timeout=0.5)
                raise CannotStart(f"the server ended with {code} before it was ready; the end of "
                                  f"{self.log_path}:\n{self.log_end()}")
            except subprocess.TimeoutExpired:
                pass  # it lives, and is asked again
            if time.monotonic() > end:
                raise CannotStart(f"the server was not ready within {limit:g} s; the end of "
                                  f"{self.log_path}:\n{self.log_end()}")
        self.mapped |= self.shared_memory()

    def members(self):
        """Living processes of its session."""
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    fields = (entry / "stat").read_text().rpartition(")")[2].split()
                except OSError:
                    continue
                if int(fields[3]) == self.process.pid and fields[0] not in "ZX":
                    found.append(int(entry.name))
        return found

    def kill_all(self):
        self.mapped |= self.shared_memory()
        for pid in self.members():
            end(pid)

    def kill_named(self, name):
        """Kills those of its processes that call themselves so."""
        self.mapped |= self.shared_memory()
        for pid in self.members():
            if pathlib.Path(f"/proc/{pid}/comm").read_text().startswith(name[:15]):
                end(pid)

    def shared_memory(self):
        """Files in /dev/shm that its processes have mapped; by number, since a semaphore is mapped
        under the name that it had before it got its own."""
        numbers = set()
        for pid in self.members():
            try:
                lines = pathlib.Path(f"/proc/{pid}/maps").read_text().splitlines()
            except OSError:
                continue
            numbers.update(int(line.split()[4]) for line in lines if "/dev/shm/" in line)
        with os.scandir("/dev/shm") as entries:
            return {pathlib.Path(entry.path) for entry in entries if entry.inode() in numbers}

    def stop(self):
        """Asks it to end, then ends what is left of its processes, and removes what they left."""
        if self.process is None:
            return
        self.mapped |= self.shared_memory()
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(timeout=15)
            except subprocess.TimeoutExpired:
                pass
        for pid in self.members():
            end(pid)
        self.process.wait(timeout=30)
        for path in self.mapped:
            path.unlink(missing_ok=True)
        self.process = None
