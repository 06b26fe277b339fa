"""A model and rows that suit it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from ..explain import Provenance
from ..explain.provenance import TableRecord
from ..metric import Metric, load
from .known import Source
from .tables import Columns, Encoding, Part, Table, encoded, numeric_columns, read, read_ids, rows_of, too_large
from .tables.reading import some
from .watching import Watch

__all__ = ["load_model", "named_rows", "names_of", "noted_column", "parts_for", "read_for", "rows_for", "table_of"]

_PART = 50_000  # rows at a time


def load_model(path: Path) -> Metric:
    """With a kernel that is no code of the user's: the command line has none to give."""
    return load(path)


def read_for(
    metric: Metric, data: Sequence[str], encoding: str, watch: Watch, text: Sequence[str | None] = ()
) -> Table:
    """Columns that are not measured are kept as they are written; of a model that names none, those in `text`."""
    noted = table_of(metric)
    kept = [name for name in (noted.id, *text) if name is not None and name not in (noted.columns or ())]
    return read(
        data,
        encoding=encoding,
        n_features=metric.n_features,
        base=noted.svmlight_base,
        text=kept,
        numbers=noted.columns,
        say=watch.show,
    )


def rows_for(metric: Metric, table: Table, model: Path) -> Any:
    """The rows of a table as the metric wants them: columns by name, in its order, others left out."""
    names = table_of(metric).columns
    if names is None:
        return _by_width(metric, table, model)
    if table.frame is None:
        raise ValueError(
            f"{model.name} was fitted on columns {some(names)}; {table.source} is an array, whose columns have no "
            "names. Give a table."
        )
    lacking = [name for name in names if name not in table.names]
    if lacking:
        raise ValueError(
            f"{table.source} lacks {len(lacking)} of the {len(names)} columns that {model.name} was fitted on: "
            f"{some(lacking)}; it has {some(table.names)}."
        )
    return encoded(table, _encoding(metric), may_drop=False)


def parts_for(
    metric: Metric, data: Sequence[str], encoding: str, model: Path, watch: Watch
) -> tuple[int, Iterator[Part]]:
    """The number of rows, and part by part the columns that are passed through and the rows transformed."""
    shards = too_large(data)
    if shards is not None:
        pieces = watch.parts("transforming: piece", shards.pieces)
        tables = (shards.read(piece) for piece in pieces)
        return shards.n_rows, (part for table in tables for part in _parts(metric, table, model, _every(table)))
    table = read_for(metric, data, encoding, watch)
    return table.n_rows, _parts(metric, table, model, watch.parts("transforming: part", _every(table)))


def _every(table: Table) -> range:
    return range(0, table.n_rows, _PART)


def _parts(metric: Metric, table: Table, model: Path, starts: Iterable[int]) -> Iterator[Part]:
    X = rows_for(metric, table, model)
    passed = _passed_through(metric, table) if table.frame is not None else {}
    for a in starts:
        yield {name: column.slice(a, _PART) for name, column in passed.items()}, metric.transform(X[a : a + _PART])


def _by_width(metric: Metric, table: Table, model: Path) -> Any:
    """Of a model that names no columns: all that hold numbers."""
    only, noted = numeric_columns(table), table_of(metric)
    X = rows_of(table, Columns(noted.label, noted.id, only), may_drop=False).X
    if X.shape[1] != metric.n_features:
        names = f": {some(only)}. It names none, so give a table of those it was fitted on, in their order" * bool(only)
        raise ValueError(
            f"{table.source} has {X.shape[1]} columns{' of numbers' * bool(only)}; {model.name} was fitted on "
            f"{metric.n_features}{names}."
        )
    return X


def named_rows(metric: Metric, model: Path, source: Source, watch: Watch) -> tuple[Any, list[str] | None]:
    """Rows as the metric wants them and their names: by the options given, else the column of the fit."""
    table = read_for(metric, source.data, source.encoding, watch, [source.id])
    noted = source.id is None and source.ids is None
    column = noted_column(table_of(metric).id, table) if noted else source.id
    return rows_for(metric, table, model), read_ids(table, column, source.ids, source.encoding)


def noted_column(name: str | None, table: Table) -> str | None:
    """Return the column of ids or labels that the model was fitted with, if the table has it."""
    return name if name in table.names or name in table.beside else None


def _passed_through(metric: Metric, table: Table) -> dict[str, Any]:
    """Return the columns that the metric does not measure: ids, labels and others."""
    columns = table_of(metric).columns
    used = set(table.names if columns is None else columns)
    return {name: table.frame.column(name) for name in table.names if name not in used}


def names_of(metric: Metric) -> list[str] | None:
    """Return the names of the features, where the model has them."""
    return None if table_of(metric).columns is None else _encoding(metric).names


def table_of(metric: Metric) -> TableRecord:
    """Return what new tables are checked by."""
    return Provenance.of(metric).table


def _encoding(metric: Metric) -> Encoding:
    noted = table_of(metric)
    return Encoding(noted.columns or (), dict(noted.one_hot), dict(noted.vectors))
