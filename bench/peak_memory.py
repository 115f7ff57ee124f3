#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Peak memory of the sending rank beyond a push of next to nothing, against its bound.

The bound: buffers x buffer + (buffers + 1) x largest tensor + 16 MiB, whatever the checkpoint's
size. The figure is the kernel's high-water mark of the rank's process (wait4), less that of the
same program pushing a checkpoint of a few bytes.

    python3 bench/peak_memory.py [--program build/bin/pushrod] [--gib 4] [--ranks 1]
"""

import argparse
import json
import os
import pathlib
import struct
import subprocess
import tempfile

MIB = 1 << 20


def write_checkpoint(folder, tensors):
    """A sparse file: the bytes are zeros, which the file system does not store."""
    folder.mkdir()
    header, offset = {}, 0
    for name, count in tensors:
        header[name] = {"dtype": "BF16", "shape": [count], "data_offsets": [offset, offset + 2 * count]}
        offset += 2 * count
    text = json.dumps(header).encode()
    with open(folder / "model.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.truncate(8 + len(text) + offset)
    return offset


def push(program, folder, checkpoint, buffer, buffers, ranks):
    """Peak resident bytes of rank 0."""
    engine = subprocess.Popen([program, "engine", "--port", "0"], stdout=subprocess.PIPE)
    port = json.loads(engine.stdout.readline())["port"]
    config = folder / "push.yaml"
    config.write_text(f"""engines:
  list: [{{url: "http://127.0.0.1:{port}", name: e0}}]
transport: {{kind: tcp, buffer: {buffer // MIB}MiB, buffers: {buffers}}}
metrics: {{listen: ""}}
log: {{level: error}}
""")
    children = []
    for rank in range(ranks):
        environment = dict(os.environ, RANK=str(rank), WORLD_SIZE=str(ranks), LOCAL_RANK=str(rank),
                           MASTER_ADDR="127.0.0.1", MASTER_PORT=str(21000 + os.getpid() % 20000))
        children.append(subprocess.Popen(
            [program, "push", "--config", str(config), "--checkpoint", str(checkpoint),
             "--version", "1"], env=environment, stdout=subprocess.DEVNULL))
    peaks = []
    for child in children:
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        assert child.returncode == 0, child.returncode
        peaks.append(usage.ru_maxrss * 1024)
    engine.kill()
    engine.wait()
    return peaks[0]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", default="build/bin/pushrod")
    parser.add_argument("--gib", type=float, default=4)
    parser.add_argument("--ranks", type=int, default=1)
    arguments = parser.parse_args()
    print(f"{'checkpoint':>12} {'buffer':>8} {'buffers':>7} {'largest':>8} {'peak beyond base':>17} "
          f"{'bound':>9} {'ratio':>6}")
    with tempfile.TemporaryDirectory(prefix="pushrod-bench-") as text:
        folder = pathlib.Path(text)
        write_checkpoint(folder / "tiny", [("model.norm.weight", 8)])
        for index, (gib, buffer, buffers) in enumerate(
                [(arguments.gib / 8, 16 * MIB, 2), (arguments.gib, 16 * MIB, 2),
                 (arguments.gib, 64 * MIB, 2), (arguments.gib, 64 * MIB, 4)]):
            base = push(arguments.program, folder, folder / "tiny", buffer, buffers,
                        arguments.ranks)
            largest = 48 * MIB
            count = max(1, int(gib * 1024 * MIB) // largest)
            checkpoint = folder / f"c{index}"
            total = write_checkpoint(
                checkpoint, [(f"model.layers.{i}.w", largest // 2) for i in range(count)])
            peak = push(arguments.program, folder, checkpoint, buffer, buffers, arguments.ranks)
            bound = buffers * buffer + (buffers + 1) * largest + 16 * MIB
            beyond = peak - base
            print(f"{total / MIB:>8.0f} MiB {buffer // MIB:>4} MiB {buffers:>7} "
                  f"{largest // MIB:>4} MiB {beyond / MIB:>13.1f} MiB {bound / MIB:>5.0f} MiB "
                  f"{beyond / bound:>6.2f}")
            (checkpoint / "model.safetensors").unlink()


if __name__ == "__main__":
    main()
