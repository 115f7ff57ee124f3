# SPDX-License-Identifier: Apache-2.0
"""What the tests share: engines and jobs that end with their test."""

import signal

import pytest

import support

# Whoever starts the tests in the background may have them, and what they start, ignore it.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def engine(tmp_path):
    """Starts reference engines: engine("name", *flags)."""
    started = []

    def start(name="engine-0", *flags, **options):
        made = support.harness.Engine(tmp_path, name, *flags, **options)
        started.append(made)
        return made

    yield start
    for each in started:
        each.stop()


@pytest.fixture
def job(tmp_path):
    """Starts trainer ranks: job(script, ranks, given); forked=True for scripts that import torch."""
    started = []

    def start(script, ranks, given, forked=False):
        folder = tmp_path / f"job-{len(started)}"
        folder.mkdir()
        made = support.Job(folder)
        started.append(made)
        return (made.start_forked if forked else made.start)(script, ranks, given)

    yield start
    for each in started:
        each.stop()


@pytest.fixture
def coordinator(tmp_path):
    """Makes coordinators of one rank: coordinator([engines], section={...})."""
    import pushrod

    made = []

    def make(engines, **sections):
        one = pushrod.Coordinator(
            support.config(engines, **sections),
            rank=0,
            world_size=1,
            store=f"file://{tmp_path}/store-{len(made)}",
            flight_record=tmp_path,
        )
        made.append(one)
        return one

    yield make
    for each in made:
        each.close()
