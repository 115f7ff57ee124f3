# SPDX-License-Identifier: Apache-2.0
"""Trainers and engines that do not share what both believe they share: case 16."""

import unittest

import harness
from shm_test import ShmCase


class Case16(ShmCase):
    """Memory is found by the id of its place, never by position."""

    def pushed_from(self, hosts, engines):
        return self.pushed_by(*self.model(), hosts, engines)

    def pushed_by(self, folder, digests, hosts, engines):
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

    def test_the_begin_of_an_id_is_not_the_id(self):
        folder, digests = self.model()
        for offered, wanted in ((["U10", "U"], "U1"), (["U1"], "U10")):
            with self.subTest(wanted=wanted):
                engine = self.shm_engine(f"fe-{wanted}", "--host-id", wanted)
                code, _ = self.pushed_by(folder, digests, offered, [engine])
                self.assertEqual(code, 3, self.rank_log(0))
                self.assertEqual(engine.state()["version"], "default")
                for said in (wanted, *offered):
                    self.assertRegex(self.rank_log(0), rf"\b{said}\b")
        engines = [self.shm_engine("both-1", "--host-id", "U1"),
                   self.shm_engine("both-10", "--host-id", "U10")]
        code, _ = self.pushed_by(folder, digests, ["U10", "U1"], engines)
        self.assertEqual(code, 0, self.rank_log(0))
        for engine in engines:
            self.assert_current(engine, "1", digests)


if __name__ == "__main__":
    unittest.main(verbosity=2)
