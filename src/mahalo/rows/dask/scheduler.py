"""Execution of Dask tasks on the current scheduler, with progress and with readable errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import dask
from dask.base import get_scheduler
from dask.callbacks import Callback
from dask.delayed import Delayed

if TYPE_CHECKING:
    from distributed import Client

Show = Callable[[str], None]

_LOST_CONNECTION = ("FutureCancelledError", "CancelledError", "CommClosedError", "ClosedClientError")


def run(tasks: list[Delayed], what: str, show: Show | None = None) -> tuple:
    """Compute all tasks; call `show`, if not None, with a line on the number of tasks done."""
    with _readable_errors(what):
        if show is None:
            return dask.compute(*tasks)
        client = getattr(get_scheduler(), "__self__", None)
        if client is not None and hasattr(client, "scheduler_info"):
            return _run_on_cluster(client, tasks, what, show)
        with _TaskCounter(what, show):
            return dask.compute(*tasks)


@contextmanager
def _readable_errors(what: str) -> Iterator[None]:
    """Replace errors of a cluster by errors with a remedy; errors about the data are passed on."""
    try:
        yield
    except Exception as error:
        name = type(error).__name__
        if name == "KilledWorker":
            raise RuntimeError(
                f"{what}: workers died again and again on the same block, as they do when it does not fit into their "
                "memory. Make blocks smaller (X.rechunk, or repartition), or give workers more memory."
            ) from error
        if name in _LOST_CONNECTION:
            raise ConnectionError(
                f"{what}: the connection to the Dask scheduler was lost. Nothing was learned; connect a new Client and "
                "fit again."
            ) from error
        raise


def _progress_bar(what: str, done: int, total: int) -> str:
    filled = round(20 * done / max(total, 1))
    return f"{what}: [{'█' * filled}{'·' * (20 - filled)}] {done} of {total} tasks"


class _TaskCounter(Callback):
    """Progress of Dask's single-machine schedulers."""

    def __init__(self, what: str, show: Show) -> None:
        super().__init__()
        self.what, self.show = what, show

    def _start_state(self, dsk: object, state: dict) -> None:
        self.n_tasks = sum(len(state[kind]) for kind in ("ready", "waiting", "running", "finished"))

    def _posttask(self, key: object, result: object, dsk: object, state: dict, worker_id: object) -> None:
        self.show(_progress_bar(self.what, len(state["finished"]), self.n_tasks))


def _run_on_cluster(client: Client, tasks: list[Delayed], what: str, show: Show) -> tuple:
    from distributed.diagnostics.progressbar import TextProgressBar

    class ProgressBar(TextProgressBar):
        """Progress of a distributed cluster, passed to `show`."""

        def _draw_bar(self, remaining: int, all: int, **kwargs: object) -> None:
            show(_progress_bar(what, all - remaining, all))

        def _draw_stop(self, **kwargs: object) -> None:
            pass

    futures = client.compute(tasks)
    assert client.scheduler is not None
    ProgressBar(futures, scheduler=client.scheduler.address)
    return tuple(client.gather(futures))
