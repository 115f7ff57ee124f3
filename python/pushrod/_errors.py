# SPDX-License-Identifier: Apache-2.0
"""What pushrod raises."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._report import Report


class Error(Exception):
    """Anything that pushrod raises. `code` says what kind of failure it is, as in reports."""

    def __init__(self, message: str, code: str = "internal") -> None:
        super().__init__(message)
        self.code = code


class ConfigError(Error):
    """The configuration or an argument of the coordinator is wrong. The message holds every fault."""

    def __init__(self, message: str, code: str = "invalid_argument") -> None:
        super().__init__(message, code)


class RefusedError(Error):
    """No push was made and nothing was sent. `report` is None when it was refused on this rank alone."""

    def __init__(self, message: str, code: str = "invalid_argument", report: Report | None = None) -> None:
        super().__init__(message, code)
        self.report = report


class PushError(Error):
    """The push failed; `report` has each engine's state. It is None when this rank could not learn how
    the push ended."""

    def __init__(self, message: str, code: str = "internal", report: Report | None = None) -> None:
        super().__init__(message, code)
        self.report = report
