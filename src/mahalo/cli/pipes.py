"""Output to a reader that may go away, such as `head`."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import TextIO

__all__ = ["discard_output", "print_error_line"]


def discard_output(stream: TextIO) -> None:
    """Discard all further output to a standard stream: at exit Python would fail to write the rest."""
    with contextlib.suppress(OSError, ValueError):  # a stream without a descriptor
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def print_error_line(text: str) -> None:
    """Print a line on standard error; the work goes on if nobody reads it."""
    try:
        print(text, file=sys.stderr, flush=True)
    except BrokenPipeError:
        discard_output(sys.stderr)
