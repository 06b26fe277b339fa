"""All that a page tells, worked out from a model and rows: what is missing says why in one line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from ..constraints import Constraints, Labels, as_constraints, as_labels
from ..evaluation import BeforeAfter, Distance, compare_on_pairs, compare_on_rows
from ..explain import Provenance, fingerprint
from ..explain.features import FeatureShares, feature_shares, known_pairs
from ..explain.fingerprint import Fingerprint, label_hashes
from ..explain.influence import Pulls, pulls
from ..explain.notes import N_NOTED, FitNotes
from ..explain.provenance import DataRecord
from ..explain.suspects import DoubtfulConstraints, DoubtfulRows, doubtful_constraints, doubtful_of_some
from ..explain.suspects import Judged as Suspected
from ..learner import MetricLearner
from ..metric import Metric, Scaling
from ..metric.input_checks import names_of_columns
from ..rows import stratified_sample
from ..validation import as_objects, at_least_single, len_of
from .assessment import Assessment, as_stored, on_held_out
from .distance import among, before_learning
from .views import Hubs, hubs, maps

__all__ = ["Findings", "Missing"]

MOST_MAPPED = 1_500  # rows on the maps, and that hubs are counted among


class Missing(Exception):
    """Why a part of the page is not there, in words for its reader."""


@dataclass(frozen=True, eq=False)
class Findings:
    """A model, rows, and what is known about them.

    Attributes
    ----------
    metric : Metric
    learner : MetricLearner or None
        With its constraints and multipliers; None where only the metric is known.
    provenance : Provenance
        As stored with the metric at its fit.
    X : array, sparse array or array of objects
    y : array-like or None
        As given.
    labels : Labels or None
    constraints : Constraints or None
        Those given, or those learned from where they were not drawn from these labels.
    names : list of str
        Of the features; empty where rows are objects.
    ids : list of str
        Of the rows.
    """

    metric: Metric
    learner: MetricLearner | None
    provenance: Provenance
    X: Any
    y: Any
    labels: Labels | None
    constraints: Constraints | None
    names: list[str]
    named: bool
    ids: list[str]

    @classmethod
    def of(
        cls, model: Any, X: Any, y: Any, constraints: Constraints | None, names: Sequence | None, ids: Sequence | None
    ) -> Findings:
        metric, learner = _taken_apart(model)
        known = next((n for n in (names, *_column_names(X, model, metric)) if n is not None), None)
        rows = _as_rows(metric, X)
        labels = None if y is None else as_labels(y)
        if labels is not None and len(labels.codes) != len_of(rows):
            raise ValueError(f"y must have one label for each of the {len_of(rows)} rows; got {len(labels.codes)}.")
        constraints = as_constraints(constraints)
        if constraints is not None:
            constraints.check_rows(len_of(rows))
        elif learner is not None and _about(learner.constraints_, len_of(rows)) and not _from_labels(learner, labels):
            constraints = learner.constraints_
        default = [f"feature {j}" for j in range(metric.n_features or 0)]
        listed = _listed(known, len(default), "names", "features") if known is not None and default else default
        return cls(
            metric=metric,
            learner=learner,
            provenance=Provenance.of(metric),
            X=rows,
            y=y,
            labels=labels if labels is not None and len(labels.classes) else None,
            constraints=constraints,
            names=listed,
            named=listed is not default,
            ids=[str(i) for i in range(len_of(rows))] if ids is None else _listed(ids, len_of(rows), "ids", "rows"),
        )

    @property
    def n_rows(self) -> int:
        return len_of(self.X)

    @property
    def codes(self) -> np.ndarray | None:
        return None if self.labels is None else self.labels.codes

    def _sample(self, most: int) -> np.ndarray:
        """The same rows whatever classes are called."""
        return stratified_sample(self.n_rows, most, None if self.labels is None else self.labels.by_appearance().codes)

    # -- how good ------------------------------------------------------------------------------------------------

    @cached_property
    def learned_here(self) -> bool:
        """Whether these are the rows that were learned from, as far as can be told."""
        noted = self._data.fingerprint
        if noted is not None:
            return noted.has_rows_of(self._prints)
        return self.learner is not None and _about(self.learner.constraints_, self.n_rows)

    @cached_property
    def _prints(self) -> Fingerprint | None:
        return None if self.metric.n_features is None else fingerprint(self.X, self.y)

    @property
    def _data(self) -> DataRecord:
        return self.provenance.data or DataRecord()

    @property
    def _learned_labels(self) -> str | None:
        """Hash of the labels that were learned from; None where there were none, or they are not known."""
        return None if self._data.fingerprint is None else self._data.fingerprint.labels

    @cached_property
    def _stored(self) -> BeforeAfter | None:
        """Evaluation made at the fit, if these are its rows and, where it had labels, its labels."""
        if self.learner is not None or not self.learned_here:
            return None
        return self.provenance.evaluation if self._learned_labels is None or self._same_labels else None

    @cached_property
    def judged(self) -> Assessment:
        if self.learner is not None and self.learned_here:
            if self.labels is None and self.constraints is None:
                raise Missing("nothing says which rows are similar: pass y or constraints=.")
            try:
                return on_held_out(self.learner, self.X, self.y, self.codes, self.constraints)
            except ValueError as error:
                raise Missing(f"learning anew on a part of the rows did not work: {error}") from None
        stored = self._stored
        if stored is not None and stored.pair_distances is not None:
            return as_stored(stored, None)
        try:
            judged = self._judged_as_given()
        except ValueError as error:
            raise Missing(f"these rows cannot be judged: {error}") from None
        except Missing:
            if stored is None:
                raise
            judged = None
        if judged is None or stored is not None:
            assert stored is not None
            return as_stored(stored, judged)
        return judged

    def _judged_as_given(self) -> Assessment:
        if self.labels is not None and len(self.labels.classes) >= 2:
            how = self._how_as_given("rows given, each compared with the others")
            codes, names = self.labels.codes, self.labels.classes.tolist()
            found = compare_on_rows(self.before[0], self.metric, self.X, codes, names)
            return Assessment("Judged on the rows given.", how, found, "the rows given")
        known = self.constraints
        if known is not None and len(known.pairs) + len(known.triplets):
            how = self._how_as_given("rows given, by the pairs that are known of them")
            found = compare_on_pairs(self.before[0], self.metric, self.X, known)
            return Assessment("Judged on the pairs given.", how, found, "the pairs given")
        raise Missing("nothing says which rows are similar: give labels of two classes or more, or pairs.")

    @cached_property
    def before(self) -> tuple[Distance, str]:
        """The distance before learning, and its name."""
        scale = None
        if self._data.scale is not None:
            scale = np.array(self._data.scale)
        elif self._data.standardised and not sp.issparse(self.X):  # in older files, which do not say by what
            scale = Scaling.of(self.X).scale
        return before_learning(self.metric, scale)

    def _how_as_given(self, judged_on: str) -> str:
        n = self._data.n_rows
        text = f"On the {self.n_rows:,} {judged_on}"
        if self.learner is None and self.learned_here:
            return (
                f"{text}. The metric was learned from these rows, so what is said about “after” flatters. Judge with "
                "rows that were not learned from, or from the fitted learner."
            )
        if n is None:
            return f"{text}. If the metric was learned from some of them, what is said about “after” flatters."
        return (
            f"{text}; the metric was learned from {n:,} rows. If these are among them, what is said about “after” "
            "flatters."
        )

    # -- what it looks like --------------------------------------------------------------------------------------

    @cached_property
    def shown(self) -> np.ndarray:
        return self._sample(MOST_MAPPED)

    @cached_property
    def _tables(self) -> tuple[np.ndarray, np.ndarray]:
        """Distances among the rows shown, before and after."""
        if self.n_rows < 3:
            raise Missing(f"a map takes three rows; got {self.n_rows}.")
        X = self.X[self.shown]
        return among(self.before[0], X), among(self.metric, X)

    @cached_property
    def maps(self) -> tuple[np.ndarray, np.ndarray]:
        return maps(*self._tables)

    @cached_property
    def hubs(self) -> Hubs:
        return hubs(*self._tables)

    # -- why -----------------------------------------------------------------------------------------------------

    @cached_property
    def shares(self) -> FeatureShares:
        if not self.metric.is_linear:
            raise Missing("a metric in the feature space of a kernel weighs no features; learn with kernel='linear'.")
        scaling = getattr(self.metric, "scaling", None)
        X = self.X if scaling is None else scaling.apply(self.X)
        deviation = None if scaling is not None or self._data.scale is None else np.array(self._data.scale)
        return feature_shares(self.metric, X, known_pairs(self.codes, self.constraints), deviation)

    @cached_property
    def notes(self) -> FitNotes | None:
        """What was noted down at the fit about these rows, and about their labels if they are the same."""
        noted = self.provenance.notes
        if noted is None or self.learner is not None or not self.learned_here:
            return None
        if not self._same_labels:
            noted = {**noted, "doubtful_rows": None}
        return FitNotes.read(noted, self.n_rows, [] if self.labels is None else self.labels.classes.tolist())

    @cached_property
    def _same_labels(self) -> bool:
        """Whether the metric was learned from these labels."""
        return self._learned_labels is not None and self.y is not None and self._learned_labels in label_hashes(self.y)

    @property
    def believed(self) -> bool:
        """Whether the metric was learned from labels of these rows, if perhaps not from all of these."""
        from_labels = self.constraints is None if self.learner else self._learned_labels is not None
        return self.learned_here and from_labels

    @cached_property
    def pulls(self) -> Pulls:
        if not self.learned_here:
            raise Missing("the constraints are about the rows that were learned from, and these are others.")
        choice = self.provenance.choice
        if self.learner is None and choice is not None and choice.start_was_chosen:
            raise Missing("nothing was learned beyond the metric it starts from, so no constraint shaped it.")
        if self.notes is not None:
            return self.notes.pulls
        if self.learner is None:
            raise Missing("the file holds the metric, not the multipliers of its constraints: report from the learner.")
        return pulls(self.learner.constraints_, self.learner.duals_, self.learner.values_, N_NOTED)

    @cached_property
    def doubtful_rows(self) -> DoubtfulRows:
        if self.labels is None:
            raise Missing("without labels no label is doubtful.")
        if self.notes is not None and self.notes.rows is not None:
            return self.notes.rows
        try:
            return doubtful_of_some(self._suspected, self.labels.codes, N_NOTED)
        except ValueError as error:
            raise Missing(str(error)) from None

    @cached_property
    def doubtful_constraints(self) -> DoubtfulConstraints:
        if self.constraints is None:
            if self.notes is not None and self.notes.constraints is not None:
                return self.notes.constraints
            raise Missing("the pairs were drawn from the labels, so it is labels that would be wrong.")
        try:
            return doubtful_constraints(self._suspected, self.constraints, N_NOTED)
        except ValueError as error:
            raise Missing(str(error)) from None

    @cached_property
    def _suspected(self) -> Suspected:
        """By metrics learned again without a label, where it was from these labels that one was learned."""
        if self.learner is not None and self.learned_here and self.constraints is None:
            return Suspected.by(self.learner, self.X)
        return Suspected(self.X, None, self.metric, plain=self.before[0].distances)


def _taken_apart(model: Any) -> tuple[Metric, MetricLearner | None]:
    """Return the metric, and the learner if it knows what it learned from."""
    if isinstance(model, Metric):
        metric, learner = model, None
    elif isinstance(model, MetricLearner):
        check_is_fitted(model)
        metric = model.metric_
        learner = model if hasattr(model, "certificate_") else None
    else:
        raise ValueError(
            f"a report is about a fitted MetricLearner or a Metric; got {type(model).__name__}. From a pipeline pass "
            "its last step, and rows as they reach it."
        )
    if metric.coordinates.is_precomputed:
        raise ValueError(
            "a report measures rows, and with kernel='precomputed' there are only similarities; learn with the kernel "
            "itself, by name or as a callable(X, Y)."
        )
    return metric, learner


def _as_rows(metric: Metric, X: Any) -> Any:
    if metric.n_features is None:
        return as_objects(X)
    X = check_array(at_least_single(X), accept_sparse="csr", dtype=[np.float64, np.float32], ensure_min_samples=2)
    if X.shape[1] != metric.n_features:
        raise ValueError(f"X has {X.shape[1]} features, but this metric was learned on {metric.n_features} features.")
    return X


def _about(constraints: Constraints, n_rows: int) -> bool:
    """Whether these constraints can be about so many rows."""
    try:
        constraints.check_rows(n_rows)
    except ValueError:
        return False
    return True


def _from_labels(learner: MetricLearner, labels: Labels | None) -> bool:
    """Whether the constraints are such as are drawn from these labels: in agreement with them, and as many."""
    learned = learner.constraints_
    if labels is None or len(labels.classes) < 2 or len(learned.linear):
        return False
    ends = np.concatenate([learned.pairs.index, learned.triplets.index[:, :2], learned.triplets.index[:, ::2]])
    n = len(learned.triplets)
    alike = np.concatenate([learned.pairs.sign > 0, np.ones(n, dtype=bool), np.zeros(n, dtype=bool)])
    first, second = labels.codes[ends].T
    each = learner.pairs_per_class or 500
    n_drawn = min(int((labels.codes >= 0).sum()), each * len(labels.classes))
    return bool(((first == second) == alike).all()) and learned.n_constraints >= n_drawn / 2


def _column_names(X: Any, model: Any, metric: Metric) -> list[Any]:
    of_table = list(X.columns) if hasattr(X, "columns") else None
    return [of_table, getattr(model, "feature_names_in_", None), names_of_columns(metric.about) or None]


def _listed(values: Sequence, n: int, name: str, what: str) -> list[str]:
    values = [str(value) for value in values]
    if len(values) != n:
        raise ValueError(f"{name} must have one name for each of the {n} {what}; got {len(values)}.")
    return values
