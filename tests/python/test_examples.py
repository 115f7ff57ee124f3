# SPDX-License-Identifier: Apache-2.0
"""README's section "From Python", run with the shipped configuration; and what the wheel brings along."""

import os
import pathlib
import subprocess
import sys

import pytest

import support

TOP = support.HERE.parents[1]
EXAMPLE = TOP / "examples/python_trainer/train.py"
# Ours, and none of Python's own.
OUR_LIBRARIES = ("gloo", "boost_json", "yaml-cpp", "prometheus", "hiredis", "ibverbs", "nl-3", "xxhash")


@pytest.mark.parametrize("ranks", [1, 2])
def test_the_trainer_of_the_readme(engine, tmp_path, ranks):
    rollouts = [engine("rollout-0", "--world-size", "2"), engine("rollout-1")]
    text = (TOP / "examples/pushrod.yaml").read_text()
    for port, one in zip(("8101", "8102"), rollouts, strict=True):
        assert f"http://127.0.0.1:{port}" in text
        text = text.replace(f"http://127.0.0.1:{port}", one.url)
    config = tmp_path / "pushrod.yaml"
    config.write_text(text + 'metrics: {listen: ""}\n')
    port = support.harness.free_port()
    processes = []
    for rank in range(ranks):
        environment = {
            **os.environ,
            "RANK": str(rank),
            "WORLD_SIZE": str(ranks),
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port),
        }
        command = [sys.executable, str(EXAMPLE), str(config), "3"]
        processes.append(
            subprocess.Popen(command, env=environment, cwd=tmp_path, stdout=subprocess.PIPE, text=True)
        )
    for process in processes:
        out, _ = process.communicate(timeout=120)
        assert process.returncode == 0
        assert [f"push of version '{step}': done" in out for step in (1, 2, 3)] == [True] * 3
    for one in rollouts:
        assert one.state()["version"] == "3"
        assert set(one.state()["weights"]) == {"0.weight", "0.bias", "1.weight", "1.bias"}


def test_the_wheel_brings_its_libraries():
    """Nothing of what our packages install is loaded from the system."""
    code = "import pushrod; print(open('/proc/self/maps').read()); print(pushrod.__file__)"
    out = subprocess.check_output([sys.executable, "-c", code], text=True)
    package = pathlib.Path(out.splitlines()[-1]).parent
    loaded = {line.split()[-1] for line in out.splitlines() if ".so" in line}
    ours = [path for path in loaded if any(f"lib{name}" in path for name in OUR_LIBRARIES)]
    assert len(ours) >= len(OUR_LIBRARIES) - 2
    assert {str(pathlib.Path(path).parent) for path in ours} == {str(package.parent / "pushrod.libs")}
