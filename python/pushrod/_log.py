# SPDX-License-Identifier: Apache-2.0
"""Pushrod's log texts go to the logger "pushrod"."""

import logging
from collections.abc import Callable

logger = logging.getLogger("pushrod")

# By the native module's own levels.
_LEVELS = (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR)


def writer(job: str) -> Callable[[int, int, str], None]:
    """What takes a coordinator's texts. It knows no coordinator, so that it keeps none alive."""

    def write(rank: int, level: int, text: str) -> None:
        extra = {"pushrod_job": job, "pushrod_rank": rank}
        logger.log(_LEVELS[level], "%s[%d] %s", job, rank, text, extra=extra)

    return write
