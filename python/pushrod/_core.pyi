# SPDX-License-Identifier: Apache-2.0
# The native module. Its names are no interface for users.
from collections.abc import Callable, Iterable
from typing import Any

__version__: str

class StatusError(Exception):
    """args: (code, message)."""

class Config:
    @staticmethod
    def load(path: str) -> Config: ...
    @staticmethod
    def parse(text: str, name: str) -> Config: ...
    def effective(self) -> str: ...
    @property
    def job(self) -> str: ...
    @property
    def store(self) -> str: ...
    @property
    def gather_seconds(self) -> float: ...

class Coordinator:
    def __init__(
        self,
        config: Config,
        rank: int | None,
        world_size: int | None,
        local_rank: int | None,
        store: str | None,
        flight_record: str,
        log: Callable[[int, int, str], None],
    ) -> None: ...
    def connect(self) -> None: ...
    def push(
        self,
        version: str,
        weights: Callable[[], Any],
        manifest: Iterable[Any] | None,
        draft_weights: Callable[[], Any] | None,
        abort: Callable[[], object] | None,
        recover: Callable[[], bool] | None,
        progress: Callable[..., None] | None,
        watch_interrupt: bool,
        answers: list[tuple[str, str, str, str, str, BaseException | None]],
    ) -> None: ...
    def set_engines(self, config: Config) -> None: ...
    def cancel(self, reason: str) -> None: ...
    def log_state(self) -> None: ...
    def close(self, limit_seconds: float) -> bool: ...
    @property
    def metrics_address(self) -> str: ...
    @property
    def rank(self) -> int: ...
    @property
    def world_size(self) -> int: ...

def read_manifest(weights: Callable[[], Any]) -> list[tuple[str, str, tuple[int, ...]]]: ...
def set_finalizing() -> None: ...
