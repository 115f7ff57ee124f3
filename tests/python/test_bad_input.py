# SPDX-License-Identifier: Apache-2.0
"""What a trainer can get wrong: each with a clear error, and nothing half done."""

import os
import threading

import numpy
import pytest
import torch

import pushrod
import support

GOOD = ("a", torch.ones(3))
SPECS = [pushrod.TensorSpec("a", "float32", (3,)), pushrod.TensorSpec("b", "float32", (3,))]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ([1.0, 2.0], "tensor b is a list, not a tensor"),
        (None, "tensor b is None, not a tensor"),
        (3.5, "tensor b is a float, not a tensor"),
        (torch.zeros(2, dtype=torch.complex64), "dtype complex64, which cannot be sent; these go: bool"),
        (torch.eye(3).to_sparse(), "layout torch.sparse_coo"),
        (torch.zeros(2, device="meta"), "device meta"),
        (numpy.array(["x"]), "dtype str"),
        (numpy.zeros(2, dtype=">f4"), "other byte order"),
        (numpy.zeros(2, dtype=object), "dtype object"),
    ],
)
def test_what_is_no_tensor_is_refused_by_name(engine, coordinator, value, text):
    one = engine()
    with pytest.raises(pushrod.RefusedError, match=text) as raised:
        coordinator([one]).push("1", lambda: [GOOD, ("b", value)])
    assert raised.value.code == "invalid_argument"
    assert one.calls("pause") == []


@pytest.mark.parametrize(
    ("item", "text"),
    [
        (torch.ones(3), "yielded a .*Tensor; it must yield pairs"),
        (("a",), "yielded a tuple; it must yield pairs"),
        ("ab", "yielded a str; it must yield pairs"),
        ((1, torch.ones(3)), "a pair whose name is a int"),
        (("\udc80", torch.ones(3)), "a pair whose name is a str that is no UTF-8 text"),
    ],
)
def test_what_is_no_pair_is_refused(engine, coordinator, item, text):
    one = engine()
    with pytest.raises(pushrod.RefusedError, match=text):
        coordinator([one]).push("1", lambda: [item])


def test_a_bad_tensor_in_mid_stream_fails_the_push(engine, coordinator):
    one = engine()
    with pytest.raises(pushrod.PushError, match="tensor b is a dict") as raised:
        coordinator([one]).push("1", lambda: [GOOD, ("b", {})], manifest=SPECS)
    assert raised.value.report.engines[0].paused is True
    assert one.state()["version"] != "1"


def test_an_iterator_that_stops_early(engine, coordinator):
    one = engine()
    with pytest.raises(pushrod.PushError, match="ended after 1 of 2 tensors; missing first: b") as raised:
        coordinator([one]).push("1", lambda: [GOOD], manifest=SPECS)
    assert raised.value.code == "data_mismatch"


def test_an_iterator_that_yields_twice(engine, coordinator):
    one = engine()
    pusher = coordinator([one])
    twice = [GOOD, GOOD]
    with pytest.raises(pushrod.RefusedError, match="a"):
        pusher.push("1", lambda: twice)
    with pytest.raises(pushrod.PushError, match=r"declared 'b float32 .* streamed 'a float32") as raised:
        pusher.push("1", lambda: twice, manifest=SPECS)
    assert raised.value.code == "data_mismatch"
    with pytest.raises(pushrod.PushError):
        coordinator([engine("other")]).push("1", lambda: [*twice, ("b", torch.ones(3))], manifest=SPECS)


def test_nothing_to_push(engine, coordinator):
    with pytest.raises(pushrod.RefusedError, match="at least one tensor"):
        coordinator([engine()]).push("1", list)


@pytest.mark.parametrize(
    ("manifest", "text"),
    [
        ([pushrod.TensorSpec("a", "complex64", (3,))], "a as complex64"),
        ([pushrod.TensorSpec("a", "float32", (-1,))], "a"),
        ([("a", "float32", (3,))], "manifest raised AttributeError"),
        (5, "manifest raised TypeError"),
        ([], "at least one tensor"),
    ],
)
def test_a_bad_manifest_is_refused(engine, coordinator, manifest, text):
    one = engine()
    with pytest.raises(pushrod.RefusedError, match=text):
        coordinator([one]).push("1", lambda: [GOOD], manifest=manifest)
    assert one.calls("pause") == []


def test_an_exception_is_the_cause(engine, coordinator):
    one = engine()

    def gather(name):
        raise LookupError(f"no shard of {name}")

    def weights():
        yield GOOD
        gather("b")

    with pytest.raises(pushrod.PushError, match="LookupError: no shard of b") as raised:
        coordinator([one]).push("1", weights, manifest=SPECS)
    assert isinstance(raised.value.__cause__, LookupError)
    cause = raised.value.report.first_cause.message
    assert "test_bad_input.py" in cause
    assert "in gather, called from" in cause
    assert "in weights" in cause


def test_an_exception_is_sent_again_where_the_trainer_recovers(engine, coordinator):
    one = engine()
    failures = [RuntimeError("once")]

    def weights():
        yield GOOD
        if failures:
            raise failures.pop()
        yield "b", torch.ones(3)

    report = coordinator([one]).push("1", weights, manifest=SPECS, recover=lambda: True)
    assert report.outcome == "recovered"
    assert "once" in report.first_cause.message


def test_an_exception_before_the_first_tensor(engine, coordinator):
    one = engine()
    with pytest.raises(pushrod.RefusedError, match=r"weights\(\) raised ValueError: early") as raised:
        coordinator([one]).push("1", raise_value_error)
    assert isinstance(raised.value.__cause__, ValueError)


def raise_value_error():
    raise ValueError("early")


def test_arguments_of_the_wrong_kind(engine, coordinator):
    pusher = coordinator([engine()])
    with pytest.raises(TypeError, match="version is 7, not a str"):
        pusher.push(7, lambda: [GOOD])
    with pytest.raises(TypeError, match="weights is a list: give a function"):
        pusher.push("7", [GOOD])
    with pytest.raises(pushrod.RefusedError, match="empty"):
        pusher.push("", lambda: [GOOD])


@pytest.mark.parametrize(
    ("config", "text"),
    [
        ({"engine": {}}, "engine"),
        ({"engines": {"list": [{"url": "http://h:1"}]}, "transport": {"kind": "nccl"}}, "not in this build"),
        ({"engines": {"list": []}}, "engines"),
        ({"timeouts": {"push": 5}}, "timeouts.push"),
        ({"job": object()}, "dict of plain values"),
        ("/no/such/file.yaml", "No such file"),
        (7, "neither a path nor a dict"),
    ],
)
def test_a_bad_configuration(config, text):
    with pytest.raises(pushrod.ConfigError, match=text):
        pushrod.Coordinator(config)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"rank": 0}, "both rank and world_size"),
        ({"rank": 2, "world_size": 2}, "rank 2 of 2"),
        ({"rank": "0", "world_size": 1}, "rank is '0', not an int"),
        ({"rank": 0, "world_size": 2, "store": "nowhere"}, "ranks.store"),
        ({"group": object()}, "torch.distributed is not initialised"),
    ],
)
def test_bad_ranks(engine, arguments, text):
    with pytest.raises(pushrod.ConfigError, match=text):
        pushrod.Coordinator(support.config([engine()]), **arguments)


def test_a_call_from_inside_the_iterator(engine, coordinator):
    pusher = coordinator([engine()])

    def weights():
        yield GOOD
        pusher.push("2", lambda: [GOOD])

    with pytest.raises(pushrod.RefusedError, match="iterator called the coordinator"):
        pusher.push("1", weights)

    def closing():
        yield GOOD
        pusher.close()

    with pytest.raises(pushrod.RefusedError, match="iterator closes the coordinator"):
        pusher.push("1", closing)


def test_two_threads_at_once(engine, coordinator):
    pusher = coordinator([engine()])
    inside, go_on = threading.Event(), threading.Event()

    def weights():
        inside.set()
        go_on.wait(30)
        yield GOOD

    thread = threading.Thread(target=pusher.push, args=("1", weights))
    thread.start()
    assert inside.wait(30)
    with pytest.raises(pushrod.RefusedError, match="another thread"):
        pusher.push("2", lambda: [GOOD])
    go_on.set()
    thread.join(30)


def test_a_close_ends_the_push_of_another_thread(engine, coordinator):
    one = engine()
    one.faults({"route": "pause", "nth": 1, "do": "hang"})
    pusher = coordinator([one])
    raised = []

    def run():
        try:
            pusher.push("1", lambda: [GOOD])
        except pushrod.PushError as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    support.harness.wait_until(lambda: one.calls("pause"), 20, "the pause")
    pusher.close()
    thread.join(30)
    assert "the coordinator is closed" in str(raised[0])


def test_a_child_that_was_forked_says_so(engine, coordinator):
    pusher = coordinator([engine()])
    pusher.connect()
    pusher.push("1", lambda: [GOOD])
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            pusher.push("2", lambda: [GOOD])
            text = "pushed"
        except pushrod.RefusedError as error:
            text = str(error)
        pusher.close()
        os.write(write, text.encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as told:
        assert "was forked off" in told.read()
    assert os.waitpid(child, 0)[1] == 0
    assert pusher.push("2", lambda: [GOOD]).outcome == "done"
