# SPDX-License-Identifier: Apache-2.0
"""Tensors that are not plain, and keys that are not known: cases 17, 19 and 30."""

import re
import struct
import subprocess
import unittest

import harness
from outcome import Case


def model(**extra):
    tensors = {f"w{i}": harness.tensor(f"w{i}", "2", "BF16", [8, 8]) for i in range(10)}
    return {**tensors, **extra}


class Case17(Case):
    """Tied names: one memory, two names."""

    def test_both_names_arrive_with_equal_bytes(self):
        tied = harness.tensor("tied", "2", "BF16", [32, 8])
        tensors = {"embed.weight": tied, **model(), "head.weight": tied}
        engine = self.engine("fe-a")
        pushed = self.pushed([engine], ranks=3, tensors=tensors)
        self.assert_done(pushed, [engine])
        # Once each, in the declared order: the one of the checkpoint's bytes.
        arrived = [line["name"] for line in engine.journal("tensor")]
        self.assertEqual(arrived, list(tensors))
        self.assertEqual(pushed.report["bytes"], sum(len(data) for _, _, data in tensors.values()))

    def test_one_name_only(self):
        engine = self.engine("fe-a")
        tensors = model(**{"embed.weight": harness.tensor("tied", "2", "BF16", [32, 8])})
        pushed = self.pushed([engine], tensors=tensors)
        self.assert_done(pushed, [engine])
        self.assertNotIn("head.weight", engine.state()["weights"])

    def test_a_name_twice_is_refused(self):
        engine = self.engine("fe-a")
        folder = self.folder / "twice"
        folder.mkdir()
        entry = '"dtype":"BF16","shape":[2],"data_offsets"'
        header = ('{"w0":{%s:[0,4]},"w0":{%s:[4,8]}}' % (entry, entry)).encode()
        (folder / "model.safetensors").write_bytes(
            struct.pack("<Q", len(header)) + header + bytes(8))
        ranks = self.ranks(self.config([engine]), folder, "2", 2)
        for rank, process in enumerate(ranks):
            self.assertEqual(process.wait(timeout=20 * harness.SLOW), 2, self.rank_log(rank))
            self.assertIn("w0", self.rank_log(rank))
        self.assertEqual(engine.journal("request"), [])


class Case19(Case):
    """A tensor that does not fit into the buffer."""

    def test_both_sides_cut_alike(self):
        kib = {"a": 410, "b": 3072, "c": 410, "d": 1024}
        tensors = {name: harness.tensor(name, "2", "U8", [size << 10]) for name, size in kib.items()}
        tensors["e"] = harness.tensor("e", "2", "U8", [(1 << 20) + 1])
        engines = [self.engine("fe-a"), self.engine("fe-b", "--world-size", "2")]
        pushed = self.pushed(engines, ranks=3, tensors=tensors, transport={"buffer": "1MiB"})
        self.assert_done(pushed, engines)
        # Add the tensor, then close if the sum is strictly greater than the buffer: a+b, c+d, e.
        chunks = [line for line in engines[0].journal("chunk")]
        self.assertEqual([line["bytes"] for line in chunks],
                         [(410 + 3072) << 10, (410 + 1024) << 10, (1 << 20) + 1])

    def test_what_the_refusal_names_makes_the_same_run_pass(self):
        # Shared memory has no room for a tensor above the buffer.
        tensors = {name: harness.tensor(name, "2", "U8", [size]) for name, size in
                   {"a": 410 << 10, "b": (1 << 20) + 1, "c": 410 << 10}.items()}
        engines = [self.engine("fe-a", backend="shm"), self.engine("fe-b")]
        refused = self.pushed(engines, ranks=3, tensors=tensors, transport={"buffer": "1MiB"})
        self.assertEqual((refused.code, refused.report["first_cause"]["phase"]), (3, "prepare"),
                         refused.text)
        for engine in engines:
            self.assertEqual(engine.calls("pause"), [])
        found = re.search(r"'b .*set (transport\.buffer) to at least (\d+)",
                          refused.report["first_cause"]["message"])
        self.assertIsNotNone(found, refused.text)
        section, key = found[1].split(".")
        pushed = self.pushed(engines, ranks=3, tensors=tensors,
                             **{section: {key: f"{found[2]}B"}})
        self.assert_done(pushed, engines)


class Case30(Case):
    """A misspelt key must not be taken silently."""

    def setUp(self):
        super().setUp()
        self.only = self.engine("fe-a")
        shown = subprocess.run(
            [harness.PROGRAM, "config", "check", "--effective", str(self.config([self.only]))],
            stdout=subprocess.PIPE, check=True, timeout=20 * harness.SLOW)
        self.keys = self.paths(shown.stdout.decode())
        self.sections = {key.rpartition(".")[0] for key in self.keys}

    def paths(self, text):
        """Every key of the effective configuration but those of single engines, by its path."""
        found, place = [], []
        for line in text.splitlines():
            key = re.match(r"^( *)(\w+):\s*(.*?)\s*$", line)
            depth = len(key[1]) // 2 if key else 9
            if key and place[:2] + [None] != ["engines", "list", None] or depth < 2:
                place = place[:depth] + [key[2]]
                if key[3]:
                    found.append(".".join(place))
        return found

    def checked(self, text):
        """The faults that a file has: {line: texts}."""
        path = self.folder / "changed.yaml"
        path.write_text(text)
        done = subprocess.run([harness.PROGRAM, "config", "check", str(path)],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
                              timeout=20 * harness.SLOW)
        out = done.stdout.decode()
        self.assertEqual(done.returncode, 2, f"{text}\n{out}")
        faults = {}
        for line, fault in re.findall(r"changed\.yaml:(\d+):\d+: (.*)$", out, re.MULTILINE):
            faults.setdefault(int(line), []).append(fault)
        return faults

    def refused(self, text, *says):
        out = "\n".join(fault for faults in self.checked(text).values() for fault in faults)
        for part in says:
            self.assertIn(part, out, text)

    def with_key(self, section, key):
        engines = f"engines:\n  list:\n    - url: {self.only.url}\n"
        if not section:
            return f"{engines}{key}: 1\n"
        return f"{engines}{section}:\n  {key}: 1\n"

    def assert_each_refused(self, changed, why="unknown key; the nearest known keys? (is|are) "):
        """`changed`: {path as written: the key that was meant, or None where another is as near}.
        All in one file, and each is told with its line and where it belongs."""
        tree, lines, written = {}, [], {}
        for path in changed:
            level = tree
            *above, name = path.split(".")
            for part in above:
                level = level.setdefault(part, {})
            level[name] = path

        def write(level, indent):
            for name, below in level.items():
                section = isinstance(below, dict)
                lines.append(f"{indent}{name}:" + ("" if section else " 1"))
                if section:
                    write(below, indent + "  ")
                else:
                    written[below] = len(lines)
        write(tree, "")
        faults = self.checked("\n".join(lines) + "\n")
        for path, meant in changed.items():
            told = faults.get(written[path], [])
            belongs = "" if meant is None else f".*{re.escape(meant)}, which belongs"
            self.assertTrue(any(re.match(f"[\\w.-]+: {why}{belongs}", fault) for fault in told),
                            f"{path}: {told}")

    def test_every_key_changed_by_a_letter(self):
        self.assertGreater(len(self.keys), 60)
        self.assert_each_refused({key[:-1] + ("x" if key[-1] != "x" else "y"): key
                                  for key in self.keys})

    def test_every_key_with_a_hyphen(self):
        split = [(key, *key.rpartition(".")) for key in self.keys]
        self.assert_each_refused({above + dot + name.replace("_", "-"): key
                                  for key, above, dot, name in split if "_" in name})

    def test_every_key_one_level_up(self):
        up = {".".join(key.split(".")[:-2] + [key.rpartition(".")[2]])
              for key in self.keys if "." in key}
        # A few are keys there as well, or sections.
        self.assert_each_refused({path: None for path in up - set(self.keys) - self.sections})

    def test_every_key_one_level_down(self):
        # Below another key of its name, which is no section.
        self.assert_each_refused({f"{key}.{key.rpartition('.')[2]}": None for key in self.keys
                                  if key != "push.dtypes.overrides"}, "must be .*not a section")

    def test_every_key_by_its_whole_path_in_one_name(self):
        for key in ("push.resend", "engines.on_loss"):
            self.refused(self.with_key("", key), f"{key}: unknown key", f"{key}, which belongs")

    def test_a_key_of_a_removed_release(self):
        self.refused(self.with_key("push", "load_format"), "load_format")

    def test_every_fault_in_one_run(self):
        faults = self.checked(f"engines:\n  list:\n    - url: {self.only.url}\n      nam: x\n"
                              "push:\n  resnd: true\n  verify: versoin\ntimeouts: {pause: 10}\n")
        for line, part in {4: "nam", 6: "resnd", 7: "versoin", 8: "timeouts.pause"}.items():
            self.assertIn(part, "".join(faults[line]))

    def test_the_same_verdict_on_all_ranks(self):
        path = self.folder / "wrong.yaml"
        path.write_text(self.with_key("push", "resnd"))
        folder, _ = self.checkpoint("v2", model())
        for rank, process in enumerate(self.ranks(path, folder, "2", 3)):
            self.assertEqual(process.wait(timeout=20 * harness.SLOW), 2, self.rank_log(rank))
            self.assertIn("push.resend", self.rank_log(rank))


if __name__ == "__main__":
    unittest.main(verbosity=2)
