# SPDX-License-Identifier: Apache-2.0
"""Our client against a real vLLM server on the CPU.

    run.py PROGRAM FOLDER [PUSHROD WHEEL]

PROGRAM is the built real_vllm_test; FOLDER gets the environment (about 6 GiB, kept), the model and
the logs. With the built command and the wheel of our Python package the part "smoke" of push.py is
played too. UV_CACHE_DIR: downloads that other environments share. Nothing is skipped: what cannot be
installed or started is a failure.
"""

import json
import os
import pathlib
import subprocess
import sys
import time

import environment
import model
import push
import server

TEST_LIMIT = 240


def said(begun, text):
    print(f"real vLLM [{time.monotonic() - begun:.0f} s]: {text}", flush=True)


def failures(results):
    """Why a finished run of the program proves nothing; empty: its tests ran and passed."""
    if not results.exists():
        return "no results"
    told = json.loads(results.read_text())
    if told["tests"] == 0:
        return "no test ran"
    return "" if told["failures"] == told["errors"] == 0 else f"{told['failures']} tests"


def play(begun, python, program, folder, workers, pattern):
    """The tests for a server with so many workers; whether they passed."""
    results = folder / f"results-{workers}.json"
    results.unlink(missing_ok=True)
    extra = ["--skip-tokenizer-init", "--enable-scale-out", "--max-model-len", "128"]
    with server.Server(python, folder, folder / "model", workers, extra=extra) as running:
        running.wait_ready()
        said(begun, f"vLLM {environment.VLLM} with {workers} workers is ready")
        variables = dict(os.environ, PUSHROD_VLLM_PORT=str(running.port),
                         PUSHROD_VLLM_SESSION=str(running.process.pid),
                         PUSHROD_VLLM_RELEASE=environment.VLLM)
        command = [str(program), f"--gtest_filter={pattern}", f"--gtest_output=json:{results}"]
        try:
            code = subprocess.run(command, env=variables, stdin=subprocess.DEVNULL,
                                  timeout=TEST_LIMIT, check=False).returncode
            why = failures(results) or (f"exit code {code}" if code != 0 else "")
        except subprocess.TimeoutExpired:
            why = f"no end within {TEST_LIMIT} s"
        if why:
            said(begun, f"{pattern} failed ({why}); the end of {running.log_path}:")
            print(running.log_end(), flush=True)
    return not why


def main(program, folder, pushing=()):
    begun = time.monotonic()
    program, folder = pathlib.Path(program).absolute(), pathlib.Path(folder).absolute()
    try:
        python = environment.ensure(folder, cache=os.environ.get("UV_CACHE_DIR"))
        said(begun, f"installed in {folder}")
        model.write(folder / "model")
        good = [play(begun, python, program, folder, workers, pattern)
                for workers, pattern in ((2, "TwoWorkers.*"), (1, "OneWorker.*"))]
        if pushing:
            command, wheel = (pathlib.Path(path).absolute() for path in pushing)
            good.append(push.Job(command, wheel, folder, cache=os.environ.get("UV_CACHE_DIR")).play("smoke"))
    except (environment.CannotInstall, server.CannotStart) as error:
        said(begun, str(error))
        return 1
    said(begun, f"{sum(good)} passed, {len(good) - sum(good)} failed; logs in {folder}")
    return 0 if all(good) else 1


if __name__ == "__main__":
    if len(sys.argv) not in (3, 5):
        sys.exit("usage: run.py PROGRAM FOLDER [PUSHROD WHEEL]")
    sys.exit(main(*sys.argv[1:3], pushing=sys.argv[3:]))
