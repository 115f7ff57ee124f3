# SPDX-License-Identifier: Apache-2.0
"""Where the time of a push of 1 GiB into a real vLLM server on the CPU goes, as its worker tells.

    python3 bench/vllm_push.py PROGRAM WHEEL FOLDER [--transport tcp]

PROGRAM is the built command, FOLDER the environment of tests/real_vllm. Prints for each push what the
worker waited for our code, what vLLM's loader took, and their ratio. The first push is not counted: its
memory is new.
"""

import argparse
import pathlib
import re
import sys

TOP = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TOP / "tests/real_vllm"))

import environment  # noqa: E402
import model  # noqa: E402
import pushing  # noqa: E402
import server  # noqa: E402

# 1.01 GiB in bfloat16, of matrices as large as those of models with 7e9 parameters.
model.LAYERS, model.HIDDEN, model.HEADS, model.HEAD_SIZE, model.INNER = 4, 4096, 32, 128, 5504
PUSHES = 4
SPENT = re.compile(r"Pushrod: .* ([\d.]+) MB, ([\d.]+) s waiting for them, ([\d.]+) s in the model's loader, "
                   r"([\d.]+) s to finish")


def main(options):
    folder = options.folder.absolute()
    python = environment.ensure(folder)
    environment.add(folder, options.wheel)
    model.COMMON |= {"num_hidden_layers": model.LAYERS, "hidden_size": model.HIDDEN,
                     "num_attention_heads": model.HEADS, "num_key_value_heads": model.HEADS,
                     "head_dim": model.HEAD_SIZE, "intermediate_size": model.INNER}
    checkpoint = model.write(folder / "large")
    running = server.Server(python, folder, checkpoint, 1, f"pushrod_{options.transport}", name="large",
                            extra=["--max-model-len", "128"])
    with running:
        running.wait_ready()
        trainer = pushing.Trainer(options.program, folder / "trainer", [running.port], options.transport,
                                  transport={"buffer": "256MiB"})
        for number in range(PUSHES):
            report = trainer.push(checkpoint, f"v{number}").good().report
            megabytes, waited, loaded, finished = map(float, SPENT.findall(
                running.log_path.read_text(errors="replace"))[-1])
            print(f"{megabytes:.0f} MB by {options.transport} in {report['duration_s']:.2f} s: "
                  f"{waited:.2f} s of ours, {loaded + finished:.2f} s of vLLM's, "
                  f"ratio {waited / (loaded + finished):.3f}"
                  f"{' (not counted)' if number == 0 else ''}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("wheel", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--transport", choices=["tcp", "shm"], default="tcp")
    main(parser.parse_args())
