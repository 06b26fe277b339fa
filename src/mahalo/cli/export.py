"""`mahalo export`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from . import options

__all__ = ["export"]


class Side(StrEnum):
    rows = "rows"
    query = "query"


def export(
    model: options.Model,
    out: Annotated[
        Path,
        typer.Option(
            metavar="FILE", help="The matrix: .npy, .npz, .csv, .tsv or .parquet.", rich_help_panel=options.RESULT
        ),
    ],
    side: Annotated[
        Side,
        typer.Option(
            metavar="NAME",
            help="`rows`: multiply stored vectors and queries; `query`: queries alone, stored vectors stay.",
        ),
    ] = Side.rows,
    force: options.Force = False,
    json: options.Json = False,
) -> None:
    """The learned matrix, for any vector database.

    `--side rows`: store X @ matrix and ask with Q @ matrix, by Euclidean
    distance. `--side query`: ask with Q @ matrix, by inner product with vectors
    as they are, less half of each one's own x·(x @ matrix). Its rows are the
    columns of the table, as `--json` names them. An .npz file also holds these
    names as `columns`, `normalize`, and `mean` and `scale` where columns are
    scaled first.
    """
    import numpy as np

    from .export_matrix import exported
    from .model import load_model
    from .showing import facts, print_json
    from .tables import check_output, write

    check_output(out, force, inputs=[model])
    matrix, extras, how = exported(load_model(model), side.value)
    if out.suffix.lower() == ".npz":
        write(out, {"matrix": matrix} | extras)
    elif "mean" in extras:
        raise ValueError(
            f"{model.name} scales columns before the matrix; give --out a .npz file, which holds all of it."
        )
    else:
        write(out, {}, matrix, "mahalo")
    shape = [int(n) for n in np.shape(matrix)]
    if json:
        names = extras.get("columns", np.empty(0)).tolist()
        told = {"rows": shape[0], "columns": shape[1], "names": names, "side": side.value, "use": how}
        print_json(told | {"out": str(out)})
    else:
        facts({"written": f"{out}: {shape[0]} × {shape[1]}", "use": how})
