"""Limits of a request."""

from __future__ import annotations

MAX_BODY = 8 << 20  # bytes
MAX_ROWS = 1_000  # in one list
MAX_K = 1_000
MAX_ANSWER = 100_000  # neighbours or distances
MAX_WAITING = 32  # requests that are read or answered at a time
READ_SECONDS = 30.0  # for a body
DEFAULT_K = 10
