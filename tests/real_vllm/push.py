# SPDX-License-Identifier: Apache-2.0
"""Pushes into real vLLM servers on the CPU, with the plug-in of our wheel.

    push.py PROGRAM WHEEL FOLDER [--part NAME]... [RELEASE]...

PROGRAM is the built command, FOLDER gets an environment for each release (about 6 GiB, kept), the
models and the logs. Without a release the newest one is tried, without a part all of them. Prints
a row for each check and release; nothing is skipped.
"""

import argparse
import dataclasses
import json
import os
import pathlib
import sys
import time

import environment
import model
import push_checks as checks
import pushing
import server

FAST = [checks.other_weights_give_other_tokens, checks.running_requests_go_on, checks.ten_pushes]
FAULTS = [checks.unknown_names, checks.wrong_shapes, checks.trainers_that_throw,
          checks.trainers_that_die]
DEATHS = [checks.killed_servers, checks.killed_workers, checks.restarted_servers]


@dataclasses.dataclass
class Part:
    """One server and what is checked with it."""

    checks: list
    kind: str = "llama"
    transport: str = "tcp"
    workers: int = 1
    # In float32 the server computes with packed copies of its weights on every machine, and as
    # transformers do to the last token; in bfloat16 it is compared with another server.
    dtype: str = "float32"
    backend: str = ""  # that of the transport
    readme: bool = False  # started as README says
    variables: dict = dataclasses.field(default_factory=dict)


PARTS = {
    "smoke": Part([checks.other_weights_give_other_tokens, checks.running_requests_go_on,
                   checks.unknown_names], kind="tied", readme=True),
    "tcp": Part([*FAST, *FAULTS]),
    "bfloat16": Part(FAST, dtype="bfloat16"),
    "shm": Part([checks.other_transports, *FAST, *FAULTS], transport="shm"),
    "two-workers": Part(FAST, workers=2),
    "two-workers-shm": Part(FAST, workers=2, transport="shm"),
    "tied": Part(FAST, kind="tied", transport="shm"),
    "moe": Part(FAST, kind="moe"),
    "deaths": Part(DEATHS),
    "no-backend": Part([checks.no_backend], backend="none"),
    "no-dev-mode": Part([checks.no_dev_mode], variables={"VLLM_SERVER_DEV_MODE": "0"}),
}
SEEDS = {"a": 1, "b": 2}


class Job:
    """All that is done with one release."""

    def __init__(self, program, wheel, folder, release=environment.VLLM, cache=None):
        self.program, self.release, self.folder = program, release, folder
        self.python = environment.ensure(folder, release=release, cache=cache)
        environment.add(folder, wheel)
        self.tokens = {}

    def models(self, kind):
        """The folders of the checkpoints of one kind."""
        made = {which: model.write(self.folder / f"{kind}-{which}", seed, kind)
                for which, seed in SEEDS.items()}
        layer = "model.layers.1."
        for which, change in (("unknown", {layer + "nonsense.weight": [model.HIDDEN]}),
                              ("shape", {layer + "self_attn.q_proj.weight": [32, model.HIDDEN]})):
            made[which] = model.write(self.folder / f"{kind}-{which}", 3, kind, change)
        return made

    def server(self, name, folder):
        part = PARTS[name]
        backend = {"": f"pushrod_{part.transport}", "none": ""}[part.backend]
        made = server.Server(self.python, self.folder, folder, part.workers, backend, name=name,
                             extra=["--dtype", part.dtype, "--max-model-len", "512"],
                             variables=part.variables)
        if part.readme:
            made.start_as(*server.readme_command(self.python, folder, made.port, backend))
        return made

    def play(self, name):
        """One server, and the checks for it; whether all passed."""
        part = PARTS[name]
        folders = self.models(part.kind)
        tokens = self.heard(name, folders) if part.dtype == "bfloat16" else {}
        versions = environment.order(self.release) >= [0, 27]
        with self.server(name, folders["a"]) as running:
            tokens = tokens or self.references(part.kind, folders)  # while the server starts
            running.wait_ready()
            scene = checks.Scene(
                running, pushing.User(running.port),
                lambda transport=part.transport: pushing.Trainer(
                    self.program, self.folder / "trainer", [running.port], transport,
                    **({} if versions else {"push": {"verify": "none"}})),
                folders, tokens, versions)
            return all([self.row(name, check, scene) for check in part.checks])

    def heard(self, name, folders):
        """What servers generate that were started on the checkpoints."""
        tokens = {}
        for which in SEEDS:
            with self.server(name, folders[which]) as running:
                running.wait_ready()
                tokens[which] = pushing.User(running.port).tokens()
        return tokens

    def references(self, kind, folders):
        if kind not in self.tokens:
            told = pushing.references(self.python, [folders[which] for which in SEEDS])
            self.tokens[kind] = dict(zip(SEEDS, told))
        return self.tokens[kind]

    def row(self, part, check, scene):
        begun, why = time.monotonic(), ""
        try:
            check(scene)
        except (pushing.Failed, OSError, json.JSONDecodeError, server.CannotStart) as error:
            why = f"{type(error).__name__}: {error}"
        row = f"{'FAILED' if why else 'passed'}  {self.release}  {part}  {check.__name__}"
        print(f"{row}  {time.monotonic() - begun:.1f} s", flush=True)
        if why:
            print(f"{why}\nThe end of {scene.server.log_path}:\n{scene.server.log_end()}", flush=True)
        return not why


def tried(what, step):
    """The step's result; false when it could not be taken at all."""
    try:
        return step()
    except (environment.CannotInstall, server.CannotStart, pushing.Failed) as error:
        print(f"FAILED  {what}: {error}", flush=True)
        return False


def main(options):
    good, folder = [], options.folder.absolute()
    for release in options.release or [environment.VLLM]:
        job = tried(release, lambda release=release: Job(
            options.program.absolute(), options.wheel, folder / release, release,
            os.environ.get("UV_CACHE_DIR", folder / "uv-cache")))
        if not job:
            good.append(False)
            continue
        for part in options.part or PARTS:
            good.append(tried(f"{release}  {part}", lambda job=job, part=part: job.play(part)))
    return 0 if all(good) else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("wheel", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--part", action="append", choices=PARTS)
    parser.add_argument("release", nargs="*")
    sys.exit(main(parser.parse_intermixed_args()))
