"""Options that several commands have. Nothing here takes time to import."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

_WHERE, _HOW, _RESULT = "What the rows are", "How to learn", "What comes out"
_AGAIN = "; may be given again."
_KINDS = ".csv, .tsv, .parquet, .npy, .npz or .svm"

Data = Annotated[
    list[str],
    typer.Argument(metavar="DATA", help=f"Rows: {_KINDS}; files, a folder of shards, or a glob in quotes."),
]
Model = Annotated[Path, typer.Argument(metavar="MODEL", help="A file that `mahalo fit` or `metric.save` wrote.")]

Label = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN", help="Column of classes; unlabelled: empty, or −1 among numbers.", rich_help_panel=_WHERE
    ),
]
Labels = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="File of classes, one a row: .npy, .txt or a table.", rich_help_panel=_WHERE),
]
Id = Annotated[str | None, typer.Option(metavar="COLUMN", help="Column that names rows.", rich_help_panel=_WHERE)]
Ids = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="File of names, one a row: .npy, .txt or a table.", rich_help_panel=_WHERE),
]
Columns = Annotated[
    list[str] | None,
    typer.Option("--columns", metavar="A,B,…", help=f"Learn from these columns only{_AGAIN}", rich_help_panel=_WHERE),
]
Drop = Annotated[
    list[str] | None, typer.Option(metavar="A,B,…", help=f"Leave these columns out{_AGAIN}", rich_help_panel=_WHERE)
]
OneHot = Annotated[
    list[str] | None,
    typer.Option(
        "--one-hot", metavar="A,B,…", help=f"A 0/1 column for each value of these{_AGAIN}", rich_help_panel=_WHERE
    ),
]
Pairs = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="Pairs of rows, by number from 0 or by id: two columns, and `same` or `label` (1 or 0) or `grade`.",
        rich_help_panel=_WHERE,
    ),
]
Triplets = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="Triplets, three columns: the first row is more like the second than like the third.",
        rich_help_panel=_WHERE,
    ),
]
Encoding = Annotated[
    str, typer.Option(metavar="NAME", help="Of text in .csv, .tsv and .txt, such as latin-1.", rich_help_panel=_WHERE)
]


class Holdout(StrEnum):
    rows = "rows"
    classes = "classes"


Embeddings = Annotated[
    bool,
    typer.Option("--embeddings", help="Rows are vectors of an encoder: the adapter's defaults.", rich_help_panel=_HOW),
]
Encoder = Annotated[
    str | None, typer.Option(metavar="NAME", help="The encoder's name, noted in the model.", rich_help_panel=_HOW)
]
Standardise = Annotated[
    bool,
    typer.Option(
        " /--no-standardise",
        help="Keep the units of columns. Else they get mean 0 and deviation 1, unless embeddings or sparse.",
        show_default=False,
        rich_help_panel=_HOW,
    ),
]
Gamma = Annotated[
    float | None,
    typer.Option(
        metavar="NUMBER", help="Weight of the constraints. Default: chosen by cross-validation.", rich_help_panel=_HOW
    ),
]
Prior = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Metric to start from: identity, diagonal, covariance or within. Default: chosen.",
        rich_help_panel=_HOW,
    ),
]
Kernel = Annotated[
    str, typer.Option(metavar="NAME", help="linear, or rbf, poly, cosine, …; of scikit-learn.", rich_help_panel=_HOW)
]
Components = Annotated[
    int | None, typer.Option(min=1, metavar="N", help="Keep this many directions of the metric.", rich_help_panel=_HOW)
]
HoldoutBy = Annotated[
    Holdout,
    typer.Option(
        metavar="NAME", help="Choose and judge by `rows` held out, or by `classes` never seen.", rich_help_panel=_HOW
    ),
]
Seed = Annotated[
    int, typer.Option(min=0, metavar="N", help="Of folds, and of pairs that are drawn.", rich_help_panel=_HOW)
]

Force = Annotated[bool, typer.Option("--force", help="Write over a file that exists.", rich_help_panel=_RESULT)]
Json = Annotated[
    bool, typer.Option("--json", help="Print JSON, for machines, on standard output.", rich_help_panel=_RESULT)
]
Log = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Add progress and warnings to this file.", rich_help_panel=_RESULT)
]
RESULT = _RESULT


def given(context: typer.Context) -> dict[str, str]:
    """Return the options that stand on the command line: by parameter, as they are written."""
    found = {}
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        if parameter.name and source is not None and source.name == "COMMANDLINE":
            found[parameter.name] = [*parameter.opts, *parameter.secondary_opts][-1]
    return found
