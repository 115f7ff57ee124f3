# SPDX-License-Identifier: Apache-2.0
"""Reads which tests the documents name for each promise, ruling and failure, and finds those tests."""

import re

# What a row may say in the place of tests, until the thing itself is in the build.
LATER = {"not in this build", "with the GPU transports"}
PROMISES, RULINGS, CASES = 10, 44, 30

NAMED = re.compile(r"`([^`]+)`")
CASE = re.compile(r"cases\.case_(\d\d)$")
SUITE = re.compile(r"^\s*TEST(?:_F|_P)?\(\s*(\w+)\s*,\s*(\w+)\s*\)", re.MULTILINE)
VARIANT = re.compile(r'\.name = "(\w+)"')
KEY = re.compile(r"(P\d+|\d+)\b")


def rows(document, heading):
    """The cells of each row of the table below a heading, without its two head lines."""
    lines = iter(f"\n{document}".split(f"\n{heading}\n", 1)[1].splitlines())
    for line in lines:
        if line.startswith("|"):
            break
    next(lines)
    for line in lines:
        if not line.startswith("|"):
            return
        yield [cell.strip() for cell in line.strip("|").split("|")]


def python_tests(file, text):
    """FILE.CLASS and FILE.CLASS.TEST of one Python file."""
    found, name = set(), None
    for line in text.splitlines():
        if begun := re.match(r"class (\w+)", line):
            name = f"{file}.{begun[1]}"
            found.add(name)
        elif name and (test := re.match(r"    def (test_\w+)", line)):
            found.add(f"{name}.{test[1]}")
    return found


def all_tests(top):
    """Every name by which a document may speak of a test below `top`/tests."""
    found = set()
    for path in (top / "tests").rglob("*.cc"):
        text = path.read_text(encoding="utf-8")
        found.update(f"{suite}.{name}" for suite, name in SUITE.findall(text))
        if path.parent.name == "known_bad":
            found.update(f"sim: {name}" for name in VARIANT.findall(text))
    for path in (top / "tests").rglob("*.py"):
        found.update(python_tests(path.stem, path.read_text(encoding="utf-8")))
    entries = (top / "tests/cases/CMakeLists.txt").read_text(encoding="utf-8")
    found.update(f"cases.case_{number}"
                 for number in re.findall(r"^pushrod_case\(\w+ (\d\d) ", entries, re.MULTILINE))
    return found


def faults_of_table(table, tests):
    """What is wrong with the table of what holds the promises and rulings."""
    wanted = [str(number) for number in range(1, PROMISES + 1)]
    wanted += [f"P{number}" for number in range(1, RULINGS + 1)]
    keys = []
    for name, held in table:
        key = KEY.match(name)
        keys.append(key[1] if key else name)
        named = NAMED.findall(held)
        if held in LATER:
            continue
        if not named:
            yield f"{name}: no test is named"
        if rest := NAMED.sub("", held).replace(",", "").strip():
            yield f"{name}: '{rest}' is no test"
        yield from (f"{name}: there is no test {test}" for test in named if test not in tests)
    if keys != wanted:
        yield f"the rows are {', '.join(keys)}, and must be 1 to {PROMISES} and P1 to P{RULINGS}"


def faults_of_failures(table, tests):
    """What is wrong with the README's table of failures: each row has its case or test, and each
    case its row."""
    seen = set()
    for row in table:
        what, held = row[0], row[-1]
        numbers = re.findall(r"\b\d\d\b", NAMED.sub("", held))
        seen.update(numbers)
        named = NAMED.findall(held) + [f"cases.case_{number}" for number in numbers]
        if not named:
            yield f"{what}: no case and no test is named"
        yield from (f"{what}: there is no test {test}" for test in named if test not in tests)
    for number in range(1, CASES + 1):
        if f"{number:02}" not in seen:
            yield f"case {number:02} has no row"


def faults_of_rulings(table):
    """Whether each ruling is told, once and in order."""
    told = [key for row in table for key in re.findall(r"P\d+", row[0])]
    if told != [f"P{number}" for number in range(1, RULINGS + 1)]:
        yield f"the rulings told are {', '.join(told)}"
