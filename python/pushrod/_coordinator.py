# SPDX-License-Identifier: Apache-2.0
"""The coordinator: one trainer rank's handle on pushes."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import signal
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, NoReturn

from . import _log, _ranks
from ._errors import ConfigError, Error, PushError, RefusedError
from ._manifest import TensorSpec, Weights
from ._native import core
from ._report import Progress, Report

# Within the 2 s that the interpreter's end may take with a push under way.
_EXIT_SECONDS = 1.5
# Above timeouts.shutdown's default, within which a cancelled push ends.
_CLOSE_SECONDS = 30.0

_open: weakref.WeakSet[Coordinator] = weakref.WeakSet()


@atexit.register
def _end_all() -> None:
    """Before the interpreter ends: from here on no thread of ours asks for it."""
    core.set_finalizing()
    left = [coordinator._native for coordinator in _open]
    for native in left:
        with contextlib.suppress(core.StatusError):  # closed, or made by the process that forked this one
            native.cancel("the Python interpreter ends")
    end = time.monotonic() + _EXIT_SECONDS
    for native in left:
        native.close(max(0.0, end - time.monotonic()))


def _load_config(config: str | os.PathLike[str] | Mapping[str, Any]) -> core.Config:
    try:
        if isinstance(config, Mapping):
            # JSON is YAML; what is no plain value is refused here.
            return core.Config.parse(json.dumps(config, indent=1), "config")
        return core.Config.load(os.fspath(config))
    except core.StatusError as error:
        raise ConfigError(error.args[1], error.args[0]) from None
    except TypeError as error:
        raise ConfigError(
            f"the configuration is neither a path nor a dict of plain values: {error}"
        ) from None


def _refuse(error: core.StatusError) -> NoReturn:
    code, message = error.args
    raise RefusedError(message, code) from None


def _on_main_thread() -> bool:
    """Whether a SIGINT means KeyboardInterrupt in this thread."""
    is_main = threading.current_thread() is threading.main_thread()
    return is_main and signal.getsignal(signal.SIGINT) is signal.default_int_handler


class Coordinator:
    """One rank's handle on pushes; every rank of the job makes one and calls the same functions in the same
    order. One thread at a time; `cancel` and `log_state` from any.

    config: a path of a YAML file, or a dict of the same keys.
    rank, world_size: who this rank is. Without them: torch.distributed where it is initialised, then what
        the launcher set in the environment.
    store: where the ranks meet, instead of `ranks.store`. Under torch.distributed and without either, the
        first rank offers a port of its own, which is a collective of the group.
    group: a torch.distributed group, for trainers whose job has other ranks too.
    flight_record: the folder for records of pushes that failed or were resent; None for none.
    """

    def __init__(
        self,
        config: str | os.PathLike[str] | Mapping[str, Any],
        *,
        rank: int | None = None,
        world_size: int | None = None,
        store: str | None = None,
        group: Any = None,
        flight_record: str | os.PathLike[str] | None = ".",
    ) -> None:
        loaded = _load_config(config)
        self._config = loaded
        ranks = _ranks.find(loaded.store, rank, world_size, store, group)
        _ranks.check_watchdog(loaded.gather_seconds, group)
        self._ranks = ranks
        self._last_report: Report | None = None
        folder = "" if flight_record is None else os.fspath(flight_record)
        try:
            self._native = core.Coordinator(
                loaded,
                ranks.rank,
                ranks.world_size,
                ranks.local_rank,
                ranks.store,
                folder,
                _log.writer(loaded.job),
            )
        except core.StatusError as error:
            ranks.release()
            raise ConfigError(error.args[1], error.args[0]) from None
        _open.add(self)

    def __enter__(self) -> Coordinator:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def rank(self) -> int:
        """This rank's number among the ranks that push."""
        return self._native.rank

    @property
    def world_size(self) -> int:
        """How many ranks push together."""
        return self._native.world_size

    @property
    def metrics_address(self) -> str:
        """Host and port of this rank's metrics, empty where it serves none."""
        return self._native.metrics_address

    @property
    def last_report(self) -> Report | None:
        """The report of the last push, whatever it came to; also after a KeyboardInterrupt."""
        return self._last_report

    def connect(self) -> None:
        """The ranks meet, within `timeouts.connect`. A collective of all ranks, which the first push does
        too: called early it tells early which rank is missing. No engine is contacted."""
        try:
            self._native.connect()
        except core.StatusError as error:
            _refuse(error)
        self._ranks.release()

    def set_engines(self, engines: Sequence[str | Mapping[str, Any]]) -> None:
        """Replaces `engines.list` before the next push. Rank 0's call counts, on others it does nothing.
        Each engine is an address or a dict with the keys of `engines.list`."""
        entries = [{"url": each} if isinstance(each, str) else dict(each) for each in engines]
        parsed = _load_config({"engines": {"list": entries}})
        try:
            self._native.set_engines(parsed)
        except core.StatusError as error:
            _refuse(error)

    def push(
        self,
        version: str,
        weights: Weights,
        *,
        manifest: Iterable[TensorSpec] | None = None,
        draft_weights: Weights | None = None,
        abort: Callable[[], object] | None = None,
        recover: Callable[[], bool] | None = None,
        progress: Callable[[Progress], object] | None = None,
    ) -> Report:
        """Moves one version of the model to every engine and lets generation go on. A collective of all
        ranks; returns by `timeouts.push`.

        weights: starts one pass and returns an iterable of (name, tensor). Iterating it may be a collective
            of the trainer's; a resend calls it again. A tensor is read until the next one is asked for.
        manifest: what the pass will yield. Without it one extra pass declares it, at the first push only.
        draft_weights: the draft model's pass, in the same push after the target's: both or none are
            published. Declared by an extra pass at the first push.
        abort: ends an iteration that is blocked in a collective; called from another thread, perhaps again.
        recover: makes the trainer's groups usable again after a pass in which an iteration failed. Without
            it such a push is not resent.
        progress: called at most every 100 ms from another thread.

        Raises RefusedError when nothing was sent and PushError when the push failed; an exception that left
        `weights` is its cause. Ctrl-C ends the push on all ranks and raises KeyboardInterrupt.
        """
        self._check(version, weights, draft_weights)
        answers: list[tuple[str, str, str, str, str, BaseException | None]] = []
        self._last_report = None
        try:
            self._native.push(
                version,
                weights,
                manifest,
                draft_weights,
                abort,
                recover,
                None if progress is None else _progress_writer(progress),
                _on_main_thread(),
                answers,
            )
        except core.StatusError as error:
            _refuse(error)
        finally:
            # Also when a KeyboardInterrupt was raised as the push returned.
            if answers and answers[0][0]:
                self._last_report = Report.from_json(answers[0][0], answers[0][1])
        self._ranks.release()
        return self._result(*answers[0][2:])

    def _result(self, outcome: str, code: str, message: str, cause: BaseException | None) -> Report:
        report = self._last_report
        if cause is not None and not isinstance(cause, Exception):
            raise cause  # KeyboardInterrupt or SystemExit, from inside the iteration
        if report is None:
            if code in ("invalid_argument", "failed_precondition"):
                raise RefusedError(message, code) from cause
            raise PushError(message, code) from cause
        if outcome in ("done", "recovered"):
            return report
        kind = RefusedError if outcome == "refused" else PushError
        raise kind(report.summary, code, report) from cause

    @staticmethod
    def _check(version: object, weights: object, draft_weights: object) -> None:
        if not isinstance(version, str):
            raise TypeError(f"version is {version!r}, not a str")
        for name, value in (("weights", weights), ("draft_weights", draft_weights)):
            if not callable(value) and not (name == "draft_weights" and value is None):
                raise TypeError(
                    f"{name} is a {type(value).__name__}: give a function that starts a pass, such as "
                    f"lambda: model.named_parameters(), since a resend needs a second one"
                )

    def cancel(self, reason: str = "cancelled by the trainer") -> None:
        """Ends the running push on all ranks as a failed one. Any thread."""
        try:
            self._native.cancel(reason)
        except core.StatusError as error:
            _refuse(error)

    def log_state(self) -> None:
        """Logs what the running push waits for. Any thread."""
        try:
            self._native.log_state()
        except core.StatusError as error:
            _refuse(error)

    def close(self) -> None:
        """Ends what runs and lets go of everything. A paused engine stays paused. May be called again."""
        try:
            ended = self._native.close(_CLOSE_SECONDS)
        except core.StatusError as error:
            _refuse(error)
        self._ranks.release()
        _open.discard(self)
        if not ended:
            raise Error(
                f"a push was still running {_CLOSE_SECONDS:g} s after it was cancelled", "deadline_exceeded"
            )


def _progress_writer(progress: Callable[[Progress], object]) -> Callable[..., None]:
    def write(*fields: Any) -> None:
        progress(Progress(*fields))

    return write
