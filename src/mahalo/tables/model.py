"""A fitted model, and tables of new rows for it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..explain import Provenance
from ..explain.provenance import TableRecord
from ..linalg import Matrix
from ..metric import Metric, load
from ..pairs import PairClassifier
from ..persistence import CLASSIFIER, kind_of_file
from ..progress import SILENT, Progress
from .columns import numeric_columns
from .encoding import Encoding, check_matrix, encode, encode_with_gaps, matrix_with_gaps, numbers_beside_texts
from .formatting import list_some
from .labels_and_ids import read_ids
from .options import RowOptions
from .output_files import Part
from .table import ReadOptions, Table, TableSource, open_table, read_table
from .text_columns import join_texts
from .vectors import vector_lengths

if TYPE_CHECKING:
    from ..text import TextEncoder

_PART = 50_000  # rows to transform at once


@dataclass(frozen=True)
class ModelRows:
    """Rows for a model: options with the columns of labels and ids, the table, its ids, and its rows as numbers."""

    options: RowOptions
    table: Table
    ids: list[str] | None
    X: Matrix


@dataclass(frozen=True)
class FittedModel:
    """A metric, the file it comes from, and the folder of its encoder of texts, None for wordllama."""

    path: Path
    metric: Metric
    encoder_folder: str | None = None

    @classmethod
    def load(cls, path: Path, encoder: str | None = None) -> FittedModel:
        """Load a metric, or the metric of a pair classifier; one with a callable kernel cannot be used by a command.

        Raise ValueError if `encoder` is passed to a model that does not take texts.
        """
        is_classifier = kind_of_file(path) == CLASSIFIER.name
        model = cls(path, PairClassifier.load(path).metric_ if is_classifier else load(path), encoder)
        if encoder is not None and not model.record.text:
            raise ValueError(f"{path.name} was not fitted with --text and encodes nothing; leave --encoder out.")
        return model

    @cached_property
    def record(self) -> TableRecord:
        """Columns of the table that the model was fitted on."""
        return Provenance.of(self.metric).table

    @cached_property
    def _encoding(self) -> Encoding | None:
        record = self.record
        return None if record.columns is None else Encoding(record.columns, dict(record.one_hot), dict(record.vectors))

    @cached_property
    def text_encoder(self) -> TextEncoder:
        """Encoder that the model was fitted with; ValueError if another is passed."""
        from ..text import load_encoder_for

        try:
            return load_encoder_for(self.metric, self.encoder_folder)
        except ValueError as error:
            option = "without --encoder" if self.encoder_folder is None else f"--encoder {self.encoder_folder}"
            raise ValueError(f"{self.path.name}, {option}: {error}") from None

    @property
    def feature_names(self) -> list[str] | None:
        """Names of the features, None if the model has none."""
        return None if self._encoding is None else self._encoding.names

    def read(self, rows: RowOptions, progress: Progress = SILENT) -> ModelRows:
        """Read all rows of a table; labels and ids by the options, or by the columns of the fit that the table has."""
        table = read_table(rows.data, self._read_options(rows), progress)

        def column(name: str | None, file: str | None, fitted: str | None) -> str | None:
            has = fitted in table.names or fitted in table.arrays
            return fitted if name is None and file is None and has else name

        label = column(rows.label, rows.labels, self.record.label)
        rows = replace(rows, label=label, id=column(rows.id, rows.ids, self.record.id))
        return ModelRows(rows, table, read_ids(table, rows), self.encode(table, progress))

    def _read_options(self, rows: RowOptions) -> ReadOptions:
        """Return the options by which columns that the model does not measure, above all ids and labels, are text."""
        record = self.record
        text = [name for name in (record.id, rows.id, rows.label or record.label) if name is not None]
        return ReadOptions(
            rows.text_format,
            text=[name for name in text if name not in (record.columns or ())],
            numbers=(() if self._encoding is None else self._numbers.columns) if record.text else record.columns,
            n_features=self.metric.n_features,
            svmlight_base=record.svmlight_base,
        )

    def encode(self, table: Table, progress: Progress = SILENT) -> Matrix:
        """Return the rows of a table as numbers: columns by name, in the order of the fit, others left out.

        Texts are encoded unless their vectors are cached.
        """
        if self.record.text:
            E = self.text_encoder.encode(join_texts(table, self.record.text), progress)
            return E if self._encoding is None else np.hstack([E, self._encode_columns(table, self._numbers)])
        if self._encoding is None:
            return self._encode_by_width(table)
        return self._encode_columns(table, self._encoding)

    def require_texts(self) -> None:
        """Raise ValueError if the model does not take texts."""
        if not self.record.text:
            columns = f"columns {list_some(self.record.columns)}" if self.record.columns else "vectors"
            raise ValueError(
                f"{self.path.name} was fitted on {columns}, not on texts; give a model of mahalo fit --text COLUMN."
            )

    @property
    def is_mixed(self) -> bool:
        """True if rows are vectors of texts with numbers beside them."""
        return bool(self.record.text) and self._encoding is not None

    @property
    def _numbers(self) -> Encoding:
        assert self._encoding is not None
        return numbers_beside_texts(self._encoding)

    def _encode_columns(self, table: Table, encoding: Encoding) -> np.ndarray:
        names, model = encoding.columns, self.path.name
        if table.frame is None:
            raise ValueError(
                f"{model} was fitted on columns {list_some(names)}; {table.source} is an array, whose columns have no "
                "names. Give a table."
            )
        lacking = [name for name in names if name not in table.names]
        if lacking:
            raise ValueError(
                f"{table.source} lacks {len(lacking)} of the {len(names)} columns that {model} was fitted on: "
                f"{list_some(lacking)}; it has {list_some(table.names)}."
            )
        return encode(table, encoding, may_drop=False, imputation=self.record.impute)

    def _encode_by_width(self, table: Table) -> Matrix:
        """Return all columns of numbers, for a model whose columns have no names."""
        left_out = (self.record.label, self.record.id)
        names = tuple(name for name in numeric_columns(table) if name not in left_out)
        X: Matrix
        fill = self.record.impute
        if table.frame is None:
            X = check_matrix(table) if fill is None else matrix_with_gaps(table)
        else:
            encoding = Encoding(names, vectors=vector_lengths(table, names))
            X = encode(table, encoding, may_drop=False) if fill is None else encode_with_gaps(table, encoding, False)
        if X.shape[1] != self.metric.n_features:
            remedy = ". It names none, so give a table of those it was fitted on, in their order"
            raise ValueError(
                f"{table.source} has {X.shape[1]} columns{' of numbers' * bool(names)}; {self.path.name} was fitted on "
                f"{self.metric.n_features}{f': {list_some(names)}{remedy}' if names else ''}."
            )
        return X if fill is None else fill.fill(np.asarray(X))

    def transform_parts(self, rows: RowOptions, progress: Progress = SILENT) -> tuple[int, Iterator[Part]]:
        """Return the number of rows, and an iterator over parts: columns to copy, and transformed rows."""
        table = open_table(rows.data, self._read_options(rows), progress)
        return table.n_rows, self._parts(table, progress)

    def _parts(self, table: TableSource, progress: Progress) -> Iterator[Part]:
        used = () if self.record.text else table.names if self.record.columns is None else self.record.columns
        starts = [(piece, a) for piece in table.pieces for a in range(0, len(piece), _PART)]
        for piece, a in progress.track(starts, len(starts), "transforming: part"):
            if a == 0:
                part = table.read(piece)
                X = self.encode(part, progress)
            columns = {name: part.column(name).slice(a, _PART) for name in part.names if name not in used}
            yield columns, self.metric.transform(X[a : a + _PART])
