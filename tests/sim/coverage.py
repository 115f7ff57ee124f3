# SPDX-License-Identifier: Apache-2.0
"""Runs the simulation's corpus and fails when a line of what decides was never reached, or a condition
there had one outcome only.

usage: coverage.py PROGRAM GCOV SOURCE=COUNTERS ...
SOURCE is compiled into PROGRAM with gcov's counters, COUNTERS is its .gcda file.
"""

import json
import os
import subprocess
import sys

# Guards against what the code around them excludes; unit tests of each file show that they hold.
GUARDS = (
    'return failed(Status(Code::kAborted, "this push goes on without it"));',
    'return failed(Status(Code::kInternal, "no such goal"));',
)
# Conditions with only one outcome, and why there is no other in a world.
ONE_OUTCOME = {
    "if (ledger.content == Content::kComplete && ledger.updateSent) {":
        "a start has forgotten what an earlier push completed",
    "if (last != nullptr && last->kind == CallKind::kReadVersion) {":
        "a finish fails within its goal only",
    "const bool again = last != nullptr && last->kind != CallKind::kResume && !last->status.ok();":
        "a resume fails within its goal only",
    "!(last != nullptr && last->status.ok() && last->kind == CallKind::kResume)) {":
        "the same",
    "if (ledger.resumeAsked &&":
        "the same",
    "if (ledger.dropped && goal != Goal::kClosed) {":
        "guards the first of the lines above",
    "return failed(last != nullptr && !last->status.ok()":
        "an engine is lost by a failed call, and nothing is asked of it afterwards",
    "? last->status":
        "the same",
}
# gcov counts the ends of scopes.
NO_CODE = ("}",)


def lines_of(gcov, source, counters):
    """Lines of source as gcov counted them, with their branches."""
    reply = subprocess.run(
        [gcov, "--branch-probabilities", "--json-format", "--stdout", counters],
        check=True, capture_output=True, cwd=os.path.dirname(counters))
    for file in json.loads(reply.stdout)["files"]:
        if file["file"].endswith(source):
            return file["lines"]
    sys.exit(f"gcov knows nothing of {source}")


def one_outcome(branches, code):
    """Whether a condition of the line had one outcome only. Without optimisation gcov tells of each
    condition as two branches. Those that an exception takes, and those of its clean-up, which are
    not reached at all, say nothing."""
    if code.startswith("switch ("):
        # The last is for a value that none of the cases has; the compiler knows all there are.
        return any(branch["count"] == 0 for branch in branches[:-1])
    for yes, no in zip(branches[::2], branches[1::2]):
        if not yes["throw"] and not no["throw"] and (yes["count"] == 0) != (no["count"] == 0):
            return True
    return False


def missing(gcov, source, counters, text):
    """Lines that were never reached and conditions with one outcome, one text each."""
    counts = {}
    single = set()
    for line in lines_of(gcov, source, counters):
        at = line["line_number"]
        counts[at] = counts.get(at, 0) + line["count"]
        if one_outcome(line["branches"], text[at - 1].strip()):
            single.add(at)
    for at, count in sorted(counts.items()):
        code = text[at - 1].strip()
        if count == 0 and code not in GUARDS + NO_CODE:
            yield f"{source}:{at}: never reached: {code}"
        if at in single and code not in ONE_OUTCOME:
            yield f"{source}:{at}: a condition has one outcome only: {code}"


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
