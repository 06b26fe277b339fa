"""`mahalo dedupe`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .options import OutputOptions, RowOptions, expand_options, result_option

if TYPE_CHECKING:
    from ..workflows.duplicate_search import DuplicateSummary

__all__ = ["dedupe"]

_TABLES = (".csv", ".tsv", ".parquet")


@expand_options(omit=("label", "labels", "ids", "drop", "one_hot", "triplets"))
def dedupe(
    rows: RowOptions,
    output: OutputOptions,
    out: Annotated[Path, result_option("FILE", "Groups, or the pairs of `--ask`: .csv, .tsv or .parquet.")],
    against: Annotated[
        str | None, typer.Option(metavar="DATA", help="A second table: duplicates between the two, not inside one.")
    ] = None,
    precision: Annotated[
        float, typer.Option(metavar="SHARE", help="Share of the reported pairs that shall be the same.")
    ] = 0.95,
    base_rate: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE", help="Share of same pairs among candidates, if labelled pairs were chosen by their answer."
        ),
    ] = None,
    ask: Annotated[
        int | None, typer.Option(metavar="N", help="Learn nothing: write N pairs that are worth labelling.", min=1)
    ] = None,
    page: Annotated[Path | None, result_option("FILE", "A page of the groups to look at: .html.")] = None,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Seed of the pairs of `--ask`.")] = 0,
) -> None:
    """Find groups of rows that are the same, from labelled pairs.

    First `--ask 300` writes pairs to label: fill in `same`, 1 or 0. Then
    `--pairs` learns from them how much each column counts, and writes groups
    of the precision asked for. Columns of `--text` are texts, those of
    `--columns` numbers; without both, all columns but the id are numbers.
    """
    from ..tables.output_files import check_output
    from ..workflows.duplicate_search import Request, find_duplicates, write_proposals
    from .console import print_result

    inputs = [*rows.data, rows.pairs, against]
    if page is not None:
        check_output(page, output.force, (".html",), "--page", inputs)
    if ask is not None and (rows.pairs is not None or page is not None):
        raise ValueError("--ask writes pairs to label and learns nothing; leave --pairs and --page out.")
    if ask is None and rows.pairs is None:
        raise ValueError("give --pairs FILE with labelled pairs, or --ask 300 to get pairs to label.")
    request = Request(rows, against, precision, base_rate, out, page)
    with output.start(inputs, out, _TABLES) as display:
        if ask is None:
            found = find_duplicates(request, display.progress)
            record, facts = found.to_dict(), _facts(found)
        else:
            proposed = write_proposals(request, ask, seed, display.progress)
            record = proposed.to_dict()
            facts = {
                "written": f"{out}: {proposed.pairs:,} pairs",
                "next": "write 1 or 0 into 'same', then give --pairs",
            }
    print_result(output.json, record, facts)


def _facts(found: DuplicateSummary) -> dict[str, str]:
    """Return lines to print."""
    heaviest = sorted(found.weights.items(), key=lambda item: -item[1])[:6]
    facts = {
        "labelled": f"{found.labelled_same:,} pairs the same, {found.labelled_different:,} different",
        "weights": ", ".join(f"{name} {weight:.3g}" for name, weight in heaviest),
        "groups": f"{found.groups:,}, of {found.pairs:,} pairs; {found.expected_precision:.1%} of them expected to be "
        f"the same (probability of at least {found.threshold:.2f}, {found.candidates:,} candidates)",
        "written": found.out,
    }
    return facts if found.page is None else facts | {"page": found.page}
