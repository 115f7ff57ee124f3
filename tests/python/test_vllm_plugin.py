# SPDX-License-Identifier: Apache-2.0
"""The vLLM plug-in with stand-ins for vLLM's own parts and for the trainer."""

import os
import signal
import threading

import pytest
import torch

import fake_vllm
import wire

RELEASES = [22, 24, 26, 27, 28, 32]


def tensors():
    """One of each kind that is easy to get wrong."""
    torch.manual_seed(1)
    return {
        "byte": torch.arange(3, dtype=torch.uint8),  # All that follows is not aligned in the chunk.
        "half": torch.randn(3, 5).to(torch.bfloat16),
        "scalar": torch.tensor(2.5, dtype=torch.float64),
        "nothing": torch.empty(0, 4),
        "flags": torch.tensor([True, False, True]),
        "eight": torch.arange(6, dtype=torch.uint8).view(torch.float8_e4m3fn).reshape(2, 3),
        "wide": torch.arange(40, dtype=torch.int64),
        "words": torch.arange(4, dtype=torch.int32).view(torch.uint32),
        "last": torch.empty(0, dtype=torch.float16),
    }


def same(got, wanted):
    assert list(got) == list(wanted)
    for name, tensor in wanted.items():
        assert got[name].dtype == tensor.dtype, name
        assert got[name].shape == tensor.shape, name
        assert wire.raw(got[name]) == wire.raw(tensor), name
        assert got[name].data_ptr() % 8 == 0, name


class Rig:
    """An engine of one release with its model."""

    def __init__(self, kind, release, **place):
        self.calls, self.factory = fake_vllm.install(release)
        self.release, self.model = release, fake_vllm.Model()
        self.engine = fake_vllm.engine(kind, release, self.model, **place)

    def init(self, info):
        self.engine.init_transfer_engine(self.engine.parse_init_info(info))

    def update(self, info):
        typed = self.engine.parse_update_info(info)
        if self.release < 25:
            self.engine.receive_weights(typed, load_weights=self.model.load_weights)
        else:
            self.engine.receive_weights(typed)


class Beside(threading.Thread):
    """Does something beside the test, and fails it when that fails."""

    def __init__(self, work):
        super().__init__(daemon=True)
        self.work, self.error = work, None
        self.start()

    def run(self):
        try:
            self.work()
        except BaseException as error:
            self.error = error

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.join(timeout=wire.LIMIT)
        assert not self.is_alive()
        assert self.error is None


@pytest.fixture
def source():
    made = wire.Source()
    yield made
    made.close()


def joined(source, release=32, **place):
    rig = Rig("TcpEngine", release, **place)
    with Beside(source.accept):
        rig.init(source.init_info())
    return rig


def test_both_backends_are_registered_and_only_once():
    _, factory = fake_vllm.install(32)
    import pushrod.vllm

    pushrod.vllm.register()
    pushrod.vllm.register()
    assert factory._registry == {"pushrod_tcp": ("pushrod.vllm.engines", "TcpEngine"),
                                 "pushrod_shm": ("pushrod.vllm.engines", "ShmEngine")}


@pytest.mark.parametrize("release", RELEASES)
def test_tcp_hands_over_every_tensor(source, release):
    rig, sent = joined(source, release), tensors()
    with Beside(lambda: source.send(sent)):
        rig.update(wire.lists(sent))
    rig.engine.shutdown()
    source.close()
    # Nothing of what the model keeps goes with the connection.
    same(rig.model.got, sent)


def test_a_second_update_goes_over_the_same_connection(source):
    rig = joined(source)
    for _ in range(2):
        with Beside(lambda: source.send(tensors())):
            rig.update(wire.lists(tensors()))
        same(rig.model.got, tensors())


def test_workers_are_counted_over_all_replicas(source):
    rig = Rig("TcpEngine", 32, index=1, rank=1)
    ranks = []
    with Beside(lambda: ranks.append(source.accept())):
        rig.init(source.init_info())
    assert ranks == [4]  # offset 1, and 1 x 2 + 1


@pytest.mark.parametrize("release", [24, 32])
def test_what_the_loader_refuses_ends_the_connection(source, release):
    rig, sent = joined(source, release), tensors()
    rig.model.refuse = "half"
    with Beside(lambda: source.send(sent, end=False)):
        with pytest.raises(RuntimeError, match=r"the model's loader refused .*KeyError: 'half'") as kept:
            rig.update(wire.lists(sent))
        assert source.closed()
    assert kept is not None  # Its traceback lives, and keeps nothing open.
    with pytest.raises(RuntimeError, match="not initialized"):
        rig.update(wire.lists(sent))


@pytest.mark.parametrize(("kind", "payload", "text"), [
    (3, b"rank 1 threw", "aborted by the source: rank 1 threw"),
    (2, b"", "ended early"),
    (1, b"short", "has 5 bytes"),
])
def test_what_the_source_does_wrong_is_told(source, kind, payload, text):
    rig = joined(source)
    with Beside(lambda: source.frame(kind, 0, payload)), pytest.raises(RuntimeError, match=text):
        rig.update(wire.lists(tensors()))
    assert source.closed()


def test_a_source_that_dies_ends_the_update(source):
    rig = joined(source)
    with (Beside(lambda: (source.send(tensors(), end=False), source.close())),
          pytest.raises(RuntimeError, match="the source closed the connection")):
        rig.update(wire.lists(tensors()))


def test_unknown_keys_are_refused_and_end_the_connection(source):
    rig = joined(source)
    with pytest.raises(ValueError, match=r"Invalid update_info .* unexpected keyword argument 'bogus'"):
        rig.update(wire.lists(tensors()) | {"bogus": 1})
    assert source.closed()
    with pytest.raises(ValueError, match=r"Invalid init_info .* unexpected keyword argument 'bogus'"):
        rig.init(source.init_info(bogus=1))


def test_a_refused_hello_fails_the_init(source):
    rig = Rig("TcpEngine", 32)
    with Beside(lambda: source.accept(1)), pytest.raises(RuntimeError, match="unknown channel"):
        rig.init(source.init_info())


def test_shutdown_can_be_repeated_and_followed_by_an_init(source):
    rig = joined(source)
    rig.engine.shutdown()
    rig.engine.shutdown()
    assert source.closed()
    with Beside(source.accept):
        rig.init(source.init_info())
    with Beside(lambda: source.send(tensors())):
        rig.update(wire.lists(tensors()))
    same(rig.model.got, tensors())


def test_a_signal_ends_a_wait_for_the_source(source):
    rig, loading = joined(source), threading.Event()
    rig.model.load_weights = lambda weights: loading.set()
    sent = {"one": torch.zeros(65, dtype=torch.uint8), "two": torch.zeros(65, dtype=torch.uint8)}

    def interrupt():
        source.frame(1, 0, wire.raw(sent["one"]))
        assert loading.wait(wire.LIMIT)
        os.kill(os.getpid(), signal.SIGINT)

    with Beside(interrupt), pytest.raises(KeyboardInterrupt):
        rig.update(wire.lists(sent))
    assert source.closed()


def test_a_chunk_is_read_while_the_one_before_is_loaded(source):
    """The loader of each chunk goes on only when the source has sent the next one, which no buffer
    of a socket could hold."""
    rig, chunks = joined(source), 3
    payload = bytes(range(256)) * (1 << 16)
    begun = [threading.Event() for _ in range(chunks)]
    load, loaded = rig.model.load_weights, iter(range(chunks))

    def slow(weights):
        following = next(loaded) + 1
        assert following == chunks or begun[following].wait(wire.LIMIT)
        load(weights)

    def send():
        for index in range(chunks):
            source.frame(1, index, payload)
            begun[index].set()
        source.frame(2, chunks)

    rig.model.load_weights = slow
    names = [f"t{index}" for index in range(chunks)]
    with Beside(send):
        rig.update({"names": names, "dtype_names": ["uint8"] * chunks,
                    "shapes": [[len(payload)]] * chunks})
    assert [bytes(rig.model.got[name].numpy()) for name in names] == [payload] * chunks


@pytest.mark.parametrize("release", [26, 28, 32])
def test_a_session_rebuilds_the_model_and_its_packed_heads(source, release):
    rig = joined(source, release)
    rig.engine.start_weight_update()
    with Beside(lambda: source.send(tensors())):
        rig.update(wire.lists(tensors()))
    rig.engine.finish_weight_update()
    calls = [call for call in rig.calls if call not in ("config begins", "config ends")]
    parts = ["parts begins", "parts ends"] if release >= 27 else []
    assert calls == ["reload begins", *parts, "reload ends", ("packed", rig.model.head)]


def test_experts_that_got_weights_have_a_new_kernel_and_others_their_old_one(source):
    rig = joined(source)
    method = rig.model.experts.quant_method
    for made, wanted in (("second", "second"), (None, "second"), ("third", "third")):
        rig.engine.start_weight_update()
        assert method.moe_kernel is None
        # vLLM makes one when the layer is complete, and packs with it.
        method.moe_kernel = made
        rig.engine.finish_weight_update()
        assert method.moe_kernel == wanted


def test_experts_keep_their_kernel_over_sessions_that_failed(source):
    rig = joined(source)
    rig.engine.start_weight_update()
    rig.engine.start_weight_update()
    rig.engine.finish_weight_update()
    assert rig.model.experts.quant_method.moe_kernel == "first"


def test_the_model_is_the_one_of_the_session(source):
    rig, draft = joined(source), fake_vllm.Model()
    rig.engine.model = draft
    with Beside(lambda: source.send(tensors())):
        rig.update(wire.lists(tensors()))
    same(draft.got, tensors())
    assert rig.model.got == {}


@pytest.mark.parametrize("release", RELEASES)
def test_shm_copies_the_chunk_out(release):
    rig, sent = Rig("ShmEngine", release), tensors()
    segment = wire.Segment("copied", sent)
    try:
        rig.init({"protocol": 1, "packed": True})
        rig.update(segment.update_info())
        # The trainer may write the next chunk now.
        segment.path.write_bytes(b"\xff" * segment.path.stat().st_size)
        same(rig.model.got, sent)
    finally:
        segment.close()


def test_shm_names_its_host_when_it_finds_no_segment():
    rig = Rig("ShmEngine", 32)
    segment = wire.Segment("elsewhere", tensors())
    try:
        rig.init({"protocol": 1, "packed": True})
        with pytest.raises(RuntimeError, match=r"no shared memory segment for host .*; offered: elsewhere"):
            rig.update(segment.update_info(host="elsewhere"))
    finally:
        segment.close()


def test_shm_refuses_a_segment_that_is_too_short():
    rig = Rig("ShmEngine", 32)
    segment = wire.Segment("short", tensors())
    try:
        rig.init({"protocol": 1, "packed": True})
        os.truncate(segment.path, 5)
        with pytest.raises(RuntimeError, match="has 5 bytes"):
            rig.update(segment.update_info())
    finally:
        segment.close()
