"""Loading of a table for the studio: rows to learn from, and what people see of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from os import PathLike
from pathlib import Path

import numpy as np

from ..explain.provenance import Provenance
from ..linalg import to_dense
from ..metric import Metric, absorb_scaling, load
from ..metric.input_checks import names_of_columns
from ..progress import SILENT, Progress
from ..tables.dataset import Dataset, load_dataset
from ..tables.formatting import list_some
from ..tables.options import RowOptions
from ..tables.table import Table
from ..text import check_encoder, load_encoder
from .items import Items
from .session import Session
from .studio_table import StudioTable


@dataclasses.dataclass(frozen=True, eq=False)
class Loaded:
    """A session and the table it is about."""

    session: Session
    table: StudioTable


def load_studio(
    options: RowOptions,
    *,
    log: str | PathLike | None,
    annotator: str = "",
    kinds: tuple[str, ...] = ("pair",),
    seed: int = 0,
    model: str | PathLike | None = None,
    progress: Progress = SILENT,
) -> Loaded:
    """Read a table and open a session about its rows.

    Columns of numbers are scaled to deviation 1; vectors, of texts or in arrays, stay as they are.

    Parameters
    ----------
    options : RowOptions
        Files and columns.
    log : str, path-like or None
        File of answers.
    annotator : str
    kinds : tuple of {"pair", "triplet"}
    seed : int
    model : str or path-like, optional
        Metric to start from, learned from the same columns.
    progress : Progress
    """
    dataset = load_dataset(options, progress, in_memory=True, supervised=False)
    X = to_dense(dataset.X)
    scaling = dataset.scaling() if dataset.encoding is not None and not dataset.encoding.vectors else None
    if scaling is not None:
        X = np.asarray(dataset.scaled(scaling))
    prior = None
    if model is not None:
        earlier = _matrix_of(Path(model), dataset)
        prior = earlier if scaling is None else scaling.scale[:, None] * earlier * scaling.scale
    session = Session(X, log=log, kinds=kinds, random_state=seed, annotator=annotator, prior=prior)

    def finish(metric: Metric) -> Metric:
        found = metric if scaling is None else absorb_scaling(metric, scaling)
        made = Provenance.of(metric)
        record = dataset.data_record(scaling)
        return dataclasses.replace(made, table=dataset.table_record(), data=record).attach(found)

    names = None if dataset.encoding is None or dataset.encoding.vectors else tuple(dataset.encoding.names)
    table = StudioTable(_items(dataset, options), names, options.data[0], finish, _encoder(dataset, options))
    return Loaded(session, table)


def _matrix_of(model: Path, dataset: Dataset) -> np.ndarray:
    """Return the matrix of a metric in the order of the columns of a table; ValueError if these are others."""
    metric, n = load(model), dataset.X.shape[1]
    fitted, names = Provenance.of(metric).table, None if dataset.encoding is None else dataset.encoding.names
    remedy = "pass the table that it was learned from, or leave --model out"
    if fitted.text != dataset.text and (fitted.text or fitted.columns is not None):
        raise ValueError(
            f"{model.name} was fitted on {_described(fitted.text)}, and rows are {_described(dataset.text)}; {remedy}."
        )
    if dataset.text:
        try:
            check_encoder(metric, load_encoder(dataset.options.encoder))
        except ValueError as error:
            raise ValueError(f"{model.name}: {error}") from None
    if metric.n_features != n:
        raise ValueError(f"{model.name} is a metric of {metric.n_features} columns, the table has {n}; {remedy}.")
    if names is None or fitted.columns is None:
        return metric.matrix
    learned = names_of_columns(vars(fitted))
    if set(learned) != set(names):
        lacking, more = (list_some(sorted(set(a) - set(b))) for a, b in ((learned, names), (names, learned)))
        raise ValueError(
            f"{model.name} was fitted on {lacking}, which the rows lack; they have {more} instead; {remedy}."
        )
    order = [learned.index(name) for name in names]
    return metric.matrix[np.ix_(order, order)]


def _described(text: tuple[str, ...]) -> str:
    return f"texts of {list_some(text)}" if text else "numbers"


def _items(dataset: Dataset, options: RowOptions) -> Items:
    """Return all columns of a table but ids and labels, as people see them."""
    table = dataset.table
    columns = {}
    if isinstance(table, Table) and table.frame is not None:
        hidden = {options.label, options.id}
        shown = [name for name in table.names if name not in hidden and not _is_vector(table, name)]
        columns = {name: table.column(name).to_pylist() for name in shown}
    labels = None if dataset.y is None else ["" if _missing(label) else str(label) for label in np.asarray(dataset.y)]
    folder = Path(options.data[0]).resolve().parent
    names = (options.id or "id", options.label or "label")
    return Items(table.n_rows, dataset.ids, columns, labels, folder, *names)


def _is_vector(table: Table, name: str) -> bool:
    from pyarrow import types

    kind = table.column(name).type
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def _missing(label: object) -> bool:
    return label is None or label != label or label == -1


def _encoder(dataset: Dataset, options: RowOptions) -> Callable[[str], np.ndarray] | None:
    if not dataset.text:
        return None
    encoder = load_encoder(options.encoder)
    return lambda text: np.asarray(encoder.encode([text]))[0]
