# SPDX-License-Identifier: Apache-2.0
"""Each promise and ruling names tests that exist, and each kind of failure its case."""

import pathlib
import unittest

import promises

TOP = pathlib.Path(__file__).resolve().parents[2]


def document(name):
    return (TOP / name).read_text(encoding="utf-8")


class Documents(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.tests = promises.all_tests(TOP)

    def test_every_promise_and_ruling_is_held_by_tests(self):
        table = promises.rows(document("docs/failure-model.md"), "## What holds them")
        self.assertEqual(list(promises.faults_of_table(table, self.tests)), [])

    def test_every_promise_is_told(self):
        table = promises.rows(document("docs/failure-model.md"), "## Promises")
        self.assertEqual([row[0] for row in table],
                         [str(number) for number in range(1, promises.PROMISES + 1)])

    def test_every_ruling_is_told(self):
        table = promises.rows(document("docs/rulings.md"), "# Rulings")
        self.assertEqual(list(promises.faults_of_rulings(table)), [])

    def test_every_failure_has_its_case(self):
        table = list(promises.rows(document("README.md"),
                                   "## What fails, what you see, what Pushrod does"))
        self.assertEqual({len(row) for row in table}, {5})
        self.assertEqual(list(promises.faults_of_failures(table, self.tests)), [])


class Finding(unittest.TestCase):
    TESTS = {"A.B", "sim: C", "cases.case_07"}

    def table(self, **changed):
        rows = {**{f"{number} some": "`A.B`" for number in range(1, 11)},
                **{f"P{number}": "`A.B`, `sim: C`" for number in range(1, 45)}}
        rows.update(changed)
        return [[name, held] for name, held in rows.items() if held is not None]

    def faults(self, **changed):
        return list(promises.faults_of_table(self.table(**changed), self.TESTS))

    def test_a_whole_table_has_no_fault(self):
        self.assertEqual(self.faults(P22="not in this build", P17="with the GPU transports"), [])

    def test_a_test_that_is_not_there(self):
        self.assertEqual(self.faults(P3="`A.B`, `A.C`"), ["P3: there is no test A.C"])
        self.assertEqual(self.faults(P3="`sim: D`"), ["P3: there is no test sim: D"])

    def test_a_row_without_a_test(self):
        self.assertEqual(self.faults(P3=""), ["P3: no test is named"])
        self.assertEqual(self.faults(P3="`A.B` and more"), ["P3: 'and more' is no test"])

    def test_a_row_that_is_missing(self):
        self.assertIn("must be 1 to 10", self.faults(P44=None)[0])

    def test_a_failure_without_its_case(self):
        every = " ".join(f"{number:02}" for number in range(1, 31))
        tests = {f"cases.case_{number:02}" for number in range(1, 31)} | self.TESTS

        def faults(*cells):
            return list(promises.faults_of_failures([["it", cell] for cell in cells], tests))

        self.assertEqual(faults(every, "`A.B`"), [])
        self.assertEqual(faults(every, "-"), ["it: no case and no test is named"])
        self.assertEqual(faults(every + " 31"), ["it: there is no test cases.case_31"])
        self.assertEqual(faults(every, "`A.D`"), ["it: there is no test A.D"])
        self.assertEqual(faults(every.replace("12 ", "")), ["case 12 has no row"])

    def test_rulings_that_are_not_told_in_order(self):
        whole = [[f"P{number}"] for number in range(1, 45)]
        self.assertEqual(list(promises.faults_of_rulings(whole)), [])
        self.assertEqual(len(list(promises.faults_of_rulings(whole[1:]))), 1)

    def test_rows_are_those_of_the_first_table_below_a_heading(self):
        text = "# a\n| x |\n|---|\n| 0 |\n## b\nwords\n\n| x | y |\n|---|---|\n| 1 | 2 |\n\n| 3 | 4 |\n"
        self.assertEqual(list(promises.rows(text, "## b")), [["1", "2"]])

    def test_python_tests_carry_file_and_class(self):
        text = "class A(Case):\n    def test_b(self):\n        pass\n\n    def helper(self):\n        pass\n"
        self.assertEqual(promises.python_tests("f", text), {"f.A", "f.A.test_b"})


if __name__ == "__main__":
    unittest.main()
