# SPDX-License-Identifier: Apache-2.0
"""One rank pushes to a reference engine: what it may yield, and what it gets back."""

import json
import logging
import threading

import numpy
import pytest
import torch

import pushrod
import support

DTYPES = [
    torch.bool,
    torch.uint8,
    torch.uint16,
    torch.uint32,
    torch.uint64,
    torch.int8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.float16,
    torch.bfloat16,
    torch.float32,
    torch.float64,
    torch.float8_e4m3fn,
    torch.float8_e5m2,
    torch.float8_e8m0fnu,
]


def bytes_of(tensor):
    """The row-major bytes of a torch tensor, read without Pushrod."""
    return tensor.detach().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()


def made(dtype, shape, seed=0):
    count = int(numpy.prod(shape)) * dtype.itemsize
    raw = numpy.random.default_rng(seed).integers(0, 2 if dtype == torch.bool else 256, count, numpy.uint8)
    return torch.from_numpy(raw).view(dtype).reshape(shape)


def push_one(coordinator, engine, tensors, version="1", **arguments):
    """Pushes {name: anything} and returns {name: sha256} as the engine has them."""
    report = coordinator.push(version, lambda: iter(tensors.items()), **arguments)
    assert report.outcome == "done"
    state = engine.state()
    assert state["version"] == version
    return state["weights"]


def test_every_dtype_of_torch(engine, coordinator):
    one = engine()
    tensors = {f"w.{index}": made(dtype, (5, 3), index) for index, dtype in enumerate(DTYPES)}
    weights = push_one(coordinator([one]), one, tensors)
    assert weights == {name: support.sha(bytes_of(tensor)) for name, tensor in tensors.items()}


def test_every_layout_of_torch(engine, coordinator):
    one = engine()
    base = made(torch.float32, (12, 10))
    tensors = {
        "transposed": base.t(),
        "strided": base[::3, 1::2],
        "expanded": base[:, :1].expand(12, 7),
        "offset": base[4:, 3:],
        "scalar": base[2, 2],
        "empty": base[:0],
        "permuted": made(torch.bfloat16, (2, 3, 4)).permute(2, 0, 1),
        "parameter": torch.nn.Parameter(base * 2),
        "negated": torch.complex(base, base).conj().imag,
    }
    assert tensors["negated"].is_neg()
    expected = {name: support.sha(bytes_of(tensor.resolve_neg())) for name, tensor in tensors.items()}
    assert push_one(coordinator([one]), one, tensors) == expected


def test_numpy_arrays(engine, coordinator):
    one = engine()
    base = numpy.arange(60, dtype=numpy.int32).reshape(6, 10)
    records = numpy.zeros(4, dtype=[("a", numpy.uint8), ("b", numpy.float32)])
    records["b"] = [1, 2, 3, 4]
    tensors = {
        "plain": base,
        "transposed": base.T,
        "reversed": base[::-1, ::2],
        "field": records["b"],
        "bool": base % 2 == 0,
        "half": base.astype(numpy.float16),
        "scalar": numpy.array(7.0),
        "readonly": numpy.frombuffer(b"abcd", dtype=numpy.uint8),
    }
    expected = {
        name: support.sha(numpy.ascontiguousarray(array).tobytes()) for name, array in tensors.items()
    }
    assert push_one(coordinator([one]), one, tensors) == expected


def test_bfloat16_of_numpy_extensions(engine, coordinator):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    one = engine()
    array = numpy.arange(6).astype(ml_dtypes.bfloat16)
    assert push_one(coordinator([one]), one, {"w": array}) == {"w": support.sha(array.tobytes())}


class Exported:
    """Nothing but DLPack."""

    def __init__(self, tensor):
        self.tensor = tensor

    def __dlpack__(self, **arguments):
        return self.tensor.__dlpack__(**arguments)

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()


def test_dlpack(engine, coordinator):
    one = engine()
    sources = [
        made(torch.float32, (4, 6)).t(),
        made(torch.bfloat16, (3,)),
        made(torch.bool, (9,)),
        made(torch.int64, (2, 2)),
    ]
    tensors = {f"w.{index}": Exported(source) for index, source in enumerate(sources)}
    expected = {f"w.{index}": support.sha(bytes_of(source)) for index, source in enumerate(sources)}
    assert push_one(coordinator([one]), one, tensors) == expected


def test_a_tensor_is_read_before_the_next_is_asked_for(engine, coordinator):
    one = engine()

    def weights():
        buffer = torch.empty(1000)
        for index in range(20):
            buffer.fill_(index)
            yield f"w.{index}", buffer

    coordinator([one]).push("1", weights)
    expected = {f"w.{i}": support.sha(bytes_of(torch.full((1000,), float(i)))) for i in range(20)}
    assert one.state()["weights"] == expected


def test_a_tensor_that_nobody_else_holds_is_kept(engine, coordinator):
    one = engine()

    def weights():
        for index in range(20):
            yield f"w.{index}", torch.full((50000,), float(index))  # freed here but for Pushrod
            torch.full((50000,), -1.0)

    coordinator([one]).push("1", weights)
    expected = {f"w.{i}": support.sha(bytes_of(torch.full((50000,), float(i)))) for i in range(20)}
    assert one.state()["weights"] == expected


def test_the_first_push_declares_by_one_extra_pass(engine, coordinator):
    one = engine()
    passes = []

    def weights():
        passes.append(1)
        yield "w", torch.ones(3)

    pusher = coordinator([one])
    pusher.push("1", weights)
    assert len(passes) == 2
    pusher.push("2", weights)
    assert len(passes) == 3


def test_a_manifest_saves_the_extra_pass_and_fixes_the_dtype(engine, coordinator):
    one = engine()
    passes = []

    def weights():
        passes.append(1)
        yield "w", torch.ones(3)

    specs = [pushrod.TensorSpec("w", torch.bfloat16, torch.Size([3]))]
    assert specs == [pushrod.TensorSpec("w", "bfloat16", (3,))]
    report = coordinator([one]).push("1", weights, manifest=specs)
    assert len(passes) == 1
    assert report.casts == 1
    assert one.state()["weights"]["w"] == support.sha(bytes_of(torch.ones(3, dtype=torch.bfloat16)))


def test_manifest_of_tells_what_a_pass_yields(engine, coordinator):
    found = pushrod.manifest_of(lambda: [("a", torch.ones(2, 3)), ("b", numpy.zeros(4, numpy.int8))])
    assert found == [pushrod.TensorSpec("a", "float32", (2, 3)), pushrod.TensorSpec("b", "int8", (4,))]
    with pytest.raises(ZeroDivisionError):
        pushrod.manifest_of(lambda: ((str(1 // i), torch.ones(1)) for i in [1, 0]))


def test_the_report(engine, coordinator):
    one = engine("rollout", "--world-size", "2")
    pusher = coordinator([one])
    report = pusher.push("v1", lambda: [("w", torch.ones(4))])
    assert (report.version, report.outcome, report.attempts, report.resent) == ("v1", "done", 1, False)
    assert (report.bytes, report.tensors, report.ranks, report.casts) == (16, 1, 1, 0)
    assert report.first_cause is None
    assert report.dropped_engines == []
    assert set(report.phases) >= {"connect", "stream", "verdict"}
    engine_report = report.engines[0]
    assert (engine_report.name, engine_report.outcome, engine_report.version) == ("rollout", "current", "v1")
    assert engine_report.paused is False
    assert engine_report.bytes == 32
    as_dict = report.to_dict()
    assert as_dict["engines"][0]["name"] == "rollout"
    as_dict["engines"].clear()
    assert report.to_dict()["engines"] != []
    assert pusher.last_report == report


def test_a_failed_push_raises_with_its_report(engine, coordinator):
    one = engine()
    one.faults({"route": "update_weights", "nth": "every", "do": "status", "status": 500})
    pusher = coordinator([one])
    with pytest.raises(pushrod.PushError, match="update_weights") as raised:
        pusher.push("1", lambda: [("w", torch.ones(4))])
    report = raised.value.report
    assert report is not None
    assert report.outcome == "failed"
    assert report.attempts == 2
    assert report.first_cause.engine == "engine-0"
    assert report.first_cause.phase == "stream"
    assert raised.value.code == report.first_cause.code
    assert report.engines[0].paused is True
    assert isinstance(raised.value, pushrod.Error)


def test_a_fault_that_passes_is_recovered_by_a_second_pass(engine, coordinator):
    one = engine()
    one.faults({"route": "update_weights", "nth": 1, "do": "status", "status": 500})
    cleaned = []

    def weights():
        try:
            for index in range(50):
                yield f"w.{index}", torch.full((2000,), float(index))
        finally:
            cleaned.append(1)

    specs = [pushrod.TensorSpec(f"w.{index}", "float32", (2000,)) for index in range(50)]
    report = coordinator([one]).push("1", weights, manifest=specs)
    assert report.outcome == "recovered"
    assert report.resent
    assert len(cleaned) == 2
    assert one.state()["weights"]["w.49"] == support.sha(bytes_of(torch.full((2000,), 49.0)))


def test_progress_and_logging(engine, coordinator, caplog):
    one = engine()
    one.faults({"route": "update_weights", "nth": 1, "do": "delay", "seconds": 1.0})
    seen = []
    with caplog.at_level(logging.DEBUG, logger="pushrod"):
        coordinator([one], log={"level": "debug"}).push(
            "9",
            lambda: [("w", torch.ones(4, dtype=torch.float64))],
            progress=seen.append,
            manifest=[pushrod.TensorSpec("w", "float32", (4,))],
        )
    assert seen
    assert {each.total_tensors for each in seen} <= {0, 1}
    assert "stream" in {each.phase for each in seen}
    records = [record for record in caplog.records if record.name == "pushrod"]
    assert any("cast" in record.getMessage() for record in records)
    assert {record.pushrod_job for record in records} == {"pushrod"}
    assert {record.pushrod_rank for record in records} == {0}


def test_a_progress_function_that_raises_harms_nothing(engine, coordinator, monkeypatch):
    caught = []
    monkeypatch.setattr("sys.unraisablehook", caught.append)
    one = engine()
    one.faults({"route": "update_weights", "nth": 1, "do": "delay", "seconds": 0.5})

    def progress(now):
        raise ValueError("not now")

    assert coordinator([one]).push("1", lambda: [("w", torch.ones(4))], progress=progress).outcome == "done"
    assert "not now" in str(caught[0].exc_value)


def test_other_threads_run_during_a_push(engine, coordinator):
    """The GIL is free while an engine does not answer."""
    one = engine()
    one.faults({"route": "pause", "nth": 1, "do": "delay", "seconds": 1.0})
    pusher = coordinator([one])
    outcome = []
    thread = threading.Thread(target=lambda: outcome.append(pusher.push("1", lambda: [("w", torch.ones(4))])))
    thread.start()
    support.harness.wait_until(lambda: one.calls("pause"), 20, "the pause")
    assert not outcome
    thread.join(30)
    assert outcome[0].outcome == "done"


def test_the_list_of_engines_may_change(engine, coordinator):
    first, second = engine("first"), engine("second")
    pusher = coordinator([first])
    pusher.push("1", lambda: [("w", torch.ones(4))])
    pusher.set_engines([second.url, {"url": first.url, "name": "first"}])
    report = pusher.push("2", lambda: [("w", torch.ones(4))])
    assert {each.url for each in report.engines} == {first.url, second.url}
    assert second.state()["version"] == first.state()["version"] == "2"
    with pytest.raises(pushrod.ConfigError, match="url"):
        pusher.set_engines([{"name": "nowhere"}])
    with pytest.raises(pushrod.RefusedError, match="shm"):
        pusher.set_engines([{"url": first.url, "transport": "shm"}])


def test_two_coordinators_in_one_process(engine, coordinator):
    first, second = engine("first"), engine("second")
    one, other = coordinator([first]), coordinator([second])
    outcomes = []

    def run(pusher, version):
        for step in range(3):
            outcomes.append(pusher.push(f"{version}-{step}", lambda: [("w", torch.ones(5000))]).outcome)

    threads = [threading.Thread(target=run, args=each) for each in ((one, "a"), (other, "b"))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert outcomes == ["done"] * 6
    assert first.state()["version"] == "a-2"
    assert second.state()["version"] == "b-2"


def test_a_draft_model_in_the_same_push(engine, coordinator):
    one = engine("one", "--profile", "0.32")
    support.harness.request(one.port, "POST", "/__ctl", {"set": {"draft_model": True}})
    passes = []

    def draft():
        passes.append(1)
        yield "draft.w", torch.zeros(3)

    pusher = coordinator([one])
    for version, count in (("1", 2), ("2", 3)):
        report = pusher.push(version, lambda: [("w", torch.ones(4))], draft_weights=draft)
        assert report.outcome == "done"
        assert len(passes) == count
        assert one.calls("start_draft_weight_update")

    def broken():
        raise LookupError("no draft")

    with pytest.raises(pushrod.Error, match="no draft") as raised:
        pusher.push("3", lambda: [("w", torch.ones(4))], draft_weights=broken)
    assert isinstance(raised.value.__cause__, LookupError)


def test_shared_memory(engine, coordinator):
    one = engine("one", backend="shm")
    tensor = made(torch.bfloat16, (100, 30))
    assert push_one(coordinator([one]), one, {"w": tensor.t()}) == {"w": support.sha(bytes_of(tensor.t()))}


def test_a_file_as_configuration(engine, tmp_path):
    one = engine()
    path = tmp_path / "push.yaml"
    made = {**support.config([one]), "metrics": {"listen": "127.0.0.1:0"}}
    path.write_text(json.dumps(made))  # which is YAML
    with pushrod.Coordinator(path, rank=0, world_size=1, store=f"file://{tmp_path}/store") as pusher:
        pusher.connect()
        assert (pusher.rank, pusher.world_size) == (0, 1)
        assert pusher.metrics_address.startswith("127.0.0.1:")
        assert pusher.push("1", lambda: [("w", torch.ones(4))]).outcome == "done"
    pusher.close()
    with pytest.raises(pushrod.RefusedError, match="closed"):
        pusher.push("2", lambda: [("w", torch.ones(4))])
