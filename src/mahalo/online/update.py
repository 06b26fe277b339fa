"""Update of a stream's state by new rows: pairs from labels, bounds, steps, and the samples to store."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np

from ..constraints import Constraints, as_labels
from ..coordinates import LinearSpace
from ..linalg import Matrix
from ..rows import InMemoryRows
from ..validation import len_of
from .reservoir import Reservoir, StoredRows, pair_new_rows, stream_uniforms
from .state import StreamState
from .stream import StepSchedule
from .validation import embed_pairs, fill_bounds

_MAX_HISTORY = 2000  # entries, beyond which every second is dropped


@dataclass(frozen=True)
class StreamSettings:
    """Parameters of an online learner that its updates depend on."""

    schedule: StepSchedule
    targets: bool
    bounds: tuple[float, float] | None
    percentiles: tuple[float, float] | None
    pairs_per_row: int

    @property
    def stores_latest(self) -> bool:
        """True if the latest items are stored instead of a uniform sample."""
        return self.schedule.half_life is not None


@dataclass(frozen=True, eq=False)
class StreamBatch:
    """Checked data of one call: rows with labels or constraints; labels are not made into pairs if there are both."""

    X: Matrix
    labels: np.ndarray | None
    constraints: Constraints | None

    def shuffled(self, rng: np.random.Generator) -> StreamBatch:
        """Return the batch with its constraints, or without any its rows, in random order."""
        if self.constraints is not None:
            order = rng.permutation(self.constraints.n_constraints)
            return dataclasses.replace(self, constraints=self.constraints.take(order))
        order = rng.permutation(len_of(self.X))
        return StreamBatch(self.X[order], None if self.labels is None else self.labels[order], None)


def update_state(state: StreamState, data: StreamBatch, settings: StreamSettings) -> StreamState:
    """Return the state after a batch; stored pairs are overwritten last, when nothing can fail any more."""
    X, constraints, rows, classes = data.X, data.constraints, state.rows, state.classes
    if constraints is None:
        X, constraints, rows, classes = _pairs_from_labels(state, X, data.labels, settings)
    bounds = _resolve_bounds(state, X, settings)
    pairs = embed_pairs(state.coordinates, X, fill_bounds(constraints.pairs, bounds), settings.targets)
    stream, eta = state.stream.update(pairs, settings.schedule)
    if not np.isfinite(stream.F).all():
        raise ValueError("steps this large leave float64; lower eta, or use schedule='safe'.")
    first = state.stream.stats.n_pairs
    reservoir = Reservoir(len(state.pairs.bound), settings.stores_latest)
    slot = reservoir.slots(first, stream_uniforms(state.seed, 0, first, (len(pairs), 1))[:, 0])
    history = (*state.history, stream.stats)
    return dataclasses.replace(
        state,
        stream=stream,
        bounds=bounds,
        rows=rows,
        classes=classes,
        history=history[::2] if len(history) > _MAX_HISTORY else history,
        n_dropped=state.n_dropped + constraints.n_constraints - len(pairs),
        certificates=None,
        pairs=state.pairs.store(pairs, eta, first, slot),
    )


def _pairs_from_labels(
    state: StreamState, X: Matrix, y: np.ndarray | None, settings: StreamSettings
) -> tuple[Matrix, Constraints, StoredRows, tuple[object, ...]]:
    """Return stored and new rows together, pairs of them, the rows to store, and the labels seen so far."""
    assert y is not None
    labels = as_labels(y)
    number = {label: k for k, label in enumerate(state.classes)}
    class_numbers = [number.setdefault(label, len(number)) for label in labels.classes.tolist()]
    codes = np.array([*class_numbers, -1], dtype=np.intp)[labels.codes]
    reservoir = Reservoir(state.n_rows_kept, settings.stores_latest)
    index, sign, in_reservoir = pair_new_rows(state.rows, codes, reservoir, state.seed, settings.pairs_per_row)
    X = state.rows.stacked_on(X)
    all_codes = np.concatenate([state.rows.codes, codes])
    n_seen = state.rows.n_seen + int((codes >= 0).sum())
    rows = StoredRows(X[in_reservoir], all_codes[in_reservoir], n_seen)
    return X, Constraints.from_pairs(index, same=sign > 0, n_rows=len_of(X)), rows, tuple(number)


def _resolve_bounds(state: StreamState, X: Matrix, settings: StreamSettings) -> tuple[float, float] | None:
    """Return (upper, lower) for pairs without bounds: the parameter, or percentiles of the first rows that differ."""
    if settings.bounds is not None:
        return float(settings.bounds[0]), float(settings.bounds[1])
    if state.bounds is not None:
        return state.bounds
    c = state.coordinates
    geometry = LinearSpace(c.prior, InMemoryRows(X), c.basis, c.residual).geometry
    distances = geometry.sample_sq_distances(np.random.default_rng([state.seed, 3]))
    if not len(distances):
        return None
    upper, lower = np.percentile(distances, (5, 95) if settings.percentiles is None else settings.percentiles)
    return float(upper), float(lower)
