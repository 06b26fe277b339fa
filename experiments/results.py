"""The outcome of an experiment as tables on a screen, a JSON file and a page of documentation.

All are made from the same `Record`, so that no number is ever typed.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

import mahalo
from mahalo.drawing import save
from mahalo.persistence import write_bytes

from . import EXPERIMENTS, curves
from .outcome import Measurement, Outcome, Verdict

__all__ = ["Record", "environment", "index_page", "page", "prepare_folder", "read", "show", "write", "write_index"]

_FORMAT = "mahalo-result"
_PACKAGES = ("numpy", "scipy", "scikit-learn")
_INDEX_START = (
    "# Results\n\nThe experiments of the paper with its protocol, and some beyond it. Every page is written by the "
    "command beside it; `make reproduce` runs them all.\n\n"
)


@dataclass(frozen=True)
class Record:
    """An outcome and how it came about: command, duration and versions."""

    outcome: Outcome
    command: str
    quick: bool
    seed: int
    seconds: float
    environment: dict[str, str]


def environment() -> dict[str, str]:
    """Versions that numbers may depend on."""
    return {
        "Python": platform.python_version(),
        "mahalo": mahalo.__version__,
        **{name: version(name) for name in _PACKAGES},
        "processors": f"{os.cpu_count()} ({platform.machine()})",
    }


# -- files -------------------------------------------------------------------------------------------------------------


def write(record: Record, folder: Path, *, picture: bool) -> tuple[Path, ...]:
    """NAME.json, NAME.md and, where `picture`, NAME.png in the folder, each whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    name = record.outcome.name
    paths = [folder / f"{name}.json"]
    write_bytes(paths[0], _to_json(record).encode())
    if picture:
        paths.append(save(curves.draw(record.outcome), folder / f"{name}.png"))
    paths.append(folder / f"{name}.md")
    write_bytes(paths[-1], page(record, picture=picture).encode())
    return tuple(paths)


def read(path: Path) -> Record:
    """A record from the JSON file that `write` made of it."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if content.pop("format") != _FORMAT:
            raise ValueError
        outcome = content.pop("outcome")
        for field, kind in (("measurements", Measurement), ("verdicts", Verdict)):
            outcome[field] = tuple(kind(**entry) for entry in outcome[field])
        outcome["notes"] = tuple(outcome["notes"])
        return Record(outcome=Outcome(**outcome), **content)
    except (AttributeError, KeyError, TypeError, ValueError):
        raise ValueError(f"{str(path)!r} is not a whole result of `python -m experiments`; run it again.") from None


def prepare_folder(folder: Path) -> None:
    """Make it, unless a file in it would be lost: its README.md is going to be the index of results."""
    index = folder / "README.md"
    if index.is_file() and not index.read_text(encoding="utf-8", errors="replace").startswith(_INDEX_START):
        raise ValueError(f"{str(index)!r} is not a list of results and would be overwritten; choose another directory.")
    folder.mkdir(parents=True, exist_ok=True)


def write_index(folder: Path) -> Path:
    """README.md in the folder: all results there, from their JSON files."""
    paths = (folder / f"{name}.json" for name in EXPERIMENTS)
    path = folder / "README.md"
    write_bytes(path, index_page([read(p) for p in paths if p.is_file()]).encode())
    return path


def _to_json(record: Record) -> str:
    return json.dumps({"format": _FORMAT} | asdict(record), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


# -- tables, whoever shows them ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Grid:
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def _grids(outcome: Outcome) -> list[_Grid]:
    """A grid of methods by x for each curve, and for each other measure one of data sets by methods."""
    measurements = outcome.measurements
    curved = {m.dataset for m in measurements if m.x is not None}
    grids = []
    for dataset, measure in _unique((m.dataset, m.measure) for m in measurements if m.dataset in curved):
        part = [m for m in measurements if (m.dataset, m.measure) == (dataset, measure)]
        grids.append(_by_x(f"{dataset}: {measure}", outcome.x_label or "x", part))
    for measure in _unique(m.measure for m in measurements if m.dataset not in curved):
        part = [m for m in measurements if m.measure == measure and m.dataset not in curved]
        grids.append(_by_method(measure, part))
    return grids


def _by_x(title: str, x_label: str, part: Sequence[Measurement]) -> _Grid:
    constant: list[float | None] = [None] if any(m.x is None for m in part) else []
    xs = constant + sorted({m.x for m in part if m.x is not None})
    heads = ["any" if x is None else f"{x:g}" for x in xs]
    cells = {(m.method, m.x): _with_interval(m) for m in part}
    rows = [(method, *(cells.get((method, x), "") for x in xs)) for method in _unique(m.method for m in part)]
    return _Grid(title, (x_label, *heads), tuple(rows))


def _by_method(title: str, part: Sequence[Measurement]) -> _Grid:
    methods = _unique(m.method for m in part)
    cells = {(m.dataset, m.method): _with_interval(m) for m in part}
    rows = [(dataset, *(cells.get((dataset, m), "") for m in methods)) for dataset in _unique(m.dataset for m in part)]
    return _Grid(title, ("", *methods), tuple(rows))


def _published(outcome: Outcome) -> _Grid | None:
    """Ours beside what the paper states."""
    rows = [
        (
            m.dataset,
            m.method,
            m.measure if m.x is None else f"{m.measure}, {outcome.x_label or 'x'} {m.x:g}",
            _with_interval(m),
            _number(m.published, m.measure),
            f"{m.value - m.published:+.3g}",
        )
        for m in outcome.measurements
        if m.published is not None
    ]
    if not rows:
        return None
    return _Grid("Beside the published figures", ("", "method", "measure", "ours", "paper", "difference"), tuple(rows))


def _with_interval(m: Measurement) -> str:
    value = _number(m.value, m.measure)
    return value if m.half_width is None else f"{value} ± {_number(m.half_width, m.measure)}"


def _number(value: float, measure: str) -> str:
    return f"{value:.3g}" if measure == "seconds" else f"{value:.3f}"


def _unique(items) -> list:
    return list(dict.fromkeys(items))


# -- screen ------------------------------------------------------------------------------------------------------------


def show(record: Record, console: Console) -> None:
    """Tables, claims and notes on a terminal."""
    outcome, published = record.outcome, _published(record.outcome)
    console.print(f"\n[bold]{escape(outcome.title)}[/bold]\n{escape(outcome.protocol)}\n", highlight=False)
    for grid in (*_grids(outcome), *((published,) if published else ())):
        console.print(_rich(grid))
    for verdict in outcome.verdicts:
        mark = "[green]holds[/green]" if verdict.holds else "[bold red]does not hold[/bold red]"
        console.print(f"{mark}: {escape(verdict.claim)} ({escape(verdict.detail)})", highlight=False)
    if record.quick:
        console.print("A quick run, on a part of the data: its claims do not count.", style="yellow")
    for note in outcome.notes:
        console.print(f"· {escape(note)}", style="dim", highlight=False)


def _rich(grid: _Grid) -> Table:
    table = Table(title=grid.title, title_justify="left", title_style="bold", show_edge=False, header_style="dim")
    for k, column in enumerate(grid.columns):
        table.add_column(column, justify="left" if k == 0 else "right")
    for row in grid.rows:
        table.add_row(*map(escape, row))
    return table


# -- pages -------------------------------------------------------------------------------------------------------------


def page(record: Record, *, picture: bool = True) -> str:
    """Markdown with everything the record holds."""
    outcome, published = record.outcome, _published(record.outcome)
    parts = [f"# {outcome.title}", outcome.protocol]
    if record.quick:
        parts.append("**A quick run, on a part of the data: its claims do not count.**")
    if picture:
        parts.append(f"![{outcome.title}]({outcome.name}.png)")
    if outcome.verdicts:
        parts += ["## Claims", _markdown(_claims(outcome.verdicts))]
    if published:
        parts += [f"## {published.title}", _markdown(published)]
    parts.append("## All numbers")
    for grid in _grids(outcome):
        parts += [f"**{grid.title}**", _markdown(grid)]
    if any(m.half_width is not None for m in outcome.measurements):
        parts.append("± is the half-width of the 95 % interval of the mean.")
    if outcome.notes:
        parts += ["## Notes", "\n".join(f"- {note}" for note in outcome.notes)]
    made = ", ".join(f"{name} {value}" for name, value in record.environment.items())
    parts += [
        "## How this page was made",
        f"```sh\n{record.command}\n```",
        f"It took {_time(record)}. {made}. All digits are in [{outcome.name}.json]({outcome.name}.json); "
        "nothing on this page is typed by hand but published figures.",
    ]
    return "\n\n".join(parts) + "\n"


def index_page(records: Sequence[Record]) -> str:
    """Markdown that lists results."""
    rows = tuple(
        (
            f"[{r.outcome.title}]({r.outcome.name}.md)",
            f"{sum(v.holds for v in r.outcome.verdicts)} of {len(r.outcome.verdicts)}",
            f"`{r.command}`",
            _time(r) + (" (quick)" if r.quick else ""),
        )
        for r in records
    )
    grid = _Grid("", ("experiment", "claims that hold", "command", "time"), rows)
    return _INDEX_START + _markdown(grid) + "\n"


def _claims(verdicts: Sequence[Verdict]) -> _Grid:
    rows = tuple((v.claim, "holds" if v.holds else "**does not hold**", v.detail) for v in verdicts)
    return _Grid("", ("claim", "", "measured"), rows)


def _markdown(grid: _Grid) -> str:
    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

    return "\n".join([line(grid.columns), "|" + "---|" * len(grid.columns), *map(line, grid.rows)])


def _time(record: Record) -> str:
    return _duration(record.seconds) + (" for what was not kept from earlier runs" if record.outcome.resumed else "")


def _duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
