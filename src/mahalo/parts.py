"""Work that goes part by part, and whoever watches it: rooms that know nothing of printing say how far they are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

__all__ = ["in_parts", "watched_by"]

T = TypeVar("T")
Watch = Callable[[int, int], None]

_watch: ContextVar[Watch | None] = ContextVar("watch", default=None)


def in_parts(work: Iterable[T], n: int) -> Iterator[T]:
    """The n parts of some work, one by one; before each of them whoever watches is told (parts done, n).

    Of work inside work only the outer is told of.
    """
    watch = _watch.get()
    if watch is None:
        yield from work
        return
    with watched_by(None):
        for done, part in enumerate(work):
            watch(done, n)
            yield part


@contextmanager
def watched_by(watch: Watch | None) -> Iterator[None]:
    """Inside, `watch` is told of every part."""
    token = _watch.set(watch)
    try:
        yield
    finally:
        _watch.reset(token)
