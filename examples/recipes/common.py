"""What every recipe shares: rows, a learned metric, the two forms to store it in, and the exact answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from sklearn.datasets import load_digits

from mahalo import MetricLearner
from mahalo.search import build_index

K = 10


@dataclass(frozen=True)
class Form:
    """Vectors to store at first, vectors to add, vectors to ask with, and how they are compared: "l2" or "ip".

    `extra` is one number for each stored row. By "ip", the nearest has the largest product less half of it; the recipes
    for databases without a place for it append it to the vector, as `appended` does, or `as_distances`.
    """

    name: str
    measure: str
    stored: np.ndarray
    added: np.ndarray
    asked: np.ndarray
    extra: np.ndarray

    def appended(self) -> Form:
        """[x, s] and [u, −½]: the number as one more column, and the product alone ranks."""
        if self.measure == "l2":
            return self
        s, n = self.extra[:, None], len(self.stored)
        half = np.full((len(self.asked), 1), -0.5)
        columns = (np.hstack([self.stored, s[:n]]), np.hstack([self.added, s[n:]]), np.hstack([self.asked, half]))
        return Form(self.name, "ip", *map(_single, columns), self.extra)

    def as_distances(self) -> Form:
        """[x, s, √(b − ‖x‖² − s²)] and [u, −½, 0]: the largest product has the smallest distance.

        All stored vectors are then of length √b, and graphs, which take it that neighbours of neighbours are near, find
        by distance what they miss by product. b is a bound for rows that are still to come, too.
        """
        if self.measure == "l2":
            return self
        form = self.appended()
        sq_stored, sq_added = ((rows.astype(float) ** 2).sum(axis=1) for rows in (form.stored, form.added))
        b = 1.5 * sq_stored.max()
        if sq_added.max(initial=0.0) > b:
            raise ValueError("rows to add are longer than was allowed for: build the index again with a larger bound")
        columns = (
            np.hstack([form.stored, np.sqrt(b - sq_stored)[:, None]]),
            np.hstack([form.added, np.sqrt(b - sq_added)[:, None]]),
            np.hstack([form.asked, np.zeros((len(form.asked), 1))]),
        )
        return Form(self.name, "l2", *map(_single, columns), self.extra)


def forms() -> tuple[list[Form], np.ndarray]:
    """The transformed form and the query-side form, in single precision; and the exact neighbours of every query."""
    X, y = load_digits(return_X_y=True)
    X = X / 16.0
    stored, added, asked = X[:1000], X[1000:1150], X[1150:1200]
    metric = MetricLearner(prior="within").fit(X[:500], y[:500]).metric_
    G, side = metric.linear_map(), metric.query_side()
    none = np.zeros(len(stored) + len(added))
    transformed = Form("transformed", "l2", *(_single(rows @ G) for rows in (stored, added, asked)), none)
    own = side.stored(np.vstack([stored, added]))
    query_side = Form("query side", "ip", _single(stored), _single(added), _single(side.queries(asked)), own)
    exact = build_index(metric, np.vstack([stored, added])).kneighbors(asked, K)
    return [transformed, query_side], exact.ids


def _single(rows: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(rows, dtype=np.float32)


def run(name: str, search: Callable[[Form], np.ndarray], at_least: float = 0.999) -> None:
    """Ask in both forms, and hold the answers against the exact ones."""
    wanted, exact = forms()
    for form in wanted:
        found = np.asarray(search(form))
        recall = np.mean([len(np.intersect1d(a, b)) / K for a, b in zip(exact, found, strict=True)])
        print(f"{name}, {form.name}: recall of the exact {K} is {recall:.3f}")
        assert recall >= at_least
