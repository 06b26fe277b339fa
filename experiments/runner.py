"""Run experiments, show what they found, keep it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bars

from mahalo.drawing import require_matplotlib

from . import EXPERIMENTS, results
from .data import cache_folder
from .outcome import Progress, Settings

__all__ = ["run"]


def run(names: Sequence[str], *, quick: bool, seed: int, out: Path, plot: bool) -> list[str]:
    """Run the experiments one after the other; returns the names of those that failed, whose errors were printed."""
    unknown = sorted(set(names) - {*EXPERIMENTS, "all"})
    if unknown:
        raise ValueError(f"no experiment called {', '.join(unknown)}; there are {', '.join(EXPERIMENTS)}, and all")
    if plot:
        require_matplotlib()
    results.prepare_folder(out)
    wanted = list(EXPERIMENTS) if "all" in names else list(dict.fromkeys(names))
    settings = Settings(quick=quick, seed=seed, cache=cache_folder() / "experiments")
    console, errors = Console(), Console(stderr=True)
    failed = []
    for name in wanted:
        try:
            record = _recorded(name, settings, errors)
        except (ImportError, OSError, ValueError) as error:
            if len(wanted) == 1:
                raise
            errors.print(f"{name}: {error}", style="bold red", markup=False, highlight=False)
            failed.append(name)
            continue
        results.show(record, console)
        for path in results.write(record, out, picture=plot):
            console.print(f"[cyan]written[/cyan] {path}", soft_wrap=True, highlight=False)
    results.write_index(out)
    return failed


def _recorded(name: str, settings: Settings, console: Console) -> results.Record:
    try:
        module = import_module(f"{__package__}.{name}")
    except ModuleNotFoundError as error:
        raise ImportError(f"{name} needs {error.name}: pip install 'mahalo[experiments]'") from None
    began = time.perf_counter()
    with _shown(name, console) as progress:
        outcome = module.run(settings, progress)
    return results.Record(
        outcome=outcome,
        command=f"python -m experiments {name} --seed {settings.seed}" + (" --quick" if settings.quick else ""),
        quick=settings.quick,
        seed=settings.seed,
        seconds=time.perf_counter() - began,
        environment=results.environment(),
    )


@contextmanager
def _shown(name: str, console: Console) -> Iterator[Progress]:
    """A bar for each stage with the time it has taken and is going to take; plain lines where nobody watches."""
    if not console.is_terminal:
        yield _lines(name, console)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("remaining"),
        TimeRemainingColumn(),
    )
    # Steps may take minutes: the speed is that of the whole stage, not of the last seconds.
    with Bars(*columns, console=console, speed_estimate_period=86_400) as bars:
        tasks: dict[str, TaskID] = {}

        def progress(stage: str, done: int, total: int) -> None:
            if stage not in tasks:
                tasks[stage] = bars.add_task(f"{name}: {stage}", total=total)
            bars.update(tasks[stage], completed=done, total=total)

        yield progress


def _lines(name: str, console: Console) -> Progress:
    began = time.perf_counter()

    def progress(stage: str, done: int, total: int) -> None:
        elapsed = time.perf_counter() - began
        console.print(f"{name}: {stage} {done}/{total}, {elapsed:.0f} s", markup=False, highlight=False, soft_wrap=True)

    return progress
