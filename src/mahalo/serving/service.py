"""Search, distances and probabilities for the rows of requests."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from functools import cached_property
from typing import TypeAlias

import numpy as np

from ..linalg import Matrix
from ..pairs import PairClassifier
from ..search import Index
from ..tables.model import FittedModel
from ..text import HybridIndex
from ..web import Refusal
from .limits import DEFAULT_K, MAX_ANSWER, MAX_K
from .row_format import RowFormat
from .row_reader import RowReader, Rows, check_fields, invalid, kind_of

__all__ = ["SearchService"]

Json: TypeAlias = "dict[str, object]"
_SIDE = ("rows", "ids", "texts")  # fields of a side of a comparison


class SearchService:
    """A model and an index, which answer requests; nothing in it changes.

    Parameters
    ----------
    model : FittedModel
    index : Index
        Index of rows under the metric of the model.
    hybrid : HybridIndex, optional
        Index of the same rows, by words and vectors; it ranks them then.
    classifier : PairClassifier, optional
        Classifier of pairs whose metric that of the model is.
    """

    def __init__(
        self,
        model: FittedModel,
        index: Index,
        hybrid: HybridIndex | None = None,
        classifier: PairClassifier | None = None,
    ) -> None:
        self.model, self.index, self.hybrid, self.classifier = model, index, hybrid, classifier
        self.form = RowFormat.of(model, index.ids)
        encoder = model.text_encoder.without_cache() if self.form.takes_texts else None
        self._reader = RowReader(self.form, encoder, self._known_ids)

    @cached_property
    def _known_ids(self) -> frozenset[Hashable]:
        return frozenset(self.index.ids.tolist())

    def describe(self) -> Json:
        """Return what is served."""
        return {
            "status": "ok",
            "model": self.model.path.name,
            "rows": len(self.index),
            "index": self.index.backend if self.hybrid is None else "hybrid",
            "features": self.form.n_features,
            "columns": list(self.form.names),
            "texts": self.form.takes_texts,
            "probabilities": self.classifier is not None,
        }

    def search(self, body: Mapping[str, object]) -> Json:
        """Return ids and distances of the k nearest rows of each query, nearest or best first."""
        kinds = ["texts"] if self.hybrid is not None else ["queries", "texts"]
        queries = self._reader.rows(body, kinds, beside=("k", "squared"))
        k, squared = _k(body), _squared(body)
        _check_size(len(queries) * min(k, len(self.index)), f"{len(queries):,} queries with k = {k:,}")
        if self.hybrid is not None:
            return self._search_hybrid(self.hybrid, queries, k, squared)
        assert queries.X is not None
        found = self.index.kneighbors(queries.X, k)
        distances = np.square(found.distances) if squared else found.distances
        return {"ids": found.ids.tolist(), "distances": _numbers(distances)}

    def _search_hybrid(self, hybrid: HybridIndex, queries: Rows, k: int, squared: bool) -> Json:
        best = hybrid.search(queries.texts, k)
        ids, Q = self.index.ids[best.rows], self._points(queries)
        distances = [
            self.index.space.distances(Q[q : q + 1], self.index.stored(row), squared)[0] for q, row in enumerate(ids)
        ]
        return {"ids": ids.tolist(), "distances": _numbers(np.array(distances)), "scores": _numbers(best.scores)}

    def distances(self, body: Mapping[str, object]) -> Json:
        """Return the distances of all rows of one side from all rows of the other."""
        left, right = self._left_and_right(body, ["left", "right", "squared"])
        squared = _squared(body)
        _check_size(len(left) * len(right), f"{len(left):,} × {len(right):,} distances")
        if left.X is not None and right.X is not None:
            found = self.model.metric.distances(left.X, right.X, squared)
        else:
            found = self.index.space.distances(self._points(left), self._points(right), squared)
        return {"distances": _numbers(found)}

    def answer_pairs(self, body: Mapping[str, object]) -> Json:
        """Return the probability that row k of one side is the same as row k of the other, for every k."""
        if self.classifier is None:
            raise Refusal(
                404,
                f"a question about sameness for {self.model.path.name}, a distance without probabilities",
                "a pair classifier",
                "Make one with mahalo pairs DATA --label COLUMN --save FILE, then mahalo serve FILE",
            )
        left, right = self._left_and_right(body, ["left", "right"])
        if len(left) != len(right):
            raise invalid(f"{len(left):,} rows on the left, {len(right):,} on the right", "as many, for pairs")
        if left.X is not None and right.X is not None:
            distances = self.model.metric.pair_distances(left.X, right.X)
        else:
            distances = self.index.space.pair_distances(self._points(left), self._points(right))
        return {
            "probabilities": _numbers(self.classifier.calibration_(distances)),
            "same": (distances <= self.classifier.distance_threshold_).tolist(),
            "distances": _numbers(distances),
        }

    def _left_and_right(self, body: Mapping[str, object], fields: list[str]) -> tuple[Rows, Rows]:
        """Return the rows of both sides of a comparison."""
        check_fields(body, fields)
        sides = []
        for name in ("left", "right"):
            side = body.get(name)
            if not isinstance(side, dict):
                wanted = self._reader.describe_fields(_SIDE)
                raise invalid(f"{name} {kind_of(side)}", f"{name} as an object with {wanted}")
            sides.append(self._reader.rows(side, _SIDE))
        return sides[0], sides[1]

    def _points(self, rows: Rows) -> Matrix:
        """Return rows in the space of the index."""
        return self.index.stored(rows.ids) if rows.X is None else self.index.map(rows.X)


def _k(body: Mapping[str, object]) -> int:
    k = body.get("k", DEFAULT_K)
    if isinstance(k, bool) or not isinstance(k, (int, float)) or not 1 <= k <= MAX_K or k != int(k):
        raise invalid(f"k = {repr(k)[:40]}", f"a whole number from 1 to {MAX_K:,}")
    return int(k)


def _squared(body: Mapping[str, object]) -> bool:
    squared = body.get("squared", False)
    if not isinstance(squared, bool):
        raise invalid(f"squared = {repr(squared)[:40]}", "true or false")
    return squared


def _check_size(n: int, got: str) -> None:
    if n > MAX_ANSWER:
        raise invalid(got, f"an answer of at most {MAX_ANSWER:,} distances")


def _numbers(values: np.ndarray) -> list:
    """Return finite numbers as lists; raise `Refusal` if rows were so large that they are not."""
    if not np.isfinite(values).all():
        raise invalid("rows so large that their distances overflow", "smaller numbers")
    return values.tolist()
