"""A matrix for queries, fitted to judged searches of a table of texts."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from os import PathLike

import numpy as np

from ..coordinates import LinearCoordinates
from ..explain import Provenance
from ..explain.provenance import TableRecord
from ..feedback import QueryAdapter
from ..metric import Metric
from ..progress import Progress
from ..tables.columns import split_names
from ..tables.feedback_files import read_feedback
from ..tables.labels_and_ids import read_ids
from ..tables.options import RowOptions
from ..tables.table import ReadOptions, read_table
from ..tables.text_columns import join_texts
from ..text import TextEncoder, load_encoder


@dataclass(frozen=True)
class FeedbackOutcome:
    """Adapter of queries, with the columns of the documents it was learned for."""

    adapter: QueryAdapter
    metric: Metric
    source: str
    n_documents: int
    n_queries: int
    n_judgements: int

    @property
    def is_adapted(self) -> bool:
        """True if a matrix was preferred to the frozen vectors."""
        return bool(np.isfinite(self.adapter.lam_))

    @property
    def converged(self) -> bool:
        """True if the certificate is within the tolerance; frozen vectors need none."""
        return self.adapter.certificate_ is None or self.adapter.certificate_.converged

    def save(self, path: str | PathLike) -> None:
        """Write matrix, certificate, evaluation, columns and encoder to a file that `mahalo search` reads."""
        self.adapter.save(path, metric=self.metric)

    def to_dict(self) -> dict[str, object]:
        """Return values that JSON knows."""
        evaluation, certificate = self.adapter.before_after_, self.adapter.certificate_
        return {
            "data": self.source,
            "documents": self.n_documents,
            "queries": self.n_queries,
            "judgements": self.n_judgements,
            "adapted": self.is_adapted,
            "lam": self.adapter.lam_ if self.is_adapted else None,
            "temperature": self.adapter.temperature_ if self.is_adapted else None,
            "evaluation": None if evaluation is None else evaluation.to_dict(),
            "certificate": None if certificate is None else dataclasses.asdict(certificate),
        }


def learn_from_feedback(rows: RowOptions, feedback: str, seed: int, progress: Progress) -> FeedbackOutcome:
    """Load documents and judged searches, encode both, and fit an adapter."""
    strings = [] if rows.id is None else [rows.id]
    table = read_table(rows.data, ReadOptions(rows.text_format, strings, ()), progress)
    names = tuple(dict.fromkeys(split_names(rows.text, table)))
    if not names:
        raise ValueError("--text names no column; wanted one with sentences.")
    ids = read_ids(table, rows)
    texts = join_texts(table, names)
    judged = read_feedback(feedback, ids, table.n_rows, rows.text_format)
    encoder = load_encoder(rows.encoder)
    D = encoder.encode(texts, progress)
    if judged.are_rows:
        row_of = {name: row for row, name in enumerate(ids or ())}
        Q = D[[row_of[name] for name in judged.queries]]
    else:
        Q = encoder.encode(judged.queries, progress)
    adapter = QueryAdapter(random_state=seed, verbose=progress.show)
    adapter.fit(Q, D, judged.relevance, query_index=judged.queries, document_index=ids)
    metric = _frozen_metric(encoder, TableRecord(text=names, id=rows.id, encoder=encoder.record))
    return FeedbackOutcome(adapter, metric, table.source, table.n_rows, len(judged.queries), len(judged.relevance))


def _frozen_metric(encoder: TextEncoder, record: TableRecord) -> Metric:
    """Return the Euclidean metric of the encoder's vectors, with the columns of their texts."""
    metric = Metric(LinearCoordinates.euclidean(encoder.dimension), np.zeros((0, 0)))
    return dataclasses.replace(Provenance.of(metric), table=record).attach(metric)
