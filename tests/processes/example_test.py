# SPDX-License-Identifier: Apache-2.0
"""The example that README.md shows, with the configuration beside it, as a newcomer runs it."""

import hashlib
import os
import pathlib
import struct
import unittest

import harness

PROGRAM = os.path.abspath(os.environ.get("PUSHROD_EXAMPLE", "build/bin/cpp_trainer"))
CONFIG = pathlib.Path(__file__).resolve().parents[2] / "examples/pushrod.yaml"
ELEMENTS = {"model.embed_tokens.weight": 256, "model.layers.0.mlp.down_proj.weight": 128,
            "model.norm.weight": 8, "lm_head.weight": 256}


def digests(step):
    """The weights after `step` training steps: element i has grown from i by one per step."""
    return {name: hashlib.sha256(struct.pack(f"<{count}f", *range(step, step + count))).hexdigest()
            for name, count in ELEMENTS.items()}


class CppTrainer(harness.Case):
    def setUp(self):
        super().setUp()
        self.rollouts = [self.engine("rollout-0", "--world-size", "2"), self.engine("rollout-1")]

    def example_config(self):
        """The shipped configuration at the ports of this test, without a metrics port."""
        text = CONFIG.read_text()
        for port, engine in zip(("8101", "8102"), self.rollouts):
            self.assertIn(f"http://127.0.0.1:{port}", text)
            text = text.replace(f"http://127.0.0.1:{port}", engine.url)
        path = self.folder / "pushrod.yaml"
        path.write_text(text + 'metrics: {listen: ""}\n')
        return path

    def train(self, ranks, steps):
        """Starts the example's ranks."""
        self.launch([[PROGRAM, str(self.example_config()), str(steps)]] * ranks)

    def check_training(self, ranks):
        self.train(ranks, steps=2)
        for rank in range(ranks):
            for version in ("1", "2"):
                self.assert_ended(rank, 0, f"push of version '{version}': done")
        for engine in self.rollouts:
            self.assert_current(engine, "2", digests(2))
            self.assertEqual([each["version"] for each in engine.state()["resumes"]], ["1", "2"])

    def test_one_rank_pushes_after_every_step(self):
        self.check_training(ranks=1)

    def test_two_ranks_push_together(self):
        self.check_training(ranks=2)

    def test_a_rank_that_leaves_first_takes_no_verdict_with_it(self):
        # Every rank ends its process as soon as it has the last verdict, in whatever order.
        for _ in range(10):
            self.train(ranks=4, steps=1)
            for process in self.children:
                self.assertEqual(process.wait(timeout=30 * harness.SLOW), 0,
                                 [self.rank_log(rank) for rank in range(4)])

    def test_a_failed_push_ends_every_rank_with_its_cause(self):
        self.rollouts[1].faults({"route": "pause", "nth": 1, "do": "status", "status": 400,
                                 "body": '{"error":{"message":"not now"}}'})
        self.train(ranks=2, steps=2)
        for rank in range(2):
            self.assert_ended(rank, 1, "not now")
        for engine in self.rollouts:
            self.assertEqual(engine.calls("start_weight_update"), [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
