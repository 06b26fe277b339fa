"""Tables to try the commands on, from data that come with scikit-learn."""

from __future__ import annotations

from pathlib import Path

from .tables import check_output, write

__all__ = ["write_wine"]

_KINDS = (".csv", ".tsv", ".parquet")
_EVERY, _FIRST = 18, 9  # of the bottles, the new ones


def write_wine(path: Path, force: bool) -> tuple[Path, Path]:
    """Write scikit-learn's wine with the columns `bottle` and `cultivar` to `path`, and some bottles of it, left out
    there and without `cultivar`, to a file `new-bottles` beside it; return both paths.
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
    held_out = range(_FIRST, len(bottles), _EVERY)
    kept = [k for k in range(len(bottles)) if k not in held_out]
    cultivar = [str(wine.target_names[code]) for code in wine.target]
    write(path, {name: [values[k] for k in kept] for name, values in (columns | {"cultivar": cultivar}).items()})
    write(new, {name: [values[k] for k in held_out] for name, values in columns.items()})
    return path, new
