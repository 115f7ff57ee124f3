# SPDX-License-Identifier: Apache-2.0
"""Transport shm from outside: one segment per host, one update per chunk, and what is left behind."""

import json
import os
import pathlib
import resource
import signal
import subprocess
import unittest

import harness

SHM = pathlib.Path("/dev/shm")
BUFFER = 8 * 1024


class ShmCase(harness.Case):
    def shm_engine(self, name, *flags):
        return self.engine(name, *flags, backend="shm")

    def shm_config(self, engines, /, **sections):
        transport = {"buffer": f"{BUFFER // 1024}KiB", **sections.pop("transport", {})}
        return self.config(engines, transport=transport, **sections)

    def model(self, version="1", layers=3):
        # Its largest tensor, the embedding, is exactly as large as the buffer.
        return self.checkpoint(f"v{version}", harness.layered(version, layers, 16))

    def ours(self):
        """What this test's jobs have in shared memory."""
        return sorted(path.name for path in SHM.glob(f"pushrod.test-{os.getpid()}.*"))

    def chunks(self, engine, worker=0):
        return [line for line in engine.journal("chunk") if line["worker"] == worker]

    def plain_chunks(self, folder):
        """Bytes of each chunk by the rule: close before the buffer would be exceeded."""
        with open(folder / "model.safetensors", "rb") as file:
            header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        # A checkpoint of one file is sent in the order of its bytes.
        sizes = [end - begin for begin, end in sorted(
            entry["data_offsets"] for name, entry in header.items() if name != "__metadata__")]
        chunks = []
        for size in sizes:
            if not chunks or chunks[-1] + size > BUFFER:
                chunks.append(0)
            chunks[-1] += size
        return chunks


class CleanPush(ShmCase):
    def test_every_byte_arrives_and_nothing_stays(self):
        engines = [self.shm_engine("e0"), self.shm_engine("e1", "--world-size", "2")]
        folder, digests = self.model()
        code, report, text = self.push(self.shm_config(engines), folder, "1")
        self.assertEqual(code, 0, text)
        self.assertEqual(report["outcome"], "done")
        for engine, workers, row in zip(engines, (1, 2), report["engines"]):
            self.assert_current(engine, "1", digests)
            self.assertEqual(row["bytes"], workers * report["bytes"])
            self.assertEqual(sum(each["bytes"] for each in self.chunks(engine)), report["bytes"])
        self.assertGreater(len(self.chunks(engines[0])), 1)
        self.assertEqual(len(engines[0].calls("update_weights")), len(self.chunks(engines[0])))
        self.assertEqual(self.ours(), [])

    def test_chunks_are_cut_before_the_buffer_is_exceeded(self):
        engine = self.shm_engine("e0")
        folder, digests = self.model(layers=5)
        code, _, text = self.push(self.shm_config([engine]), folder, "1", ranks=2)
        self.assertEqual(code, 0, text)
        self.assert_current(engine, "1", digests)
        cut = [each["bytes"] for each in self.chunks(engine)]
        self.assertLessEqual(max(cut), BUFFER)
        self.assertEqual(cut, self.plain_chunks(folder))

    def test_any_number_of_buffers_and_ranks(self):
        folder, digests = self.model()
        for ranks, buffers, keep in ((1, 1, "true"), (3, 1, "false"), (2, 5, "false")):
            with self.subTest(ranks=ranks, buffers=buffers):
                engine = self.shm_engine(f"e{ranks}{buffers}")
                config = self.shm_config([engine], transport={"buffers": buffers, "buffer": "9KiB",
                                                              "keep_buffers": keep})
                code, _, text = self.push(config, folder, "1", ranks=ranks)
                self.assertEqual(code, 0, text)
                self.assert_current(engine, "1", digests)
        self.assertEqual(self.ours(), [])

    def test_every_profile(self):
        folder, digests = self.model()
        for profile in ("0.27", "0.30", "0.33"):
            with self.subTest(profile=profile):
                engine = self.shm_engine(f"p{profile}", "--profile", profile, "--world-size", "2")
                code, _, text = self.push(self.shm_config([engine]), folder, "1", ranks=2)
                self.assertEqual(code, 0, text)
                self.assert_current(engine, "1", digests)

    def test_tensors_without_bytes(self):
        for version, shape, sizes in (("1", [0, 4], [0]), ("2", [4, 4], [64])):
            engine = self.shm_engine(f"e{version}")
            folder, digests = self.checkpoint(f"v{version}", {
                "a.weight": harness.tensor("a", version, "BF16", [0]),
                "b.weight": harness.tensor("b", version, "F32", shape),
                "c.weight": harness.tensor("c", version, "BF16", [2, 0])})
            code, _, text = self.push(self.shm_config([engine]), folder, version, ranks=2)
            self.assertEqual(code, 0, text)
            self.assert_current(engine, version, digests)
            self.assertEqual([each["bytes"] for each in self.chunks(engine)], sizes)


class Mixed(ShmCase):
    def test_tcp_and_shm_in_one_push(self):
        engines = [self.engine("t0", "--world-size", "2"), self.shm_engine("s0"),
                   self.engine("t1"), self.shm_engine("s1")]
        folder, digests = self.model()
        code, report, text = self.push(self.shm_config(engines), folder, "1")
        self.assertEqual(code, 0, text)
        for engine, row in zip(engines, report["engines"]):
            self.assert_current(engine, "1", digests)
            self.assertEqual(row["bytes"], report["bytes"] * (2 if row["name"] == "t0" else 1))
        self.assertEqual(len(engines[0].calls("update_weights")), 1)
        self.assertEqual(self.ours(), [])

    def test_a_list_in_a_file_may_name_either_or_both(self):
        folder, digests = self.model()
        for kinds in (("shm", "shm"), ("tcp", "tcp"), ("tcp", "shm")):
            with self.subTest(kinds=kinds):
                engines = [self.engine(f"{kind}-{i}-{'-'.join(kinds)}", backend=kind)
                           for i, kind in enumerate(kinds)]
                names = self.folder / f"{'-'.join(kinds)}.yaml"
                names.write_text("".join(
                    f'- {{url: "{engine.url}", name: {engine.name}, transport: {engine.backend}}}\n'
                    for engine in engines))
                config = self.folder / "push.yaml"
                config.write_text(
                    f"job: test-{os.getpid()}\nengines: {{file: {names}}}\n"
                    f'transport: {{kind: tcp, buffer: {BUFFER}B}}\nmetrics: {{listen: ""}}\n')
                code, _, text = self.push(config, folder, "1", ranks=2)
                self.assertEqual(code, 0, text)
                for engine in engines:
                    self.assert_current(engine, "1", digests)

    def test_a_failure_on_either_side_is_mended(self):
        folder, digests = self.model()
        for bad in (0, 1):
            for after in (0, 2):
                with self.subTest(bad=bad, after=after):
                    engines = [self.engine(f"t{bad}{after}"), self.shm_engine(f"s{bad}{after}")]
                    engines[bad].faults({"route": "update_weights", "nth": 1,
                                         "do": "fail_after_chunks", "after_chunks": after})
                    code, report, text = self.push(self.shm_config(engines), folder, "1", ranks=2)
                    self.assertEqual(code, 0, text)
                    self.assertEqual(report["outcome"], "recovered")
                    self.assertEqual(report["first_cause"]["engine"], engines[bad].name)
                    for engine in engines:
                        self.assert_current(engine, "1", digests)


class Hosts(ShmCase):
    def test_the_lowest_rank_of_each_host_packs(self):
        hosts = ["left", "right", "left", "right", "third"]
        engines = [self.shm_engine("e0", "--host-id", "right"),
                   self.shm_engine("e1", "--host-id", "left", "--world-size", "2"),
                   self.shm_engine("e2", "--host-id", "third")]
        folder, digests = self.model()
        ranks = self.ranks(self.shm_config(engines), folder, "1", len(hosts), hosts=hosts)
        for number, rank in enumerate(ranks):
            self.assertEqual(rank.wait(timeout=60 * harness.SLOW), 0, self.rank_log(number))
        for engine in engines:
            self.assert_current(engine, "1", digests)
        self.assertEqual(self.ours(), [])

    def test_an_engine_of_another_host_is_told_at_once(self):
        engines = [self.shm_engine("e0"), self.shm_engine("far", "--host-id", "elsewhere")]
        folder, _ = self.model()
        code, report, text = self.push(self.shm_config(engines), folder, "1", ranks=2)
        self.assertEqual(code, 3, text)
        cause = report["first_cause"]
        self.assertEqual((cause["engine"], cause["code"]), ("far", "failed_precondition"))
        self.assertIn("elsewhere", cause["message"])
        boot = pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        self.assertIn(boot, cause["message"])
        self.assertEqual(report["attempts"], 1)
        for engine in engines:
            state = engine.state()
            self.assertTrue(state["paused"])
            self.assertEqual((state["session"], state["resumes"]), ("closed", []))

    def test_an_odd_host_id_is_refused(self):
        engine = self.shm_engine("e0")
        folder, _ = self.model()
        rank = self.ranks(self.shm_config([engine]), folder, "1", 1, hosts=["two words"])[0]
        self.assertEqual(rank.wait(timeout=20 * harness.SLOW), 2, self.rank_log(0))
        self.assertIn("PUSHROD_HOST_ID", self.rank_log(0))
        self.assertEqual(engine.journal("request"), [])


class Failures(ShmCase):
    def test_a_failure_at_each_chunk_is_mended_by_one_resend(self):
        folder, digests = self.model()
        for after in range(len(self.plain_chunks(folder))):
            with self.subTest(after=after):
                engines = [self.shm_engine(f"good{after}"),
                           self.shm_engine(f"bad{after}", "--world-size", "2")]
                engines[1].faults({"route": "update_weights", "nth": 1,
                                   "do": "fail_after_chunks", "after_chunks": after})
                code, report, text = self.push(self.shm_config(engines), folder, "1", ranks=3)
                self.assertEqual(code, 0, text)
                self.assertEqual((report["outcome"], report["attempts"]), ("recovered", 2))
                self.assertEqual(report["first_cause"]["engine"], engines[1].name)
                self.assertIn("injected failure", report["first_cause"]["message"])
                for engine in engines:
                    self.assert_current(engine, "1", digests)

    def test_layers_that_are_cut_by_chunks_are_whole_after_the_resend(self):
        # An engine that loaded a checkpoint knows its fused layers, and counts what it got of them.
        old = self.model("0", layers=4)[0]
        folder, digests = self.model("1", layers=4)
        for after in range(1, len(self.plain_chunks(folder))):
            with self.subTest(after=after):
                engine = self.shm_engine(f"e{after}", "--checkpoint", str(old))
                engine.faults({"route": "update_weights", "nth": 1,
                               "do": "fail_after_chunks", "after_chunks": after})
                code, report, text = self.push(self.shm_config([engine]), folder, "1", ranks=2)
                self.assertEqual(code, 0, text)
                self.assertEqual(report["outcome"], "recovered")
                self.assert_current(engine, "1", digests)

    def test_all_ranks_stop_together_when_both_attempts_fail(self):
        engines = [self.shm_engine("good"), self.shm_engine("bad")]
        folder, _ = self.model()
        engines[1].faults({"route": "update_weights", "nth": "every", "do": "fail_after_chunks",
                           "after_chunks": 1})
        ranks = self.ranks(self.shm_config(engines), folder, "1", 4)
        for number, rank in enumerate(ranks):
            self.assertEqual(rank.wait(timeout=60 * harness.SLOW), 3, self.rank_log(number))
            self.assertIn("injected failure", self.rank_log(number))
        for engine in engines:
            state = engine.state()
            self.assertTrue(state["paused"])
            self.assertEqual((state["session"], state["resumes"]), ("closed", []))
            # Two empty sessions and two real ones.
            self.assertEqual(len(engine.calls("start_weight_update")), 4)
        self.assertEqual(self.ours(), [])

    def test_an_answer_that_is_lost_after_its_chunk_was_read(self):
        engine = self.shm_engine("e0")
        folder, digests = self.model()
        engine.faults({"route": "update_weights", "nth": 2, "do": "apply_reset"})
        code, report, text = self.push(self.shm_config([engine]), folder, "1", ranks=2)
        self.assertEqual(code, 0, text)
        self.assertEqual(report["outcome"], "recovered")
        self.assert_current(engine, "1", digests)

    def test_an_engine_that_dies_at_a_chunk(self):
        engines = [self.shm_engine("good"), self.shm_engine("bad")]
        folder, _ = self.model()
        engines[1].faults({"route": "update_weights", "nth": 1, "do": "die_after_chunks",
                           "after_chunks": 1})
        code, report, text = self.push(self.shm_config(engines), folder, "1", ranks=2)
        self.assertEqual(code, 3, text)
        self.assertEqual(report["first_cause"]["engine"], "bad")
        state = engines[0].state()
        self.assertEqual((state["session"], state["resumes"]), ("closed", []))
        self.assertEqual(self.ours(), [])

    def test_an_engine_lost_at_a_chunk_is_left_out_under_quarantine(self):
        engines = [self.shm_engine("good"), self.shm_engine("bad"), self.engine("streamed")]
        folder, digests = self.model()
        engines[1].faults({"route": "update_weights", "nth": 1, "do": "die_after_chunks",
                           "after_chunks": 1})
        config = self.shm_config(engines, engines={"on_loss": "quarantine"})
        code, report, text = self.push(config, folder, "1", ranks=2)
        self.assertEqual(code, 0, text)
        self.assertEqual(report["dropped_engines"], ["bad"])
        for engine in (engines[0], engines[2]):
            self.assert_current(engine, "1", digests)

    def test_an_engine_that_never_answers_a_chunk_is_named(self):
        engines = [self.shm_engine("good"), self.shm_engine("stuck")]
        folder, _ = self.model()
        engines[1].faults({"route": "update_weights", "nth": 1, "do": "stop_reading",
                           "after_chunks": 1})
        config = self.shm_config(engines, timeouts={"request": "2s", "drain": "1s", "push": "30s",
                                                    "shutdown": "2s"})
        code, report, text = self.push(config, folder, "1", ranks=2)
        self.assertEqual(code, 3, text)
        self.assertEqual(report["first_cause"]["engine"], "stuck")
        self.assertEqual(engines[0].state()["resumes"], [])


class Memory(ShmCase):
    def test_a_tensor_above_the_buffer_is_refused_before_the_pause(self):
        engine = self.shm_engine("e0")
        folder, _ = self.model()
        config = self.shm_config([engine], transport={"buffer": "4KiB"})
        code, report, text = self.push(config, folder, "1", ranks=2)
        self.assertEqual(code, 3, text)
        self.assertIn("transport.buffer", report["first_cause"]["message"])
        self.assertIn(str(256 * 16 * 2), report["first_cause"]["message"])
        self.assertEqual(report["first_cause"]["phase"], "prepare")
        self.assertEqual(engine.calls("pause"), [])

    def test_no_room_for_the_segment_is_found_before_the_pause(self):
        engine = self.shm_engine("e0")
        folder, _ = self.model()

        def limit():
            # A write beyond it is an error, not the program's end.
            signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
            resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))

        report = self.folder / "report.json"
        done = subprocess.run(
            self.command(self.shm_config([engine]), folder, "1", "--rank", "0", "--world-size",
                         "1", "--report", str(report)),
            preexec_fn=limit, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, timeout=30 * harness.SLOW, check=False)
        text = done.stdout.decode(errors="replace")
        self.assertEqual(done.returncode, 3, text)
        self.assertIn("shared memory segment", text)
        self.assertIn("transport.buffers", text)
        self.assertEqual(engine.calls("pause"), [])
        self.assertEqual(self.ours(), [])

    def test_what_killed_ranks_left_is_removed_by_the_next_start(self):
        engine = self.shm_engine("e0", "--host-id", "one")
        folder, digests = self.model()
        engine.faults({"route": "update_weights", "nth": 2, "do": "hang"})
        ranks = self.ranks(self.shm_config([engine]), folder, "1", 2, hosts=["one", "two"])
        self.await_that(lambda: len(engine.calls("update_weights")) > 1, 30, "the second chunk")
        for rank in ranks:
            rank.kill()
            rank.wait()
        # Each of the two hosts had a segment and its lock.
        left = self.ours()
        self.assertEqual(len(left), 4, left)
        other = self.checkpoint("other", harness.layered("2", 1, 16))[0]
        living = self.shm_engine("living")
        living.faults({"route": "update_weights", "nth": 1, "do": "delay", "seconds": 3})
        config = self.shm_config([living], job={"job": f"test-{os.getpid()}.b"})
        running = self.ranks(config, other, "2", 1)[0]
        self.await_that(lambda: living.calls("update_weights"), 30, "the living job's first chunk")
        # The living job's start has removed them; another start leaves the living one's alone.
        kept = self.ours()
        self.assertEqual(len(kept), 2, kept)
        self.assertFalse(set(kept) & set(left))
        fresh = self.shm_engine("fresh")
        code, _, text = self.push(self.shm_config([fresh]), folder, "1", ranks=2)
        self.assertEqual(code, 0, text)
        self.assert_current(fresh, "1", digests)
        self.assertEqual(running.wait(timeout=30 * harness.SLOW), 0, self.rank_log(0))
        self.assertEqual(self.ours(), [])

    def test_a_signal_leaves_nothing(self):
        engine = self.shm_engine("e0")
        folder, _ = self.model()
        engine.faults({"route": "update_weights", "nth": 1, "do": "delay", "seconds": 2})
        rank = self.ranks(self.shm_config([engine]), folder, "1", 1)[0]
        self.await_that(lambda: engine.calls("update_weights"), 30, "the first chunk")
        rank.send_signal(signal.SIGTERM)
        self.assertEqual(rank.wait(timeout=30 * harness.SLOW), 143, self.rank_log(0))
        self.assertEqual(self.ours(), [])
        state = engine.state()
        self.assertTrue(state["paused"])
        self.assertEqual(state["session"], "closed")


if __name__ == "__main__":
    unittest.main(verbosity=2)
