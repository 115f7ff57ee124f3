# SPDX-License-Identifier: Apache-2.0
"""Checks the source tree against the layers and the style rules that no compiler checks.

Usage: check_sources.py FOLDER. Prints one line per fault and exits 1 when there is any.
"""

import ast
import os
import pathlib
import re
import sys

import cpp_text
import waits

# A folder may include itself and what stands here; "tests" and "bench" may include everything.
LAYERS = {
    "common": set(),
    "config": {"common"},
    "metrics": {"common"},
    "net": {"common"},
    "http": {"common", "net"},
    "engines": {"common", "config", "metrics", "net", "http"},
    "ranks": {"common", "config", "metrics", "net", "http"},
    "transports": {"common", "config", "metrics", "net", "http"},
}
LAYERS["orchestrator"] = set(LAYERS) | {"orchestrator"}
LAYERS["tools"] = set(LAYERS) | {"tools"}
# The Python modules use the public API, but for what the engine side shares with the reference engine.
LAYERS["python"] = {"common", "net", "engines", "transports"}
# Adapters of one folder do not know each other either.
ADAPTERS = {"engines": {"vllm", "reference"}, "transports": {"tcp", "nccl", "ipc", "shm"}}

# What lives on the installed headers alone.
OUTSIDE = {"include": "a public header", "examples": "an example"}

# Only the composition root names adapters; what the rest of its folder shares with them is pure.
COMPOSITION_ROOT = "orchestrator/factory.cc"
# ranks/record_exchange.h is a seam.
CONCRETE = re.compile(r"^(engines/|ranks/(?!record_exchange\.h$)|transports/(tcp|nccl|ipc|shm)/)")
# Nothing waits for a time to pass, and every thread has an owner that joins it.
UNOWNED_WAIT = re.compile(r"\b(sleep_for|sleep_until|usleep|nanosleep)\s*\(|[.>]detach\(\)")

# Third-party headers and the folders that may include them. Tests may use what they test with.
THIRD_PARTY = [
    (re.compile(r"^boost/(asio|beast)(/|\.hpp)"), {"net", "http"}),
    (re.compile(r"^openssl/ssl"), {"net", "http"}),
    (re.compile(r"^(gloo/|hiredis)"), {"ranks"}),
    (re.compile(r"^yaml-cpp/"), {"config"}),
    (re.compile(r"^prometheus/"), {"metrics"}),
    (re.compile(r"^CLI/"), {"tools"}),
    (re.compile(r"^(nanobind/|Python\.h)"), {"python"}),
]
# The pure core neither waits nor looks at a clock.
PURE = ("orchestrator/fsm/", "orchestrator/ledger/")
PURE_FORBIDDEN = {"thread", "mutex", "condition_variable", "shared_mutex", "future", "semaphore",
                  "latch", "barrier", "stop_token", "random", "fstream", "iostream", "filesystem"}
CLOCK_READ = re.compile(r"(_clock::now|Clock\(?\)?[.>-]*now|\bgettimeofday|\bclock_gettime|\btime\(nullptr)")

SOURCE_SUFFIXES = {".h", ".cc"}
CHECKED_SUFFIXES = SOURCE_SUFFIXES | {".py", ".cmake"}
LONGEST_FILE = 400
LONGEST_FUNCTION = 60
SPDX = "SPDX-License-Identifier: Apache-2.0"
# Put together so that this file does not hold the words itself.
LEFT_OVER = re.compile(r"\b(" + "|".join(["TO" + "DO", "FIX" + "ME", "X" + "XX", "HA" + "CK"]) + r")\b")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def is_std(header):
    return re.fullmatch(r"[a-z_0-9]+", header) is not None


def check_include(path, quote, header, exists):
    """Faults of one include line; `exists` tells whether a path is in the tree."""
    folder = path.split("/")[0]
    target = header.split("/")[0]
    if folder in OUTSIDE:
        if not is_std(header) and not (quote == "<" and header.startswith("pushrod/")):
            yield f"{OUTSIDE[folder]} may include only the standard library and <pushrod/...>"
        return
    if folder not in LAYERS:
        return
    if quote == '"':
        if not exists(header):
            yield f'"{header}" is not a path from the top folder'
        elif target != folder and target not in LAYERS[folder]:
            yield f"{folder} may not include {target}"
        yield from check_adapter(path, folder, header)
        if folder == "orchestrator" and path != COMPOSITION_ROOT and CONCRETE.match(header):
            yield f"only {COMPOSITION_ROOT} may include an adapter"
    for pattern, owners in THIRD_PARTY:
        if quote == "<" and pattern.match(header) and folder not in owners:
            yield f"<{header}> may be included only in {' and '.join(sorted(owners))}"
    if path.startswith(PURE):
        allowed = header.startswith(("common/",) + PURE + ("orchestrator/plan",))
        if quote == '"' and not allowed:
            yield f'the pure core may not include "{header}"'
        if quote == "<" and not (is_std(header) or header.startswith("pushrod/")):
            yield f"the pure core may not include <{header}>"
        if quote == "<" and header in PURE_FORBIDDEN:
            yield f"the pure core may not use <{header}>"


def check_adapter(path, folder, header):
    adapters = ADAPTERS.get(folder, set())
    parts, other = path.split("/"), header.split("/")
    if len(parts) < 3 or len(other) < 3 or other[0] != folder:
        return
    if parts[1] in adapters and other[1] in adapters and parts[1] != other[1]:
        yield f"{folder}/{parts[1]} may not include {folder}/{other[1]}"


def function_lines(suffix, text):
    """Every function as (first line, last line); a nested one counts as part of its owner."""
    if suffix in SOURCE_SUFFIXES:
        yield from cpp_text.functions(text)
    elif suffix == ".py":
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                yield node.lineno, node.end_lineno


def check_lengths(suffix, text):
    count = len(text.splitlines())
    if count >= LONGEST_FILE:
        yield LONGEST_FILE, f"{count} lines; a file has fewer than {LONGEST_FILE}"
    for first, last in function_lines(suffix, text):
        if last - first + 1 > LONGEST_FUNCTION:
            yield first, (f"a function of {last - first + 1} lines; "
                          f"one has at most {LONGEST_FUNCTION}")


def check_text(path, text, exists):
    """Faults of one file as (line, text)."""
    lines = text.splitlines()
    if not any(SPDX in line for line in lines[:2]):
        yield 1, f"no line '{SPDX}' at the top"
    suffix = pathlib.PurePath(path).suffix
    folder = path.split("/")[0]
    yield from check_lengths(suffix, text)
    if suffix in SOURCE_SUFFIXES and (folder in LAYERS or folder in OUTSIDE):
        yield from waits.check(path, text)
    if suffix == ".h" and "#pragma once" not in text:
        yield 1, "no #pragma once"
    for number, line in enumerate(lines, 1):
        if LEFT_OVER.search(line):
            yield number, "left-over marker: " + line.strip()
        if suffix not in SOURCE_SUFFIXES:
            continue
        include = INCLUDE.match(line)
        if include:
            for fault in check_include(path, include.group(1), include.group(2), exists):
                yield number, fault
        elif path.startswith(PURE) and CLOCK_READ.search(line):
            yield number, "the pure core may not read a clock"
        if folder in LAYERS and UNOWNED_WAIT.search(line):
            yield number, "no sleeping and no detached thread: wait for the event, with a limit"


def source_paths(top):
    skipped = {"third_party", "__pycache__"}
    for folder, below, files in os.walk(top):
        # Builds hold whole Python environments: they are not even entered.
        below[:] = sorted(name for name in below
                          if not name.startswith((".", "build")) and name not in skipped)
        for path in sorted(pathlib.Path(folder) / name for name in files):
            if path.suffix in CHECKED_SUFFIXES or path.name == "CMakeLists.txt":
                yield path


def exists_in(top, header):
    """Whether the header is in the tree or made from a template that is."""
    return (top / header).is_file() or (top / (header + ".in")).is_file()


def check_tree(top):
    faults = []
    for path in source_paths(top):
        name = path.relative_to(top).as_posix()
        text = path.read_text(encoding="utf-8")
        for line, fault in check_text(name, text, lambda header: exists_in(top, header)):
            faults.append(f"{name}:{line}: {fault}")
    faults += waits.unused(top)
    install = (top / "cmake/PushrodInstall.cmake").read_text(encoding="utf-8")
    for header in sorted((top / "include/pushrod").glob("*.h")):
        if not re.search(rf"(^|\s){re.escape(header.name)}[\s)]", install):
            faults.append(f"cmake/PushrodInstall.cmake:1: {header.name} is not installed")
    return faults


def main():
    top = pathlib.Path(sys.argv[1]).resolve()
    faults = check_tree(top)
    for fault in faults:
        print(fault)
    print(f"{len(list(source_paths(top)))} files looked at, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
