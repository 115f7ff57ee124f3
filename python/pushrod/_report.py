# SPDX-License-Identifier: Apache-2.0
"""The push report as values; docs/report.md tells what each field means."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Cause:
    """The first cause of a failure."""

    code: str
    phase: str | None
    rank: int | None
    engine: str | None
    attempt: int | None
    message: str


@dataclass(frozen=True)
class EngineReport:
    """One engine at the end of a push."""

    name: str
    url: str
    outcome: str
    version: str | None
    paused: bool | None
    session: str
    content: str | None
    reply_lag: int
    bytes: int
    error: str | None
    remedy: str | None


@dataclass(frozen=True)
class Report:
    """One push. `engines` is filled on rank 0."""

    version: str
    outcome: str
    attempts: int
    resent: bool
    started_at: str
    duration_s: float
    paused_s: float
    bytes: int
    tensors: int
    ranks: int
    dropped_engines: list[str]
    first_cause: Cause | None
    notes: list[str]
    phases: dict[str, float]
    engines: list[EngineReport]
    casts: int
    summary: str = field(compare=False)
    _raw: dict[str, Any] = field(repr=False, compare=False)

    def to_dict(self) -> dict[str, Any]:
        """The report as `pushrod push --report` writes it."""
        return json.loads(json.dumps(self._raw))  # type: ignore[no-any-return]

    @classmethod
    def from_json(cls, text: str, summary: str) -> Report:
        raw: dict[str, Any] = json.loads(text)
        values = dict(raw)
        cause = values["first_cause"]
        values["first_cause"] = None if cause is None else Cause(**cause)
        values["engines"] = [EngineReport(**engine) for engine in values["engines"]]
        return cls(summary=summary, _raw=raw, **values)


@dataclass(frozen=True)
class Progress:
    """Where a running push stands, for `progress`. `tensors` and `bytes` are those gathered on this rank
    in this pass; `engines_ready` have reached the phase's goal, on rank 0."""

    phase: str
    attempt: int
    tensors: int
    bytes: int
    total_tensors: int
    total_bytes: int
    engines: int
    engines_ready: int
