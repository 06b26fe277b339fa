"""Example tables for the commands, from the data sets of scikit-learn."""

from __future__ import annotations

from pathlib import Path

from ..tables.output_files import check_output, write_table

_KINDS = (".csv", ".tsv", ".parquet")
_NEW = slice(9, None, 18)  # bottles of the second table


def write_wine(path: Path, force: bool) -> tuple[Path, Path]:
    """Write scikit-learn's wine, with columns `bottle` and `cultivar`, to two files and return their paths.

    Most bottles are in `path`; the others, without `cultivar`, in a file `new-bottles` beside it.
    """
    from sklearn.datasets import load_wine

    new = path.with_name(f"new-bottles{path.suffix}")
    if new == path:
        raise ValueError(f"--write {path.name} is the name of the second table, of new bottles; give another name.")
    for each in (path, new):
        check_output(each, force, _KINDS, "--write")
    wine = load_wine()
    bottles = [f"b{k:03}" for k in range(len(wine.data))]
    columns = {"bottle": bottles} | dict(zip(wine.feature_names, wine.data.T.tolist(), strict=True))
    held_out = range(len(bottles))[_NEW]
    rest = [k for k in range(len(bottles)) if k not in held_out]
    cultivar = [str(wine.target_names[code]) for code in wine.target]
    write_table(path, {name: [values[k] for k in rest] for name, values in (columns | {"cultivar": cultivar}).items()})
    write_table(new, {name: [values[k] for k in held_out] for name, values in columns.items()})
    return path, new
