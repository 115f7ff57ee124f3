# SPDX-License-Identifier: Apache-2.0
"""Finds waits without a limit, and holds the few that the product may have, each with its reason."""

import re

import cpp_text

# (file, line of code): why it ends all the same.
ALLOWED = {
    ("net/io_executor.cc", "thread_.join();"):
        "the destructor has stopped the context, and no task on this thread blocks",
    ("net/run_and_wait.cc", "ended.wait();"):
        "the task uses the waiter's variables, so they must outlive it; no task there blocks",
    ("transports/tcp/sender.cc", "thread_.join();"):
        "stop() has set the flag and woken the poll, the thread's only wait",
    ("engines/reference/worker.cc", "thread_.join();"):
        "the destructor has set stopping_; a call under way ends by the engine's stop signal",
    ("engines/reference/worker.cc", "wake_.wait(lock, [this] { return stopping_ || !queue_.empty(); });"):
        "an idle worker; the destructor wakes it",
    ("python/src/receiver_link.cc", "thread.join();"):
        "the thread has said that it has ended",
    ("python/src/receiver_link.cc", "thread_.join();"):
        "giveUp() has raised the stop signal, and told a thread that waits for the loader",
    ("python/src/receiver_link.cc",
     "changed_.wait(lock, [this] { return ready_ == nullptr || givenUp_; });"):
        "the loader takes the chunk or gives up, in the destructor at the latest",
    ("tools/progress_line.cc", "thread_.join();"):
        "the destructor has set end_ and woken the thread, which otherwise only prints",
    ("tools/signal_watch.cc", "thread_.join();"):
        "the destructor has raised end_, which the thread's only wait watches",
    ("tools/signal_watch.cc",
     "::poll(entries, 2, -1);  // Ends with the object: end_ is raised by the destructor."):
        "waits for a signal for as long as the object lives",
    ("tools/commands/engine.cc", "while (::poll(fds.data(), fds.size(), -1) < 0) {"):
        "the command serves until it is told to end or is idle for too long",
    ("python/src/interrupt_watch.cc", "thread_.join();"):
        "the destructor has set ended_ and raised the descriptor that the thread's only wait watches",
    ("python/src/outbox.cc", "thread_.join();"):
        "the destructor has set ended_ and woken the thread; the caller does not hold the GIL it may wait for",
    ("tools/child_process.cc", "while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {"):
        "the process was killed; only reaping it is left",
}

CALL = re.compile(r"(?:\.|->)(wait|join|acquire|arrive_and_wait)\s*(\()|\b(poll|epoll_wait|waitpid)\s*(\()")
LIMITED = re.compile(r"deadline|limit|timeout|until", re.IGNORECASE)
FUTURE = re.compile(r"\bfuture<[^;=()]*>&?\s+(\w+)|\b(\w+)\s*=\s*[^;=]*\bget_future\(\)")
BARE_GET = re.compile(r"\bget_future\(\)\s*\.\s*get\(\)|\b(\w+)\s*\.\s*get\(\)")
STARTS_UNOWNED = re.compile(r"\bstd::(async|jthread)\b")


def endless(name, arguments):
    """Whether a call with these arguments may wait for ever."""
    if name == "wait":
        return LIMITED.search(arguments) is None
    if name == "waitpid":
        return "WNOHANG" not in arguments
    if name in ("poll", "epoll_wait"):
        return re.search(r",\s*-1\s*$", arguments) is not None
    return name != "join" or not arguments.strip()  # join with arguments is not a thread's


def positions(code):
    for call in CALL.finditer(code):
        name, bracket = call.group(1) or call.group(3), call.start(2) if call.group(2) else call.start(4)
        if endless(name, code[bracket + 1:cpp_text.matching(code, bracket)]):
            yield call.start(), f"{name}() without a limit"
    for start in STARTS_UNOWNED.finditer(code):
        yield start.start(), "its destructor waits without a limit"
    declared = [(name, each.start()) for each in FUTURE.finditer(code) for name in each.groups() if name]
    for get in BARE_GET.finditer(code):
        name = get.group(1)
        before = [start for each, start in declared if each == name and start < get.start()]
        if name is None or (before and not re.search(
                rf"\b{name}\s*\.\s*wait_(for|until)\(", code[before[-1]:get.start()])):
            yield get.start(), "get() of a future that was not waited for with a limit"


def found(text):
    """Every wait without a limit as (line number, the line, what is wrong)."""
    code, lines = cpp_text.code_only(text), text.splitlines()
    for position, fault in sorted(positions(code)):
        number = code.count("\n", 0, position) + 1
        yield number, lines[number - 1].strip(), fault


def check(path, text):
    """Faults of one file as (line, text)."""
    for number, line, fault in found(text):
        if (path, line) not in ALLOWED:
            yield number, f"{fault}: give it one, or say in tests/layering/waits.py why it ends"


def unused(top):
    """Entries of the table that no file needs any more."""
    for path, line in ALLOWED:
        file = top / path
        text = file.read_text(encoding="utf-8") if file.is_file() else ""
        if line not in (each for _, each, _ in found(text)):
            yield f"tests/layering/waits.py:1: {path} has no such wait: {line}"
