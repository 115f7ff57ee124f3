# SPDX-License-Identifier: Apache-2.0
"""A trainer's side of the wire formats, written from their description."""

import contextlib
import json
import os
import pathlib
import socket
import struct

CHANNEL = "00112233445566778899aabbccddeeff"
LIMIT = 20


def raw(tensor):
    """A tensor's bytes."""
    import torch

    return bytes(tensor.contiguous().reshape(-1).view(torch.uint8).tolist()) if tensor.numel() else b""


def lists(tensors):
    return {"names": list(tensors),
            "dtype_names": [str(tensor.dtype).removeprefix("torch.") for tensor in tensors.values()],
            "shapes": [list(tensor.shape) for tensor in tensors.values()]}


class Source:
    """Listens for one worker."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.settimeout(LIMIT)
        self.worker = None

    def init_info(self, **changes):
        port = self.listener.getsockname()[1]
        return {"protocol": 1, "sources": [{"src": 0, "address": "127.0.0.1", "port": port}],
                "rank_offset": 1, "world_size": 5, "channel": CHANNEL,
                "packed_buffer_size_bytes": 64} | changes

    def accept(self, answer=0):
        """Takes the worker; its rank."""
        self.worker = self.listener.accept()[0]
        self.worker.settimeout(LIMIT)
        hello = self.worker.recv(32, socket.MSG_WAITALL)
        assert hello[:8] == b"PUSHROD1"
        assert hello[8:24].hex() == CHANNEL
        self.worker.sendall(bytes([answer]))
        return struct.unpack("<I", hello[24:28])[0]

    def frame(self, kind, index, payload=b""):
        self.worker.sendall(struct.pack("<IIQQ", kind, index, len(payload), 0) + payload)

    def send(self, tensors, buffer=64, end=True):
        """All chunks of an update, cut by the packed rule."""
        index, open_chunk = 0, b""
        for tensor in tensors.values():
            open_chunk += raw(tensor)
            if len(open_chunk) > buffer:
                self.frame(1, index, open_chunk)
                index, open_chunk = index + 1, b""
        if open_chunk:
            self.frame(1, index, open_chunk)
            index += 1
        if end:
            self.frame(2, index)

    def closed(self):
        """Whether the worker has closed its connection."""
        with contextlib.suppress(ConnectionResetError):
            return self.worker.recv(1) == b""
        return True

    def close(self):
        self.listener.close()
        if self.worker is not None:
            self.worker.close()


class Segment:
    """A chunk in shared memory."""

    def __init__(self, name, tensors):
        self.tensors, self.name = tensors, f"/pushrod.{name}.{os.getpid()}"
        self.path = pathlib.Path("/dev/shm") / self.name[1:]
        self.path.write_bytes(b"".join(raw(tensor) for tensor in tensors.values()))

    def update_info(self, host=None):
        host = host or pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        sizes = [len(raw(tensor)) for tensor in self.tensors.values()]
        return lists(self.tensors) | {
            "tensor_sizes": sizes,
            "segments": {host: {"name": self.name, "offset": 0, "bytes": sum(sizes)}}}

    def close(self):
        self.path.unlink()


def text(info):
    return json.dumps(info)
