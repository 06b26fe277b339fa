"""What a benchmark returns, and how it is printed. Only this file and `__main__` write to the screen."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from rich.console import Console
from rich.table import Table as RichTable

__all__ = ["Check", "Report", "Status", "Table", "show", "show_summary"]


class Status(StrEnum):
    PASS = "PASS"
    FAIL = "FAIL"
    OPEN = "OPEN"  # only a bound was measured, and it does not decide


_COLOUR = {Status.PASS: "green", Status.FAIL: "bold red", Status.OPEN: "yellow"}


@dataclass(frozen=True)
class Check:
    """One figure that must hold.

    `is_bound` says that the figure is a bound on the safe side (a peer stopped by its time limit would have
    taken longer still): it can pass, but it cannot fail.
    """

    name: str
    value: float
    required: float
    at_least: bool = True
    is_bound: bool = False
    note: str = ""

    @property
    def status(self) -> Status:
        # Written so that NaN does not pass.
        holds = self.value >= self.required if self.at_least else self.value <= self.required
        if holds:
            return Status.PASS
        return Status.OPEN if self.is_bound else Status.FAIL


@dataclass(frozen=True)
class Table:
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str | float | int, ...], ...]


@dataclass(frozen=True)
class Report:
    """Everything one benchmark measured."""

    name: str
    checks: tuple[Check, ...]
    tables: tuple[Table, ...] = ()
    notes: tuple[str, ...] = ()
    numbers: dict = field(default_factory=dict)  # whatever else belongs into the JSON file

    def to_dict(self) -> dict:
        return {
            "name": self.name,
            "checks": [vars(check) | {"status": str(check.status)} for check in self.checks],
            "tables": [vars(table) for table in self.tables],
            "notes": list(self.notes),
            "numbers": self.numbers,
        }


def show(report: Report, console: Console) -> None:
    console.rule(report.name)
    for table in report.tables:
        console.print(_rich_table(table))
    console.print(_checks_table(report.checks))
    for note in report.notes:
        console.print(f"  {note}", style="dim", highlight=False)


def show_summary(reports: list[Report], console: Console) -> None:
    console.rule("summary")
    count = dict.fromkeys(Status, 0)
    for report in reports:
        for check in report.checks:
            count[check.status] += 1
            if check.status is not Status.PASS:
                console.print(f"  {_coloured(check.status)}  {report.name}: {check.name}", highlight=False)
    console.print("  " + ", ".join(f"{n} {_coloured(status)}" for status, n in count.items()))


def _checks_table(checks: tuple[Check, ...]) -> RichTable:
    table = RichTable("", "measured", "required", "", "", title="must hold", title_justify="left")
    for check in checks:
        relation, bound = ("≥", "≥ ") if check.at_least else ("≤", "≤ ")
        table.add_row(
            check.name,
            (bound if check.is_bound else "") + _text(check.value),
            f"{relation} {_text(check.required)}",
            _coloured(check.status),
            check.note,
        )
    return table


def _rich_table(table: Table) -> RichTable:
    rich = RichTable(title=table.title, title_justify="left")
    for k, column in enumerate(table.columns):
        rich.add_column(column, justify="left" if k == 0 else "right")
    for row in table.rows:
        rich.add_row(*(_text(cell) for cell in row))
    return rich


def _coloured(status: Status) -> str:
    return f"[{_COLOUR[status]}]{status}[/]"


def _text(cell: str | float | int) -> str:
    return f"{cell:.4g}" if isinstance(cell, float) else str(cell)
