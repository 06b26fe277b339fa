"""A page of duplicates: groups with what their rows say, the most doubtful ones first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import numpy as np

from ..dedupe import Duplicates
from ..persistence import write_bytes
from ..tables.formatting import shorten
from .html import asset, render, template_environment

_MOST_GROUPS = 500
_MOST_CHARACTERS = 300  # of a row


@dataclass(frozen=True)
class _Row:
    """Name and text of a row, and the table it is from, 0 if there is one."""

    name: str
    text: str
    table: int


@dataclass(frozen=True)
class _Group:
    """Rows of a group, and the least probability of its pairs."""

    number: int
    least: float
    rows: tuple[_Row, ...]


def write_duplicates_page(
    path: str | PathLike,
    found: Duplicates,
    texts: Sequence[str],
    other_texts: Sequence[str],
    ids: Sequence[object] | None = None,
    other_ids: Sequence[object] | None = None,
) -> Path:
    """Write one self-contained HTML page of groups, whole or not at all.

    Parameters
    ----------
    path : path of the file
    found : Duplicates
    texts, other_texts : sequence of str
        What the rows of the table say, and those of the second; the same for one table.
    ids, other_ids : sequence, optional
        Names of the rows. Default: their numbers, from 0.
    """
    page = render(
        template_environment(),
        "duplicates_page.html",
        style=asset("page.css"),
        groups=_collect(found, (texts, other_texts), (ids, other_ids)),
        n_groups=found.n_groups,
        summary=str(found),
    )
    write_bytes(Path(path), page)
    return Path(path)


def _collect(
    found: Duplicates, texts: tuple[Sequence[str], ...], ids: tuple[Sequence[object] | None, ...]
) -> list[_Group]:
    """Return the groups whose least probability is smallest first, at most `_MOST_GROUPS`."""
    group_of_pair = found.groups[found.pairs[:, 0]] if len(found.pairs) else np.empty(0, dtype=np.intp)
    least = np.ones(found.n_groups)
    np.minimum.at(least, group_of_pair, found.probability)
    chosen = np.argsort(least, kind="stable")[:_MOST_GROUPS]
    members: dict[int, list[_Row]] = {int(number): [] for number in chosen}
    sides = [found.groups] if found.other_groups is None else [found.groups, found.other_groups]
    for side, groups in enumerate(sides):
        names, table = ids[side], side + 1 if len(sides) == 2 else 0
        for row in np.flatnonzero(np.isin(groups, chosen)).tolist():
            name = str(row) if names is None else str(names[row])
            members[int(groups[row])].append(_Row(name, shorten(texts[side][row], _MOST_CHARACTERS), table))
    return [_Group(number, float(least[number]), tuple(rows)) for number, rows in members.items()]
