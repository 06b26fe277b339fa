"""Exclusive lock on an open file, which the operating system releases if the process is killed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

if sys.platform == "win32":
    import msvcrt
    import os

    _FAR = 1 << 40  # a byte beyond all contents, so that the lock does not hinder readers

    def _lock(descriptor: int) -> None:
        os.lseek(descriptor, _FAR, os.SEEK_SET)
        while True:
            try:
                msvcrt.locking(descriptor, msvcrt.LK_LOCK, 1)  # gives up after ten tries, one a second
                return
            except OSError:
                continue

    def _unlock(descriptor: int) -> None:
        os.lseek(descriptor, _FAR, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX)

    def _unlock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_UN)


@contextmanager
def locked(descriptor: int) -> Iterator[None]:
    """Hold the lock of an open file; wait until no other process has it."""
    _lock(descriptor)
    try:
        yield
    finally:
        _unlock(descriptor)
