# SPDX-License-Identifier: Apache-2.0
"""A machine that has run out of something: shared memory, disk, descriptors, processors."""

import ctypes
import json
import os
import pathlib
import re
import resource
import subprocess
import tempfile
import unittest

import harness
from drill_test import REPEAT, DrillCase, repeated

SHM = pathlib.Path("/dev/shm")
CLONE_NEWNS, CLONE_NEWUSER = 0x20000, 0x10000000
MS_REC, MS_PRIVATE = 0x4000, 0x40000
LIBC = ctypes.CDLL(None, use_errno=True)


def mount(kind, target, flags=0, data=None):
    if LIBC.mount(kind, str(target).encode(), kind, flags, data):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(target))


def unshare(flags):
    if LIBC.unshare(flags):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def enter_own_mounts():
    """From here on this process and its children see mounts of their own: by right, or else as the
    root of a user namespace."""
    uid, gid = os.getuid(), os.getgid()
    try:
        unshare(CLONE_NEWNS)
    except OSError:
        unshare(CLONE_NEWNS | CLONE_NEWUSER)
        for name, text in (("setgroups", "deny"), ("uid_map", f"0 {uid} 1"),
                           ("gid_map", f"0 {gid} 1")):
            pathlib.Path(f"/proc/self/{name}").write_text(text)
    mount(b"none", "/", MS_REC | MS_PRIVATE)


class SmallMounts(DrillCase):
    """Small file systems in a mount namespace of this test's own, engines and ranks in it."""

    @classmethod
    def setUpClass(cls):
        try:
            enter_own_mounts()
        except OSError as error:
            raise AssertionError(
                "this machine must permit mount namespaces, to root (CAP_SYS_ADMIN) or by user "
                "namespaces (/proc/sys/user/max_user_namespaces above 0, no seccomp filter against "
                f"unshare and mount): {error}") from None

    def small(self, path, size):
        mount(b"tmpfs", path, data=b"size=%d" % size)
        self.addCleanup(lambda: LIBC.umount2(str(path).encode(), 2))

    def full_disk(self):
        disk = pathlib.Path(tempfile.mkdtemp(prefix="pushrod-test-disk-"))
        self.addCleanup(disk.rmdir)
        self.small(disk, 8 << 10)
        (disk / "filler").write_bytes(bytes(8 << 10))
        return disk

    def assert_untouched(self, engine):
        self.assertEqual(engine.calls("pause"), [])
        self.assertEqual([name for name in os.listdir(SHM) if name != "filler"], [])

    def test_a_segment_that_does_not_fit_is_told_before_the_pause(self):
        self.small(SHM, 64 << 10)
        engine = self.engine("e0", backend="shm")
        plan = {"repeat": REPEAT, "pushes": [{"version": "1"}]}
        code, reports, text, _ = self.drill(
            self.config([engine], transport={"buffer": "64KiB"}), plan, ranks=2)
        self.assertEqual((code, reports[0]["outcome"]), (3, "failed"), text)
        cause = reports[0]["first_cause"]
        self.assertEqual(cause["phase"], "prepare")
        for part in ("shared memory segment", "transport.buffer"):
            self.assertIn(part, cause["message"])
        self.assert_untouched(engine)
        # The same file system has room for smaller buffers.
        code, _, text, _ = self.drill(
            self.config([engine], transport={"buffer": "16KiB"}), plan, ranks=2)
        self.assertEqual(code, 0, text)
        self.assert_current(engine, "1", repeated("1"))
        self.assertEqual(os.listdir(SHM), [])

    def test_room_for_one_of_two_hosts(self):
        self.small(SHM, 16 << 10)  # the model is one chunk of three pages
        engine = self.engine("e0", "--host-id", "left", backend="shm")
        folder, _ = self.weights("1", 1, 16)
        config = self.config([engine], transport={"buffer": "16KiB"})
        self.ranks(config, folder, "1", 2, hosts=["left", "right"])
        for rank in range(2):
            self.assert_ended(rank, 3, "shared memory segment")
        self.assert_untouched(engine)

    def test_a_segment_that_is_there_needs_no_more_room(self):
        self.small(SHM, 64 << 10)
        engine = self.engine("e0", backend="shm")
        engine.faults({"route": "resume", "nth": 1, "do": "delay", "seconds": 1})
        filler = os.open(SHM / "filler", os.O_WRONLY | os.O_CREAT)
        self.addCleanup(os.close, filler)
        plan = self.folder / "plan.json"
        plan.write_text(json.dumps(
            {"repeat": REPEAT, "pushes": [{"version": "1"}, {"version": "2"}]}))
        config = self.config([engine], transport={"buffer": "16KiB"})
        self.launch([[harness.PROGRAM, "drill", "--config", str(config), "--plan", str(plan)]] * 2)
        self.await_that(lambda: engine.calls("resume"), 30, "the first push's resume")
        with self.assertRaises(OSError):
            while True:
                os.write(filler, bytes(4096))
        for rank in range(2):
            self.assert_ended(rank, 0)
        self.assert_current(engine, "2", repeated("2"))

    def test_a_report_for_which_there_is_no_room(self):
        disk = self.full_disk()
        engine = self.engine("e0")
        plan = self.folder / "plan.json"
        plan.write_text(json.dumps({"repeat": REPEAT, "pushes": [{"version": "1"}]}))
        command = [harness.PROGRAM, "drill", "--config", str(self.config([engine])), "--plan",
                   str(plan), "--report", str(disk / "report.json")]
        for extra in (["--ranks", "2"], ["--rank", "0", "--world-size", "1"]):
            with self.subTest(extra=extra):
                done = subprocess.run([*command, *extra], stdin=subprocess.DEVNULL,
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                      timeout=30 * harness.SLOW, check=False)
                text = done.stdout.decode(errors="replace")
                # The push was made: its outcome is not that of the report about it.
                self.assertEqual(done.returncode, 0, text)
                self.assertIn("No space left on device", text)
                self.assert_current(engine, "1", repeated("1"))
                self.assertEqual(os.listdir(disk), ["filler"])

    def test_a_temporary_folder_without_room(self):
        disk = self.full_disk()
        engine = self.engine("e0")
        plan = self.folder / "plan.json"
        plan.write_text(json.dumps({"repeat": REPEAT, "pushes": [{"version": "1"}]}))
        done = subprocess.run(
            [harness.PROGRAM, "drill", "--config", str(self.config([engine])), "--plan", str(plan),
             "--ranks", "2"], env=dict(os.environ, TMPDIR=str(disk)), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60 * harness.SLOW,
            check=False)
        text = done.stdout.decode(errors="replace")
        self.assertIn("No space left on device", text)
        self.assertNotIn("signal", text)
        self.assertIn("make some or set TMPDIR to another", text.splitlines()[-1])
        self.assertNotIn("--report", text)  # nobody asked for one
        self.assertEqual(os.listdir(disk), ["filler"])
        if done.returncode == 0:
            self.assert_current(engine, "1", repeated("1"))
        else:
            self.assertEqual(engine.calls("start_weight_update"), [], text)


class FullDevice(DrillCase):
    def test_a_report_into_a_device_is_refused(self):
        engine = self.engine("e0")
        folder, _ = self.weights("1", 1, 16)
        done = subprocess.run(
            self.command(self.config([engine]), folder, "1", "--ranks", "2", "--report",
                         "/dev/full"),
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=30 * harness.SLOW,
            check=False)
        self.assertEqual(done.returncode, 2, done.stdout)
        self.assertIn(b"/dev/full: cannot be written: it is not a regular file", done.stdout)
        self.assertEqual(engine.journal("request"), [])

    def test_an_answer_into_a_full_device_is_no_success(self):
        config = str(self.config([self.engine("e0")]))
        for arguments in (["config", "check", config], ["config", "check", config, "--effective"],
                          ["engines", "version", "--config", config], ["--version"],
                          ["push", "--help"]):
            with self.subTest(arguments=arguments), open("/dev/full", "wb") as full:
                done = subprocess.run([harness.PROGRAM, *arguments], stdout=full,
                                      stderr=subprocess.PIPE, timeout=30 * harness.SLOW, check=False)
                self.assertEqual(done.returncode, 1)
                self.assertIn(b"could not be written: No space left", done.stderr)

    def test_output_into_a_full_device_changes_no_push(self):
        engine = self.engine("e0")
        folder, digests = self.weights("1", 1, 16)
        with open("/dev/full", "wb") as full:
            done = subprocess.run(
                self.command(self.config([engine]), folder, "1", "--ranks", "2"), stdout=full,
                stderr=full, stdin=subprocess.DEVNULL, timeout=30 * harness.SLOW, check=False)
        self.assertEqual(done.returncode, 0)
        self.assert_current(engine, "1", digests)


class ReadersThatHang(DrillCase):
    def test_a_full_pipe_keeps_no_push_from_its_end(self):
        engine = self.engine("e0")
        config = self.config([engine])
        for flags in (["--ranks", "2"], []):
            reader, writer = os.pipe()
            self.addCleanup(os.close, reader)
            os.set_blocking(writer, False)
            with self.assertRaises(BlockingIOError):
                while True:
                    os.write(writer, b"." * 4096)
            os.set_blocking(writer, True)
            report = self.folder / "report.json"
            folder, digests = self.weights(f"of-{len(flags)}", 1, 16)
            done = subprocess.run(
                self.command(config, folder, "1", "--report", str(report), *flags),
                stdin=subprocess.DEVNULL, stdout=writer, stderr=writer, timeout=40 * harness.SLOW,
                check=False)
            os.close(writer)
            self.assertEqual(done.returncode, 0)
            self.assertEqual(json.loads(report.read_text())["outcome"], "done")
            self.assert_current(engine, "1", digests)
            report.unlink()


class Descriptors(DrillCase):
    LIMIT = 64

    def test_closed_standard_ones_are_given_to_nobody(self):
        port = harness.free_port()
        engine = subprocess.Popen(["/bin/sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", harness.PROGRAM,
                                   "engine", "--port", str(port)])
        self.children.append(engine)

        def answers():
            try:
                return harness.request(port, "GET", "/health")[0] == 200
            except OSError:
                return False

        self.await_that(answers, 20, "the engine")
        for fd in range(3):
            self.assertEqual(os.readlink(f"/proc/{engine.pid}/fd/{fd}"), "/dev/null")

    def limited(self, function):
        """What `function` starts has so many descriptors; this process is not harmed by it."""
        before = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (self.LIMIT, before[1]))
        try:
            return function()
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, before)

    def test_both_transports_two_pushes_and_a_resend(self):
        engines = self.limited(lambda: [
            self.engine("t0", "--world-size", "2"), self.engine("s0", backend="shm"),
            self.engine("t1"), self.engine("s1", "--world-size", "2", backend="shm")])
        engines[0].faults({"route": "update_weights", "nth": 1, "do": "fail_after_chunks",
                           "after_chunks": 1})
        plan = {"repeat": REPEAT, "pushes": [{"version": "1"}, {"version": "2"}]}
        config = self.config(engines, transport={"buffer": "16KiB"})
        code, reports, text, _ = self.limited(lambda: self.drill(config, plan, ranks=4))
        self.assertEqual(code, 0, text)
        self.assertEqual([each["outcome"] for each in reports], ["recovered", "done"], text)
        for engine in engines:
            self.assert_current(engine, "2", repeated("2"))


class BusyMachine(DrillCase):
    """Spinning processes on every core, as many again beside them: nobody is taken for dead."""

    def spin(self, niceness):
        for _ in range(2 * os.cpu_count()):
            self.children.append(subprocess.Popen(
                ["nice", "-n", str(niceness), "sh", "-c", "while :; do :; done"]))

    def test_no_false_alarm_with_the_default_limits(self):
        for niceness in (0, 19):
            with self.subTest(niceness=niceness):
                self.spin(niceness)
                engines = [self.engine(f"t{niceness}", "--world-size", "2"),
                           self.engine(f"s{niceness}", backend="shm")]
                config = self.config(engines, transport={"buffer": "16KiB"})
                config.write_text(re.sub(r"timeouts:\n(  .*\n)+", "", config.read_text()))
                plan = {"repeat": REPEAT, "pushes": [{"version": str(i)} for i in range(1, 21)]}
                code, reports, text, _ = self.drill(config, plan, ranks=4)
                self.assertEqual(code, 0, text)
                for report in reports:
                    self.assertEqual((report["outcome"], report["attempts"], report["notes"]),
                                     ("done", 1, []), text)
                self.assertNotIn("warning", text)
                for engine in engines:
                    self.assert_current(engine, "20", repeated("20"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
