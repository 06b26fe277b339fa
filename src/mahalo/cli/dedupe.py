"""`mahalo dedupe`."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .input_files import shown_paths
from .options import OutputOptions, RowOptions, expand_options, options_on_command_line, result_option

if TYPE_CHECKING:
    from ..workflows.duplicate_search import DuplicateSummary

_TABLES = (".csv", ".tsv", ".parquet", ".jsonl")
_OF_GROUPS = ("pairs", "precision", "base_rate", "page")  # options that --ask has no use for
_OF_BOTH = ("against", "text", "columns", "id", "encoder", "encoding", "sep", "json_lines")


@expand_options(omit=("label", "labels", "ids", "drop", "one_hot", "triplets", "impute"))
def dedupe(
    context: typer.Context,
    rows: RowOptions,
    output: OutputOptions,
    out: Annotated[Path, result_option("FILE", "Groups, or the pairs of `--ask`: .csv, .tsv, .parquet or .jsonl.")],
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
    from ..workflows.duplicate_search import find_duplicates, write_proposals
    from .console import print_result

    inputs = [*rows.data, rows.pairs, against]
    if page is not None:
        check_output(page, output.force, (".html",), "--page", inputs)
    written = options_on_command_line(context)
    if ask is not None and (unused := [written[name] for name in _OF_GROUPS if name in written]):
        raise ValueError(f"--ask writes pairs to label and learns nothing; leave {' and '.join(unused)} out.")
    if ask is None and "seed" in written:
        raise ValueError("--seed is that of the pairs of --ask, and nothing else is drawn; leave it out.")
    if ask is None and rows.pairs is None:
        raise ValueError("give --pairs FILE with labelled pairs, or --ask 300 to get pairs to label.")
    with output.start(inputs, out, _TABLES) as display:
        if ask is None:
            found = find_duplicates(
                rows, against, out, page, display.progress, precision=precision, base_rate=base_rate
            )
            record, facts = found.to_dict(), _facts(found)
        else:
            n_pairs = write_proposals(rows, against, ask, seed, out, display.progress)
            record = {"pairs": n_pairs, "out": str(out)}
            again = [word for name in _OF_BOTH if name in written for word in (written[name], context.params[name])]
            again = [word for word in again if word is not True]  # of a flag its name says all
            words = [",".join(word) if isinstance(word, list) else str(word) for word in again]
            words = [*shown_paths(list(rows.data)), *words]
            command = shlex.join(["mahalo", "dedupe", *words, "--pairs", str(out), "--out", "groups.csv"])
            facts = {
                "written": f"{out}: {n_pairs:,} pairs",
                "next": f"write 1 or 0 into 'same', then {command}",
            }
    print_result(output.json, record, facts)


def _facts(found: DuplicateSummary) -> dict[str, str]:
    """Return lines to print."""
    heaviest = sorted(found.weights.items(), key=lambda item: -item[1])[:6]
    facts = {
        "labelled": f"{found.labelled_same:,} pairs the same, {found.labelled_different:,} different",
        "weights": ", ".join(f"{name} {weight:.3g}" for name, weight in heaviest),
        "groups": f"{found.groups:,} of {found.pairs:,} pairs, from {found.candidates:,} candidates",
        "precision": f"{found.expected_precision:.1%} of the pairs are expected to be the same; {found.doubtful:,} "
        "have a probability below 0.5",
        "written": found.out,
    }
    if not found.pairs:
        facts["groups"] = f"none: no pair of {found.candidates:,} candidates is certain enough; label more pairs"
        del facts["precision"]
    return facts if found.page is None else facts | {"page": found.page}
