# SPDX-License-Identifier: Apache-2.0
"""An exception as one line, short enough to travel to every rank with the vote."""

import os
import traceback

_LONGEST_TEXT = 200
_MOST_FRAMES = 6


def one_line(error: BaseException) -> str:
    """The exception and where it was raised, innermost frame first, since what is too long is cut."""
    text = " ".join(traceback.format_exception_only(type(error), error)[-1].split())
    if len(text) > _LONGEST_TEXT:
        text = text[:_LONGEST_TEXT] + "..."
    frames = traceback.extract_tb(error.__traceback__)
    places = [f"{os.path.basename(frame.filename)}:{frame.lineno} in {frame.name}" for frame in frames]
    if not places:
        return text
    innermost = places[::-1][:_MOST_FRAMES]
    return f"{text} ({', called from '.join(innermost)})"
