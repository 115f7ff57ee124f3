# SPDX-License-Identifier: Apache-2.0
"""Trainers and engines that do not share what both believe they share: case 16."""

import unittest

import harness
from shm_test import ShmCase


class Case16(ShmCase):
    """Memory is found by the id of its place, never by position."""

    def pushed_from(self, hosts, engines):
        folder, digests = self.model()
        ranks = self.ranks(self.shm_config(engines), folder, "1", len(hosts), hosts=hosts)
        codes = {rank.wait(timeout=30 * harness.SLOW) for rank in ranks}
        self.assertEqual(len(codes), 1, self.rank_log(0))
        return codes.pop(), digests

    def test_an_engine_asks_for_what_nobody_offers(self):
        engines = [self.shm_engine("fe-a", "--host-id", "U0"),
                   self.shm_engine("fe-b", "--host-id", "U4", "--world-size", "2")]
        code, _ = self.pushed_from(["U0", "U1", "U2", "U3"], engines)
        self.assertEqual(code, 3, self.rank_log(0))
        # What it wanted and what was offered; a resend could not help.
        for said in ("U4", "U0", "U1", "U2", "U3"):
            self.assertIn(said, self.rank_log(0))
        self.assertEqual(len(engines[1].calls("update_weights")), 1)

    def test_the_order_does_not_matter(self):
        engines = [self.shm_engine("fe-a", "--host-id", "U1"),
                   self.shm_engine("fe-b", "--host-id", "U0")]
        code, digests = self.pushed_from(["U0", "U1"], engines)
        self.assertEqual(code, 0, self.rank_log(0))
        for engine in engines:
            self.assert_current(engine, "1", digests)

    def test_letter_case_counts_on_both_sides(self):
        engine = self.shm_engine("fe-a", "--host-id", "u0")
        code, _ = self.pushed_from(["U0"], [engine])
        self.assertEqual(code, 3, self.rank_log(0))
        self.assertIn("u0", self.rank_log(0))


if __name__ == "__main__":
    unittest.main(verbosity=2)
