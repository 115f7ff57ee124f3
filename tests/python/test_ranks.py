# SPDX-License-Identifier: Apache-2.0
"""Several ranks, each a process of its own."""

import os
import signal
import subprocess
import sys
import time

import pytest

import support


def test_ranks_push_together(engine, job):
    one = engine("one", "--world-size", "2")
    results = job("push.py", 4, {"config": support.config([one])}).results()
    assert results == [{"outcome": "done", "ranks": 4}] * 4
    assert one.state()["version"] == "1"


@pytest.mark.parametrize("other", [["a", "b"], ["a", "c", "b"], ["a", "b", "c", "d"]])
def test_different_lists_on_two_ranks(engine, job, other):
    one = engine()
    results = job("push.py", 2, {"config": support.config([one]), "1": {"names": other}}).results()
    for result in results:
        assert result["error"] == "RefusedError"
        assert result["rank"] == 1
        assert "rank" in result["cause"]
    assert results[0]["cause"] == results[1]["cause"]
    assert one.calls("pause") == []


def test_an_exception_reaches_every_ranks_report_with_its_traceback(engine, job):
    one = engine()
    results = job("push.py", 3, {"config": support.config([one]), "2": {"raise_at": 1}}).results()
    for result in results:
        assert result["error"] == "PushError"
        assert result["rank"] == 2
        assert "LookupError: shard 1 is lost (push.py:" in result["cause"]
        assert "in gather, called from push.py:" in result["cause"]
        assert "in weights" in result["cause"]
    assert [result["raised_from"] for result in results] == ["NoneType", "NoneType", "LookupError"]
    assert one.state()["version"] != "1"


@pytest.mark.parametrize("where", ["engine", "iterator"])
@pytest.mark.parametrize("interrupted", [0, 1])
def test_an_interrupt_ends_the_push_on_all_ranks(engine, job, where, interrupted):
    """Within a second, in whatever the ranks wait: for an engine, or in a collective of the trainer's."""
    one = engine()
    given = {"config": support.config([one])}
    if where == "engine":
        one.faults({"route": "start_weight_update", "nth": 1, "do": "delay", "seconds": 30})
    else:
        given["*"] = {"hang_at": 1}
    ranks = job("push.py", 3, given)
    if where == "engine":
        support.harness.wait_until(lambda: one.calls("start_weight_update"), 60, ranks.log(0))
    else:
        for rank in range(3):
            ranks.wait_for_text(rank, "hanging")
    begin = time.monotonic()
    os.kill(ranks.processes[interrupted].pid, signal.SIGINT)
    for rank in range(3):
        ranks.wait_for_text(rank, '{"error": ' if rank != interrupted else '"KeyboardInterrupt"', limit=10)
    took = time.monotonic() - begin
    results = ranks.results()
    assert took < 1.0 * support.harness.SLOW, f"{took} s"
    assert results[interrupted] == {"error": "KeyboardInterrupt", "outcome": "failed"}
    for rank in {0, 1, 2} - {interrupted}:
        assert results[rank]["error"] == "PushError"
        cause = results[rank]["cause"]
        assert "interrupted (SIGINT)" in cause or "KeyboardInterrupt" in cause


@pytest.mark.parametrize("how", ["return", "raise"])
@pytest.mark.parametrize("in_iterator", [False, True])
def test_the_interpreter_ends_with_a_call_outstanding(engine, tmp_path, how, in_iterator):
    one = engine()
    if not in_iterator:
        one.faults({"route": "pause", "nth": 1, "do": "hang"})
    given = {"config": support.config([one]), "how": how, "in_iterator": in_iterator}
    process = subprocess.Popen(
        [sys.executable, "-B", str(support.TRAINERS / "exit_while_pushing.py"), support.json.dumps(given)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
    )
    try:
        route = "pause" if not in_iterator else "update_weights"
        support.harness.wait_until(lambda: one.calls(route), 60, route)
        begin = time.monotonic()
        out, errors = process.communicate("now\n", timeout=20)
        took = time.monotonic() - begin
    finally:
        process.kill()
        process.wait()
    assert out == "ending\n"
    assert process.returncode == (5 if how == "raise" else 0), errors
    assert took < 2.0 * support.harness.SLOW, f"{took} s\n{errors}"


def test_groups_push_apart_from_the_rest_of_the_job(engine, job):
    """A group of two, one of one, and a rank in none. Without addresses: each group meets by itself."""
    engines = [engine("first"), engine("second")]
    given = {"groups": [[1, 3], [0]], "configs": [support.config([one]) for one in engines]}
    results = job("group.py", 4, given, forked=True).results(180)
    assert [each.get("outcome") for each in results] == ["done", "done", None, "done"]
    assert [each.get("push_rank") for each in results] == [0, 0, None, 1]
    assert "not in the given group" in results[2]["outside"]
    for one in engines:
        assert one.state()["version"] == "2"


def test_the_trainers_watchdog_is_compared(engine, job):
    """Of two groups of the job one has a `timeouts.gather` above its watchdog's limit."""
    engines = [engine("first"), engine("second")]
    configs = [
        support.config([one], timeouts={"gather": gather})
        for one, gather in zip(engines, ("20s", "14s"), strict=True)
    ]
    ranks = job("group.py", 1, {"groups": [[0], [0]], "configs": configs, "watchdog": 15})
    assert ranks.results()[0]["outcome"] == "done"
    warning = (
        "timeouts.gather is 20 s, but torch.distributed ends a hanging collective of this group after 15 s"
    )
    assert ranks.log(0).count(warning) == 1
    assert "timeouts.gather is 14 s" not in ranks.log(0)


@pytest.mark.parametrize("scope", ["local", "global"])
def test_two_gloos_in_one_process(engine, job, scope):
    """Rank 0 imports torch first, rank 1 Pushrod."""
    one = engine()
    given = {
        "config": support.config([one]),
        "orders": [["torch", "pushrod"], ["pushrod", "torch"]],
        "global": scope == "global",
    }
    assert job("both_gloos.py", 2, given).results(180) == [["done"] * 5] * 2


def test_an_import_takes_no_torch_and_little_time():
    code = (
        "import sys, time; begin = time.process_time(); import pushrod; print(time.process_time() - begin); "
        "print('torch' in sys.modules or 'numpy' in sys.modules)"
    )
    told = [subprocess.check_output([sys.executable, "-c", code], text=True).split() for _ in range(3)]
    assert [heavy for _, heavy in told] == ["False"] * 3
    # What else the machine does only adds.
    assert min(float(seconds) for seconds, _ in told) < 0.3
