# SPDX-License-Identifier: Apache-2.0
"""Runs the simulation's corpus and fails when a line of what decides was never reached.

usage: coverage.py PROGRAM GCOV SOURCE=COUNTERS ...
SOURCE is compiled into PROGRAM with gcov's counters, COUNTERS is its .gcda file.
"""

import json
import os
import subprocess
import sys

# Guards against what the code around them excludes; unit tests of each file show that they hold.
GUARDS = (
    'return failed(Status(Code::kInternal, "it is not proved and must not be resumed"));',
    'return failed(Status(Code::kAborted, "this push goes on without it"));',
    'return failed(Status(Code::kInternal, "no such goal"));',
)
# gcov counts the ends of scopes.
NO_CODE = ("}",)


def counters_of(gcov, source, counters):
    """Lines of source as gcov counted them."""
    reply = subprocess.run(
        [gcov, "--json-format", "--stdout", counters],
        check=True, capture_output=True, cwd=os.path.dirname(counters))
    for file in json.loads(reply.stdout)["files"]:
        if file["file"].endswith(source):
            return file["lines"]
    sys.exit(f"gcov knows nothing of {source}")


def missing(gcov, source, counters, text):
    """The lines that were never reached, one text each."""
    counts = {}
    for line in counters_of(gcov, source, counters):
        at = line["line_number"]
        counts[at] = counts.get(at, 0) + line["count"]
    for at, count in sorted(counts.items()):
        code = text[at - 1].strip()
        if count == 0 and code not in GUARDS + NO_CODE:
            yield f"{source}:{at}: never reached: {code}"


def main():
    program, gcov, *pairs = sys.argv[1:]
    pairs = [pair.split("=", 1) for pair in pairs]
    for _, counters in pairs:
        if os.path.exists(counters):
            os.remove(counters)
    failed = subprocess.run([program], check=False).returncode != 0
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    for source, counters in pairs:
        with open(os.path.join(root, source), encoding="utf-8") as file:
            text = file.read().splitlines()
        for each in missing(gcov, source, counters, text):
            print(each)
            failed = True
    sys.exit(1 if failed else 0)


main()
