"""Work on whatever scheduler is at hand: shown while it goes on, and its failures in words."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import dask
from dask.base import get_scheduler
from dask.callbacks import Callback
from dask.delayed import Delayed

__all__ = ["Show", "run"]

Show = Callable[[str], None]

_LOST = ("FutureCancelledError", "CancelledError", "CommClosedError", "ClosedClientError")


def run(tasks: list[Delayed], what: str, show: Show | None = None) -> tuple:
    """The results of all of them; `show` is told how many tasks are done."""
    with _explained(what):
        if show is None:
            return dask.compute(*tasks)
        client = getattr(get_scheduler(), "__self__", None)
        if hasattr(client, "scheduler_info"):
            return _watched_on_cluster(client, tasks, what, show)
        with _Counter(what, show):
            return dask.compute(*tasks)


@contextmanager
def _explained(what: str) -> Iterator[None]:
    """Errors of a cluster in words; errors about the data pass as they are."""
    try:
        yield
    except Exception as error:
        name = type(error).__name__
        if name == "KilledWorker":
            raise RuntimeError(
                f"{what}: workers died again and again on the same block, as they do when it does not fit into their "
                "memory. Make blocks smaller (X.rechunk, or repartition), or give workers more memory."
            ) from error
        if name in _LOST:
            raise ConnectionError(
                f"{what}: the connection to the Dask scheduler was lost. Nothing was learned; connect a new Client and "
                "fit again."
            ) from error
        raise


def _progress(what: str, done: int, total: int) -> str:
    filled = round(20 * done / max(total, 1))
    return f"{what}: [{'█' * filled}{'·' * (20 - filled)}] {done} of {total} tasks"


class _Counter(Callback):
    """Counts tasks of the schedulers of this machine."""

    def __init__(self, what: str, show: Show) -> None:
        super().__init__()
        self.what, self.show = what, show

    def _start_state(self, dsk: Any, state: dict) -> None:
        self.n_tasks = sum(len(state[kind]) for kind in ("ready", "waiting", "running", "finished"))

    def _posttask(self, key: Any, result: Any, dsk: Any, state: dict, worker_id: Any) -> None:
        self.show(_progress(self.what, len(state["finished"]), self.n_tasks))


def _watched_on_cluster(client: Any, tasks: list[Delayed], what: str, show: Show) -> tuple:
    from distributed.diagnostics.progressbar import TextProgressBar

    class Told(TextProgressBar):
        """distributed's bar, with our words in the place of its own."""

        def _draw_bar(self, remaining: int, all: int, **kwargs: Any) -> None:
            show(_progress(what, all - remaining, all))

        def _draw_stop(self, **kwargs: Any) -> None:
            pass

    futures = client.compute(tasks)
    Told(futures, scheduler=client.scheduler.address)
    return tuple(client.gather(futures))
