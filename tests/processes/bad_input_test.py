# SPDX-License-Identifier: Apache-2.0
"""What is wrong before a push begins: every rank exits with the same code, says what and where and
what to do, and no engine is touched."""

import json
import os
import signal
import socket
import struct
import subprocess
import unittest

import harness


def run(*arguments, environment=None, limit=30):
    """The program on its own. Returns (exit code, everything printed)."""
    done = subprocess.run([harness.PROGRAM, *map(str, arguments)], env=environment,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=limit * harness.SLOW, check=False)
    return done.returncode, done.stdout.decode(errors="replace")


class BadInput(harness.Case):
    def setUp(self):
        super().setUp()
        self.e0 = self.engine("e0")
        self.good, self.digests = self.checkpoint("good", harness.layered("1", 1, 16))
        self.valid = self.config([self.e0])

    def tearDown(self):
        # Whatever was refused, no engine heard of it.
        touched = [line["path"] for line in self.e0.journal("request")]
        super().tearDown()
        self.assertEqual(touched, [])

    def refused(self, *arguments, says=(), environment=None):
        code, text = run(*arguments, environment=environment)
        self.assertEqual(code, 2, text)
        for part in says:
            self.assertIn(part, text)
        return text


class Flags(BadInput):
    def push(self, *extra, says, config=None, checkpoint=None, version="1", environment=None):
        return self.refused("push", "--config", config or self.valid, "--checkpoint",
                            checkpoint or self.good, f"--version={version}", *extra, says=says,
                            environment=environment)

    def test_wrong_flags(self):
        for arguments, says in (
                ((), "subcommand"),
                (("bogus",), "bogus"),
                (("push",), "--config"),
                (("push", "--config", self.valid), "--checkpoint"),
                (("push", "--config", self.valid, "--checkpoint", self.good), "--version"),
                (("push", "--nonsense"), "--config"),
                (("status",), "url"),
                (("config", "check", "no-such-file"), "no-such-file"),
                (("engine", "--port", "99999"), "99999"),
                (("engine", "--port", "0", "--profile", "9.9"), "9.9"),
                (("engine", "--port", "0", "--faults", "no-such-file"), "no-such-file")):
            with self.subTest(arguments=arguments):
                self.refused(*arguments, says=(says,))

    def test_pipes_in_the_place_of_an_engines_files(self):
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        for name in ("model.safetensors", "model.safetensors.index.json"):
            folder = self.folder / f"of-{name}"
            folder.mkdir()
            os.mkfifo(folder / name)
            self.refused("engine", "--port", "0", "--checkpoint", folder, says=(name, "regular file"))
        self.refused("engine", "--port", "0", "--faults", pipe, says=(str(pipe), "regular file"))
        self.refused("engine", "--port", "0", "--journal", pipe, says=(str(pipe),))

    def test_ranks_that_cannot_be(self):
        self.push("--ranks", "0", says=("--ranks",))
        self.push("--ranks", "x", says=("--ranks",))
        self.push("--rank", "5", "--world-size", "2", says=("rank 5",))
        self.push("--rank", "0", says=("--world-size",))
        for variables, says in (({"RANK": "x", "WORLD_SIZE": "2"}, "RANK"),
                                ({"RANK": "0"}, "WORLD_SIZE"),
                                ({"RANK": "2", "WORLD_SIZE": "2"}, "WORLD_SIZE"),
                                ({"RANK": "0", "WORLD_SIZE": "2"}, "MASTER_ADDR"),
                                ({"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1",
                                  "MASTER_PORT": "65535"}, "MASTER_PORT")):
            with self.subTest(variables=variables):
                self.push(says=(says, "no engine was contacted"),
                          environment=dict(os.environ, **variables))

    def test_versions_that_cannot_be_sent(self):
        self.push("--ranks=2", version="", says=("--version", "--ranks=2"))
        self.refused("push", "--config", self.valid, "--checkpoint", self.good, "--version", "",
                     says=("--version",))
        report = self.folder / "refused.json"
        for version, says in ((b"\xff", "not UTF-8 text"), ("1\n", "not UTF-8 text"),
                              ("\x1b[31m", "not UTF-8 text"), ("v" * 129, "129 bytes")):
            for flags in (("--ranks", "2"), ()):
                with self.subTest(version=version, flags=flags):
                    report.unlink(missing_ok=True)
                    text = self.push(*flags, "--report", report, says=(says, "no engine was contacted"),
                                     version=os.fsdecode(version) if isinstance(version, bytes)
                                     else version)
                    self.assertNotIn("rank 0 of", text)  # none was started
                    told = json.loads(report.read_text())
                    self.assertEqual(told["outcome"], "refused")
                    self.assertIn(says, told["first_cause"]["message"])
        plan = self.folder / "plan.json"
        plan.write_text(json.dumps({"tensors": [{"name": "a", "dtype": "int8", "shape": [1]}],
                                    "pushes": [{"version": "1"}, {"version": "v" * 129}]}))
        for flags in (("--ranks", "2"), ()):
            text = self.refused("drill", "--config", self.valid, "--plan", plan, *flags,
                                says=("129 bytes", str(plan)))
            self.assertNotIn("rank 0 of", text)

    def test_places_that_cannot_be_written(self):
        self.push("--ranks", "2", "--report", "/no/such/folder/r.json", says=("/no/such/folder",))
        self.push("--ranks", "2", "--report", self.folder, says=("--report",))
        # A file must not take the place of a pipe or a device.
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        self.push("--ranks", "2", "--report", pipe, says=("--report", str(pipe)))
        # A link such as /dev/stdout would be replaced itself.
        link = self.folder / "link"
        link.symlink_to(self.folder / "target")
        self.push("--ranks", "2", "--report", link, says=("--report", str(link)))
        self.assertTrue(link.is_symlink())
        self.assertTrue(pipe.is_fifo())
        # Nor is what a push reads, named by mistake, taken for an earlier push's report.
        weights = self.good / "model.safetensors"
        broken = self.folder / "broken.yaml"
        broken.write_text("foo: 1")
        for named, config in ((self.valid, self.valid), (weights, self.valid), (broken, broken)):
            before = named.read_bytes()
            for flags in (("--ranks", "2"), ()):
                self.push(*flags, "--report", named, config=config, says=())
                self.assertEqual(named.read_bytes(), before)
        for folder in ("/no/such/folder", "/dev/null"):
            self.push("--ranks", "2", environment=dict(os.environ, TMPDIR=folder), says=("TMPDIR",))


class Configurations(BadInput):
    def test_every_fault_is_told_with_its_place(self):
        path = self.folder / "bad.yaml"
        for text, says in (
                ("a: [", ("bad.yaml:",)),
                ("", ("engines.list",)),
                ("- 1", ("section",)),
                ("engines: {list: []}", ("engines.list",)),
                ('engines: {list: [{url: "ftp://x"}]}\ntransport: {kind: tcp}', ("ftp://x",)),
                (f'engines: {{list: [{{url: "{self.e0.url}"}}]}}\n'
                 "transport: {kind: tcp, bufer: 1GiB, port: 70000}\n"
                 "timeouts: {push: 10, pause: 0s}\nfoo: 1\nfoo: 2",
                 ("2:24: transport.bufer", "transport.buffer", "transport.port", "timeouts.push",
                  "timeouts.pause", "5:1: foo: duplicate")),
                (f'engines: {{list: [{{url: "{self.e0.url}"}}]}}\ntransport: {{kind: nccl}}',
                 ("not in this build", "transport.kind: tcp")),
                ('engines: {list: [{url: "http://${PUSHROD_NO_SUCH}:1"}]}',
                 ("PUSHROD_NO_SUCH",))):
            with self.subTest(text=text):
                path.write_text(text)
                self.refused("push", "--config", path, "--checkpoint", self.good, "--version", "1",
                             "--ranks", "2", says=says)
        report = self.folder / "refused.json"
        for flags in (("--ranks", "2"), ()):
            report.unlink(missing_ok=True)
            self.refused("push", "--config", path, "--checkpoint", self.good, "--version", "1",
                         "--report", report, *flags)
            told = json.loads(report.read_text())
            self.assertEqual((told["outcome"], told["version"]), ("refused", "1"))
            self.assertIn("PUSHROD_NO_SUCH", told["first_cause"]["message"])
            self.assertEqual(told["first_cause"]["phase"], "check")
        path.write_bytes(os.urandom(4096))
        self.refused("push", "--config", path, "--checkpoint", self.good, "--version", "1")
        for other in ("/no/such/file", str(self.folder), "/dev/null"):
            self.refused("push", "--config", other, "--checkpoint", self.good, "--version", "1",
                         says=(other,))

    def test_doubtful_keys_are_told_and_hinder_nothing(self):
        config = self.config([self.e0], push={"verify": "none"})
        code, text = run("config", "check", config)
        self.assertEqual(code, 0, text)
        self.assertIn("push.verify: none proves nothing", text)
        code, text = run("config", "check", self.config([self.e0], transport={"kind": "nccl"}))
        self.assertEqual(code, 0, text)
        self.assertIn("not in this build", text)
        # Rank 0 says it as well, once; this push is refused for rank 1's checkpoint.
        for process in self.ranks(config, [self.good, self.folder / "none"], "1", 2):
            self.assertEqual(process.wait(timeout=20 * harness.SLOW), 2, self.rank_log(0))
        self.assertEqual(self.rank_log(0).count("push.verify: none proves nothing"), 1)
        self.assertNotIn("push.verify", self.rank_log(1))

    def test_certificates_that_are_no_files_are_refused_unread(self):
        pipe = self.folder / "ca.pem"
        os.mkfifo(pipe)
        self.e0.url = self.e0.url.replace("http:", "https:")
        for path in (pipe, self.folder, "/dev/zero", "/no/such/ca.pem"):
            config = self.config([self.e0], engines={"tls": f"{{ca: {path}}}"})
            with self.subTest(path=path):
                said = f"the CA file {path} cannot be used"
                code, _, text = self.push(config, self.good, "1", ranks=2)
                self.assertEqual(code, 2, text)
                self.assertIn(said, text)
                code, text = run("config", "check", config)
                self.assertEqual(code, 0, text)
                self.assertIn(said, text)

    def test_what_only_rank_0_looks_at_refuses_all_ranks(self):
        config = self.config([self.e0], engines={"token_env": "PUSHROD_NO_SUCH_TOKEN"})
        code, report, text = self.push(config, self.good, "1", ranks=3)
        self.assertEqual(code, 2, text)
        self.assertIn("PUSHROD_NO_SUCH_TOKEN", text)
        self.assertEqual(report["outcome"], "refused")
        for rank, process in enumerate(self.ranks(config, self.good, "1", 3)):
            self.assertEqual(process.wait(timeout=20 * harness.SLOW), 2, self.rank_log(rank))
            self.assertIn("PUSHROD_NO_SUCH_TOKEN", self.rank_log(rank))


def safetensors(header, data=b""):
    return struct.pack("<Q", len(header)) + header + data


class Checkpoints(BadInput):
    def folder_of(self, name, **files):
        folder = self.folder / name
        folder.mkdir()
        for file, data in files.items():
            suffix = ".json" if file == "model_safetensors_index" else ""
            (folder / (file.replace("_", ".") + suffix)).write_bytes(data)
        return folder

    def test_damaged_files(self):
        good = b'{"a":{"dtype":"BF16","shape":[2],"data_offsets":[0,4]}}'
        two = (b'{"a":{"dtype":"BF16","shape":[2],"data_offsets":[0,4]},'
               b'"b":{"dtype":"BF16","shape":[2],"data_offsets":[2,6]}}')
        for name, data, says in (
                ("zero", b"", "too few"),
                ("long-header", struct.pack("<Q", 2**63) + b"{}", "header"),
                ("no-json", safetensors(b"xxxx"), "header"),
                ("cut", safetensors(good, b"12"), "beyond the file"),
                ("more", safetensors(good, b"12345678"), "belong to no tensor"),
                ("overlap", safetensors(two, b"123456"), "overlap"),
                ("sub-byte", safetensors(good.replace(b"BF16", b"F4"), b"1234"), "F4"),
                ("negative", safetensors(good.replace(b"[2]", b"[-2]"), b"1234"), "shape"),
                ("huge", safetensors(good.replace(b"[2]", b"[9223372036854775807,4]"), b"1234"),
                 "shape"),
                ("nothing", safetensors(b"{}"), "no tensor")):
            with self.subTest(name=name):
                folder = self.folder_of(name, model_safetensors=data)
                self.refused("push", "--config", self.valid, "--checkpoint", folder, "--version",
                             "1", "--ranks", "2", says=(says, str(folder)))

    def test_damaged_indexes(self):
        for name, data, says in (
                ("no-json", b"{", "JSON"),
                ("empty", b'{"weight_map":{}}', "weight_map"),
                ("no-shard", b'{"weight_map":{"a":"none.safetensors"}}', "none.safetensors"),
                ("escape", b'{"weight_map":{"a":"../x.safetensors"}}', "plain file name")):
            with self.subTest(name=name):
                folder = self.folder_of("index-" + name, model_safetensors_index=data)
                self.refused("push", "--config", self.valid, "--checkpoint", folder, "--version",
                             "1", "--ranks", "2", says=(says,))

    def test_one_rank_without_its_checkpoint_refuses_all(self):
        folders = [self.good, self.folder / "none"]
        for rank, process in enumerate(self.ranks(self.valid, folders, "1", 2)):
            self.assertEqual(process.wait(timeout=20 * harness.SLOW), 2, self.rank_log(rank))
            self.assertIn("is not a folder", self.rank_log(rank))


class Ports(harness.Case):
    def taken(self):
        listener = socket.socket()
        self.addCleanup(listener.close)
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        return listener.getsockname()[1]

    def test_a_page_that_cannot_be_served_fails_no_push(self):
        engine = self.engine("e0")
        folder, digests = self.weights("1", 1, 16)
        config = self.config([engine], metrics={"listen": f"127.0.0.1:{self.taken()}"})
        code, _, text = self.push(config, folder, "1", ranks=2)
        self.assertEqual(code, 0, text)
        self.assertIn("metrics are not served", text)
        self.assert_current(engine, "1", digests)

    def test_a_sender_port_that_is_taken_is_named(self):
        engine = self.engine("e0")
        folder, _ = self.weights("1", 1, 16)
        port = self.taken()
        code, report, text = self.push(self.config([engine], transport={"port": port}), folder, "1",
                                       ranks=2)
        self.assertEqual(code, 3, text)
        self.assertEqual(report["attempts"], 1)
        self.assertIn(str(port), report["first_cause"]["message"])
        self.assertIn("transport.port", report["first_cause"]["message"])

    def test_engines_by_name_by_ipv6_and_behind_a_prefix(self):
        folder, digests = self.weights("1", 1, 16)
        name, six = self.engine("name"), self.engine("six", "--host", "::1", "--prefix", "/a/b")
        name.url = f"http://localhost:{name.port}/"
        six.url = f"http://[::1]:{six.port}/a/b"
        code, report, text = self.push(self.config([name, six]), folder, "1", ranks=2)
        self.assertEqual(code, 0, text)
        self.assertEqual([row["outcome"] for row in report["engines"]], ["current", "current"])
        self.assert_current(name, "1", digests)

    def test_thousands_of_engines_need_little_memory(self):
        class Nobody:
            def __init__(self, number):
                self.name = f"e{number}"
                self.url = f"http://127.0.{1 + number // 250}.{1 + number % 250}:9"

        folder, _ = self.weights("1", 1, 16)
        config = self.config([Nobody(number) for number in range(3000)],
                             timeouts={"connect": "1s", "startup": "1s"})
        push = subprocess.Popen(self.command(config, folder, "1"), stdin=subprocess.DEVNULL,
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.children.append(push)
        _, status, used = os.wait4(push.pid, 0)
        push.returncode = os.waitstatus_to_exitcode(status)
        self.assertEqual(push.returncode, 3)
        self.assertLess(used.ru_maxrss, 400 * 1024 * harness.SLOW, "KiB")

    def test_64_descriptors_are_enough(self):
        engines = [self.engine(f"e{i}") for i in range(6)]
        folder, digests = self.weights("1", 1, 16)
        command = self.command(self.config(engines), folder, "1", "--ranks", "4")
        code, text = run_with_descriptors(64, command)
        self.assertEqual(code, 0, text)
        for engine in engines:
            self.assert_current(engine, "1", digests)

    def test_too_few_descriptors_end_as_an_error(self):
        engine = self.engine("e0")
        folder, _ = self.weights("1", 1, 16)
        command = self.command(self.config([engine]), folder, "1", "--ranks", "3")
        for limit in (24, 16, 10, 8, 7):
            code, text = run_with_descriptors(limit, command)
            self.assertIn(code, (0, 1, 2, 3), text)
            self.assertNotIn(f"signal {int(signal.SIGABRT)}", text)


def run_with_descriptors(limit, command):
    done = subprocess.run(["/bin/sh", "-c", f'ulimit -n {limit}; exec "$@"', "sh", *command],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=60 * harness.SLOW, check=False)
    return done.returncode, done.stdout.decode(errors="replace")


if __name__ == "__main__":
    unittest.main(verbosity=2)
