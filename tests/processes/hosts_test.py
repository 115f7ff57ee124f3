# SPDX-License-Identifier: Apache-2.0
"""Five hosts, three with a rank and two with an engine, whose network fails.

Hosts are network namespaces, joined by a bridge in this process's own: they exist in a mount
namespace of its own only, so that nothing of them outlives it, however it ends. Needs root; not a
part of CTest, scripts/test --full runs it.
"""

import ctypes
import json
import os
import pathlib
import select
import subprocess
import unittest

import harness
from drill_test import REPEAT, repeated
from scarcity_test import CLONE_NEWNS, LIBC, MS_PRIVATE, MS_REC, mount
from signals_test import BOUND, SignalCase

CLONE_NEWNET = 0x40000000
NETWORK = "10.77.0"
RANKS, ENGINES = ("h1", "h2", "h3"), {"e0": "h4", "e1": "h5"}


def ip(*arguments, host=None):
    within = [] if host is None else ["-n", host]
    subprocess.run(["ip", *within, *arguments], check=True, timeout=10 * harness.SLOW)


def address(host):
    return f"{NETWORK}.{host[1:]}"


def build_network():
    if LIBC.unshare(CLONE_NEWNS | CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "network namespaces are refused here")
    mount(b"none", "/", MS_REC | MS_PRIVATE)
    pathlib.Path("/run/netns").mkdir(exist_ok=True)
    mount(b"tmpfs", "/run/netns")
    ip("link", "set", "lo", "up")
    ip("link", "add", "bridge", "type", "bridge")
    ip("addr", "add", f"{NETWORK}.254/24", "dev", "bridge")
    ip("link", "set", "bridge", "up")
    for host in (*RANKS, *ENGINES.values()):
        ip("netns", "add", host)
        ip("link", "add", host, "type", "veth", "peer", "name", "eth0", "netns", host)
        ip("link", "set", host, "master", "bridge", "up")
        ip("link", "set", "lo", "up", host=host)
        ip("link", "set", "eth0", "up", host=host)
        ip("addr", "add", f"{address(host)}/24", "dev", "eth0", host=host)


class LinkDown:
    """The cable is pulled: nobody is told, in neither direction."""

    def break_it(self, host, other):
        ip("link", "set", host, "down")

    def mend(self, host, other):
        ip("link", "set", host, "up")


class OneWay:
    """What `host` sends to `other` is lost, what it receives arrives."""

    def break_it(self, host, other):
        ip("route", "add", "blackhole", f"{address(other)}/32", host=host)

    def mend(self, host, other):
        ip("route", "del", "blackhole", f"{address(other)}/32", host=host)


class AddressGone:
    def break_it(self, host, other):
        ip("addr", "del", f"{address(host)}/24", "dev", "eth0", host=host)

    def mend(self, host, other):
        ip("addr", "add", f"{address(host)}/24", "dev", "eth0", host=host)


FAULTS = (LinkDown(), OneWay(), AddressGone())
PHASES = ("connect", "pause", "channel", "stream", "finish", "resume")


class HostsCase(SignalCase):
    @classmethod
    def setUpClass(cls):
        if not os.path.exists("/run/netns/" + RANKS[0]):
            build_network()

    def engine(self, name, *flags, port=0, backend="tcp"):
        host = ENGINES[name]
        engine = harness.Engine(self.folder, name, *flags, port=port, backend=backend,
                                within=("ip", "netns", "exec", host), host=address(host))
        self.engines.append(engine)
        return engine

    def three_ranks(self):
        return self.launch([["ip", "netns", "exec", host, *self.drill_command()]
                            for host in RANKS], master=address(RANKS[0]))

    def assert_next_succeeds(self, engines):
        for engine in engines:
            self.await_that(lambda: self.answers(engine), 20, f"{engine.name} to be reached")
            engine.faults()
        self.plan.write_text(json.dumps({"repeat": REPEAT, "pushes": [{"version": "2"}]}))
        told = self.ends(self.three_ranks(), range(3))
        self.assertEqual(set(told.values()), {"done"}, self.logs())
        for engine in engines:
            self.assert_current(engine, "2", repeated("2"))

    def answers(self, engine):
        try:
            return engine.state()
        except OSError:
            return None

    def each(self, play):
        for fault in FAULTS:
            for phase in PHASES:
                with self.subTest(fault=type(fault).__name__, phase=phase):
                    play(fault, phase)


class ARanksHost(HostsCase):
    def cut_off(self, number, fault, phase):
        host, other = RANKS[number], RANKS[0 if number else 1]
        engines = self.held(phase)
        ranks = self.three_ranks()
        self.await_hold()
        fault.break_it(host, other)
        try:
            # Whoever is cut off ends by its own limits, without word of the others.
            told = self.ends(ranks, range(3))
        finally:
            fault.mend(host, other)
        self.assertNotIn("done", told.values(), self.logs())
        for engine in engines:
            self.await_that(lambda: self.answers(engine), 20, f"{engine.name} to be reached")
            self.assert_whole(engine)
        self.assert_next_succeeds(engines)

    def test_of_rank_0(self):
        self.each(lambda fault, phase: self.cut_off(0, fault, phase))

    def test_of_another_rank(self):
        self.each(lambda fault, phase: self.cut_off(1, fault, phase))

    def test_back_before_anybody_gave_up(self):
        for host in RANKS:
            with self.subTest(host=host):
                engines = self.held("stream")
                ranks = self.three_ranks()
                self.await_hold()
                LinkDown().break_it(host, None)
                select.select([], [], [], 1)  # as long as the fault is to last
                LinkDown().mend(host, None)
                told = self.ends(ranks, range(3))
                self.assertEqual(set(told.values()), {"done"}, self.logs())
                for engine in engines:
                    self.assert_current(engine, "1", repeated("1"))


class AnEnginesHost(HostsCase):
    def cut_off(self, fault, phase, policy):
        engines = self.held(phase, victim_holds=True, engines={"on_loss": policy})
        ranks = self.three_ranks()
        self.await_hold()
        fault.break_it(ENGINES["e1"], RANKS[0])
        try:
            told = self.ends(ranks, range(3))
        finally:
            fault.mend(ENGINES["e1"], RANKS[0])
        self.assertEqual(len(set(told.values())), 1, self.logs())
        self.assertEqual(told[0] == "done", policy == "quarantine", self.logs())
        if policy == "quarantine":
            self.assert_current(engines[0], "1", repeated("1"))
        else:
            self.assertEqual(self.assert_whole(engines[0])["session"], "closed", self.logs())
        self.await_that(lambda: self.answers(engines[1]), 20, "e1 to be reached")
        self.assert_whole(engines[1])
        self.assert_next_succeeds(engines)

    def test_fails_the_push(self):
        self.each(lambda fault, phase: self.cut_off(fault, phase, "fail"))

    def test_is_left_out_under_quarantine(self):
        self.each(lambda fault, phase: self.cut_off(fault, phase, "quarantine"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
