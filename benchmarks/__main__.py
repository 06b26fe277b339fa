"""`python -m benchmarks [name …] [--quick] [--fresh] [--json FILE]`: run, print, say what does not hold."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from .report import Check, Report, Status, show, show_summary
from .settings import Settings
from .timing import environment

# Short ones first.
NAMES = (
    "overhead",
    "choosing",
    "gammas",
    "search",
    "pairs",
    "suspects",
    "studio",
    "serve",
    "feedback",
    "duplicates",
    "texts",
    "online",
    "dask",
    "commands",
    "losses",
    "adapting",
    "scale",
    "algorithm1",
    "logdet",
    "accuracy",
)


def main(
    names: Annotated[list[str] | None, typer.Argument(help=f"Which of {', '.join(NAMES)}; all if none.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Smaller problems, shorter time limits.")] = False,
    fresh: Annotated[bool, typer.Option("--fresh", help="Run the peers again, whatever is cached.")] = False,
    time_limit: Annotated[float | None, typer.Option(help="Longest fit of a peer, in seconds.")] = None,
    seed: Annotated[int, typer.Option(help="Draws the splits of `accuracy`.")] = 0,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="All numbers to this file; what is printed to .txt beside it.")
    ] = None,
) -> None:
    """Run mahalo and its peers on the same problems and compare."""
    unknown = sorted(set(names or ()) - set(NAMES))
    if unknown:
        raise typer.BadParameter(f"no benchmark called {', '.join(unknown)}; there are {', '.join(NAMES)}")
    time_limit = time_limit or (30.0 if quick else 3600.0)
    settings = Settings(quick=quick, fresh=fresh, time_limit=time_limit, seed=seed)
    console = Console(record=True, width=None if sys.stdout.isatty() else 120)
    where = environment()
    console.print("  ".join(f"{name} {value}" for name, value in where.items()), style="dim", highlight=False)
    reports: list[Report] = []
    for name in names or NAMES:
        console.print(f"running {name} …", style="dim")
        began = time.monotonic()
        report = _attempt(name, import_module(f".{name}", __package__).run, settings, console)
        show(report, console)
        console.print(f"{name} took {(time.monotonic() - began) / 60:.0f} min", style="dim")
        reports.append(report)
        if json_file is not None:
            _write(json_file, where, settings, reports, console)
    show_summary(reports, console)
    if quick:
        console.print("  a quick run: parts of the problems only, so these verdicts do not stand", style="yellow")
    if json_file is not None:
        _write(json_file, where, settings, reports, console)
    if any(check.status is Status.FAIL for report in reports for check in report.checks):
        raise typer.Exit(1)


def _attempt(name: str, run: Callable[[Settings], Report], settings: Settings, console: Console) -> Report:
    """A benchmark that breaks is one failed check; the others still run."""
    try:
        return run(settings)
    except Exception as error:
        console.print_exception()
        failed = Check(f"runs to its end ({type(error).__name__})", 0.0, 1.0)
        return Report(name, checks=(failed,))


def _write(path: Path, where: dict, settings: Settings, reports: list[Report], console: Console) -> None:
    everything = {
        "environment": where,
        "settings": vars(settings),
        "benchmarks": [report.to_dict() for report in reports],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(everything, indent=1, default=float, ensure_ascii=False) + "\n")
    path.with_suffix(".txt").write_text(console.export_text(clear=False))


if __name__ == "__main__":
    typer.run(main)
