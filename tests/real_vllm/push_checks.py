# SPDX-License-Identifier: Apache-2.0
"""What must hold for pushes into a real server. Each check takes a Scene, leaves the server serving
a complete version, and raises pushing.Failed when something else was seen."""

import threading

from pushing import ANSWER_LIMIT, PROMPTS, equal, expect


class Scene:
    """One server that was started on checkpoint `a`, its user, and trainers that push into it."""

    def __init__(self, server, user, trainer, folders, tokens, versions):
        self.server, self.user, self.trainer = server, user, trainer
        self.versions = versions  # whether the release tells them: from 0.27
        self.folders, self.tokens = folders, tokens  # by checkpoint: "a" and "b"
        self.pushed = 0

    def push(self, which, trainer=None):
        """A clean push, after which every token is the checkpoint's."""
        self.pushed += 1
        version = f"{which}-{self.pushed}"
        done = (trainer or self.trainer()).push(self.folders[which], version).good()
        self.serves(which, version)
        return done

    def serves(self, which, version=None):
        equal(self.user.paused(), False, "paused")
        equal(self.user.tokens(), self.tokens[which], f"tokens of checkpoint {which}")
        if version is not None:
            self.says(version)

    def says(self, version):
        if self.versions:
            equal(self.user.version(), version, "version")


def other_weights_give_other_tokens(scene):
    """Pushed weights generate what a server would that was started on them, and so do the old ones
    when they are pushed back."""
    for one, other in zip(scene.tokens["a"], scene.tokens["b"]):
        expect(one != other, "both checkpoints generate the same")
    scene.serves("a")
    scene.push("b")
    scene.push("a")


def ten_pushes(scene):
    for number in range(10):
        scene.push("ba"[number % 2])


def running_requests_go_on(scene):
    """A request that runs when the push begins gets all its tokens."""
    answers = []
    request = threading.Thread(
        target=lambda: answers.append(scene.user.generate(PROMPTS[0], length=400)))
    request.start()
    scene.push("b")
    request.join(timeout=ANSWER_LIMIT)
    equal([len(answer) for answer in answers], [400], "tokens of the request")
    equal(answers[0][:len(scene.tokens["a"][0])], scene.tokens["a"][0], "its first tokens")


def kept_out(scene, trainer, *texts):
    """The push is refused before anything is paused, and says what to do."""
    done = trainer.push(scene.folders["b"], "kept-out")
    equal((done.code, done.report["outcome"], done.report["attempts"]), (3, "failed", 1), done.text)
    for text in texts:
        expect(text in done.report["first_cause"]["message"], done.report["first_cause"])
    equal(done.report["first_cause"]["phase"], "connect", "phase")
    equal(scene.user.tokens(), scene.tokens["a"], "tokens of checkpoint a")


def other_transports(scene):
    kept_out(scene, scene.trainer("tcp"), "the weight transfer backend \"pushrod_shm\"",
             "--weight-transfer-config '{\"backend\":\"pushrod_tcp\"}'")


def no_backend(scene):
    kept_out(scene, scene.trainer(), "no weight transfer backend", "the package pushrod",
             "--weight-transfer-config '{\"backend\":\"pushrod_tcp\"}'")


def no_dev_mode(scene):
    kept_out(scene, scene.trainer(), "VLLM_SERVER_DEV_MODE=1")


def refused(scene, folder, text):
    """A push of a checkpoint that the model cannot take fails, resent once, and says why; the
    server stays paused, and the next job's first push is clean."""
    done = scene.trainer().push(folder, "refused")
    equal((done.code, done.report["outcome"], done.report["attempts"]), (3, "failed", 2), done.text)
    expect(text in done.report["first_cause"]["message"], done.report["first_cause"])
    equal(scene.user.paused(), True, "paused")
    expect(not scene.versions or scene.user.version() != "refused",
           "the version of the failed push is there")
    scene.push("b")


def unknown_names(scene):
    refused(scene, scene.folders["unknown"], "nonsense")


def wrong_shapes(scene):
    refused(scene, scene.folders["shape"], "the model's loader refused what was pushed")


def trainers_that_throw(scene):
    """A rank's source throws in mid-stream, once: recovered with the resend."""
    trainer = scene.trainer()
    trainer.end(trainer.begin_drill(
        [{"rank": 1, "at": {"tensor": 8}, "kind": "throw", "times": 1}])).good("recovered")
    scene.says("drill")
    scene.push("b")


def trainers_that_die(scene):
    """The trainer is killed in mid-stream; the first push of the next one is clean."""
    trainer = scene.trainer()
    running = trainer.begin_drill([{"rank": 1, "at": {"tensor": 8}, "kind": "hang", "seconds": 100}])
    trainer.wait_phase(running, "stream")
    running.kill()
    running.communicate(timeout=30)
    scene.push("b")


def servers_that_die(scene, kill):
    """The server is killed in mid-stream and started again on the old checkpoint: the push fails,
    naming it, within the time that finding a dead engine takes, and the next one is clean."""
    trainer = scene.trainer()
    running = trainer.begin_drill([{"rank": 1, "at": {"tensor": 8}, "kind": "hang", "seconds": 20}])
    trainer.wait_phase(running, "stream")
    kill(scene.server)
    done = trainer.end(running)
    equal((done.code, done.report["outcome"]), (3, "failed"), done.text)
    expect(done.report["engines"][0]["outcome"] in ("lost", "unknown"), done.report["engines"])
    scene.server.restart()
    scene.serves("a")
    scene.push("b")


def killed_servers(scene):
    servers_that_die(scene, lambda server: server.kill_all())


def killed_workers(scene):
    servers_that_die(scene, lambda server: server.kill_named("VLLM::Worker"))


def restarted_servers(scene):
    """A server that is started again on the old checkpoint after it has taken the weights does not
    pass for one that has them: it is sent them again."""
    trainer = scene.trainer()
    running = trainer.begin_drill(
        [{"rank": 0, "at": {"phase": "verify"}, "kind": "hang", "seconds": 150}])
    trainer.wait_phase(running, "verify")
    scene.server.kill_all()
    scene.server.restart()
    done = trainer.end(running).good("recovered")
    equal(done.report["attempts"], 2, "attempts")
    scene.says("drill")
    scene.push("b")
