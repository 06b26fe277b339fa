"""Findings of a report: everything the page shows, computed from a model and rows when it is first used."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from ..constraints import Constraints, Labels, as_constraints, as_labels
from ..drawing import neighbor_maps
from ..evaluation import (
    BeforeAfter,
    HubCounts,
    NeighborRanks,
    compare_on_pairs,
    compare_on_rows,
    hub_counts,
    known_pairs,
    neighbor_ranks,
)
from ..explain import Provenance, fingerprint
from ..explain.features import FeatureShares, feature_shares, sample_pairs
from ..explain.fingerprint import Fingerprint, label_hashes
from ..explain.influence import InfluentialConstraints, most_influential
from ..explain.local_weights import LocalWeights, local_weights
from ..explain.notes import N_NOTED, FitNotes
from ..explain.provenance import DataRecord
from ..explain.suspects import (
    DoubtfulConstraints,
    DoubtfulRows,
    LabelJudge,
    doubtful_constraints,
    doubtful_rows_in_sample,
)
from ..learner import MetricLearner
from ..linalg import Matrix
from ..metric import Metric, Scaling
from ..rows import stratified_sample
from ..text import WordWeights
from ..types import RowsLike
from ..validation import len_of
from .assessment import Assessment, evaluate_with_learner, stored_assessment
from .distance_before import NamedDistance, distance_before, distance_matrix
from .inputs import check_names, column_names, cover_rows, drawn_from_labels, metric_and_learner, rows_of_metric

_MOST_MAPPED = 1_500  # rows on the maps and in the counts of hubs
_PAIR_KINDS = ("similar", "dissimilar")  # of constraints


class Missing(Exception):
    """Raised where a part of the page cannot be shown; the message is the reason, for the reader of the page."""


@dataclass(frozen=True, eq=False)
class Findings:
    """Model and rows of a report; the properties are computed once, and raise `Missing` where they cannot be.

    Attributes
    ----------
    metric : Metric
    learner : MetricLearner or None
        Learner with its constraints and multipliers; None where only the metric is known.
    provenance : Provenance
        Record of the fit, as stored with the metric.
    X : array, sparse array or array of objects
    y : array-like or None
    labels : Labels or None
    constraints : Constraints or None
        Constraints passed by the caller, or those of the fit where they were not drawn from these labels.
    names : list of str
        Names of the features; empty where rows are objects.
    has_names : bool
        False where the names are mere numbers.
    ids : list of str
        Names of the rows.
    words : WordWeights or None
        Words that the metric stretches and shrinks, where rows are texts.
    """

    metric: Metric
    learner: MetricLearner | None
    provenance: Provenance
    X: Matrix
    y: ArrayLike | None
    labels: Labels | None
    constraints: Constraints | None
    names: list[str]
    has_names: bool
    ids: list[str]
    words: WordWeights | None = None

    @classmethod
    def of(
        cls,
        model: MetricLearner | Metric,
        X: RowsLike,
        y: ArrayLike | None,
        constraints: Constraints | None,
        names: Sequence[str] | None,
        ids: Sequence[object] | None,
        words: WordWeights | None = None,
    ) -> Findings:
        """Check the arguments of a report and return its findings."""
        metric, learner = metric_and_learner(model)
        columns = next((n for n in (names, *column_names(X, model, metric)) if n is not None), None)
        rows = rows_of_metric(metric, X)
        labels = None if y is None else as_labels(y)
        if labels is not None and len(labels.codes) != len_of(rows):
            raise ValueError(f"y must have one label for each of the {len_of(rows)} rows; got {len(labels.codes)}.")
        constraints = as_constraints(constraints)
        if constraints is not None:
            constraints.check_rows(len_of(rows))
        elif learner is not None and cover_rows(learner.constraints_, len_of(rows)):
            constraints = None if drawn_from_labels(learner, labels) else learner.constraints_
        n_features = metric.n_features or 0
        has_names = columns is not None and n_features > 0
        default = [f"feature {j}" for j in range(n_features)]
        findings = cls(
            metric=metric,
            learner=learner,
            provenance=Provenance.of(metric),
            X=rows,
            y=y,
            labels=labels if labels is not None and len(labels.classes) else None,
            constraints=constraints,
            names=default
            if columns is None or not n_features
            else check_names(columns, n_features, "names", "features"),
            has_names=has_names,
            ids=check_names(range(len_of(rows)) if ids is None else ids, len_of(rows), "ids", "rows"),
            words=words,
        )
        _ = findings.notes  # raises ValueError if they are damaged
        return findings

    @property
    def n_rows(self) -> int:
        return len_of(self.X)

    @property
    def codes(self) -> np.ndarray | None:
        return None if self.labels is None else self.labels.codes

    def class_name(self, code: int) -> str:
        """Return the name of a class."""
        assert self.labels is not None
        return str(self.labels.classes[code])

    def label(self, row: int) -> str:
        """Return the label of a row, "no label" for none."""
        return "no label" if self.codes is None or self.codes[row] < 0 else self.class_name(int(self.codes[row]))

    # -- evaluation ----------------------------------------------------------------------------------------------

    @cached_property
    def are_training_rows(self) -> bool:
        """Return whether these are the training rows, by fingerprint, or else by the constraints of the learner."""
        noted = self._data.fingerprint
        if noted is not None:
            return noted.has_rows_of(self._fingerprint)
        return self.learner is not None and cover_rows(self.learner.constraints_, self.n_rows)

    @cached_property
    def _fingerprint(self) -> Fingerprint | None:
        return None if self.metric.n_features is None else fingerprint(self.X, self.y)

    @property
    def _data(self) -> DataRecord:
        return self.provenance.data or DataRecord()

    @property
    def _training_labels(self) -> str | None:
        """Hash of the labels of the fit; None if there were none or they are not known."""
        return None if self._data.fingerprint is None else self._data.fingerprint.labels

    @cached_property
    def _stored_evaluation(self) -> BeforeAfter | None:
        """Evaluation made at the fit; None unless these are its rows and, if it had labels, its labels."""
        if self.learner is not None or not self.are_training_rows:
            return None
        return self.provenance.evaluation if self._training_labels is None or self._are_training_labels else None

    @cached_property
    def assessment(self) -> Assessment:
        """Evaluation before and after learning: on folds of the learner, as stored at the fit, or on these rows."""
        if self.learner is not None and self.are_training_rows:
            if self.labels is None and self.constraints is None:
                raise Missing("it is not known which rows are similar: pass y or constraints=.")
            try:
                return evaluate_with_learner(self.learner, self.X, self.y, self.codes, self.constraints)
            except ValueError as error:
                raise Missing(f"fitting again on a part of the rows failed: {error}") from None
        stored = self._stored_evaluation
        if stored is not None and stored.pair_distances is not None:
            return stored_assessment(stored, None)
        try:
            found = self._assess_rows()
        except ValueError as error:
            raise Missing(f"these rows cannot be evaluated: {error}") from None
        except Missing:
            if stored is None:
                raise
            return stored_assessment(stored, None)
        return found if stored is None else stored_assessment(stored, found)

    def _assess_rows(self) -> Assessment:
        """Evaluate the metric on these rows, without folds."""
        if self.labels is not None and len(self.labels.classes) >= 2:
            codes, names = self.labels.codes, self.labels.classes.tolist()
            evaluation = compare_on_rows(self.before.distance, self.metric, self.X, codes, names)
            how = f"Each of these {self.n_rows:,} rows is compared with the others. {self._optimism}"
            return Assessment("Evaluated on the rows of this report.", how, evaluation, "the rows of this report")
        known = self.constraints
        if known is not None and len(known.pairs) + len(known.triplets):
            evaluation = compare_on_pairs(self.before.distance, self.metric, self.X, known)
            how = f"The constraints between these {self.n_rows:,} rows are compared. {self._optimism}"
            return Assessment(
                "Evaluated on the pairs of this report.", how, evaluation, "the constraints of this report"
            )
        raise Missing("it is not known which rows are similar: pass labels of two classes or more, or pairs.")

    @property
    def _optimism(self) -> str:
        """Warning that training rows make the learned distance look better than it is."""
        n = self._data.n_rows
        if self.learner is None and self.are_training_rows:
            return (
                "The metric was learned from these rows, so “after” is too optimistic. Use rows that were held out, or "
                "make the report from the fitted learner."
            )
        learned_from = "" if n is None else f"The metric was learned from {n:,} rows. "
        return f"{learned_from}If some of these are training rows, “after” is too optimistic."

    @cached_property
    def before(self) -> NamedDistance:
        """Distance before learning."""
        scale = None
        if self._data.scale is not None:
            scale = np.array(self._data.scale)
        elif self._data.standardised and not sp.issparse(self.X):  # older files do not store the scale
            scale = Scaling.of(self.X).scale
        choice = self.provenance.choice
        return distance_before(self.metric, scale, space_was_chosen=choice is not None and bool(choice.spaces_behind))

    # -- maps ----------------------------------------------------------------------------------------------------

    @cached_property
    def shown(self) -> np.ndarray:
        """Numbers of the rows on the maps: all, or a sample; without labels, rows of pairs come before others.

        The sample does not depend on the names of classes.
        """
        codes = None if self.labels is None else self.labels.by_appearance().codes
        if not len(self.pairs[0]):
            return stratified_sample(self.n_rows, _MOST_MAPPED, codes)
        order = np.random.default_rng(0).permutation(self.n_rows)
        is_paired = np.isin(order, self.pairs[0])
        return np.sort(np.concatenate([order[is_paired], order[~is_paired]])[:_MOST_MAPPED])

    @cached_property
    def pairs(self) -> tuple[np.ndarray, np.ndarray]:
        """Pairs of rows to draw, and whether they are similar; none where there are labels.

        Pairs of the constraints, or those noted at the fit for their multipliers.
        """
        if self.labels is None and self.constraints is None and self.notes is not None:
            noted = self.notes.influential
            pairs = [(ends, kind) for ends, kind in zip(noted.rows, noted.kinds, strict=True) if kind in _PAIR_KINDS]
            index = np.array([ends for ends, _ in pairs], dtype=np.intp).reshape(-1, 2)
            return index, np.array([kind == "similar" for _, kind in pairs], dtype=bool)
        return known_pairs(Constraints() if self.labels is not None or self.constraints is None else self.constraints)

    @property
    def draws_noted_pairs(self) -> bool:
        """Return whether the pairs to draw are those that were noted at the fit."""
        return self.constraints is None and self.notes is not None

    @cached_property
    def mapped_rows(self) -> frozenset[int]:
        """Numbers of the rows on the maps, if maps are drawn."""
        return frozenset() if self.n_rows < 3 else frozenset(self.shown.tolist())

    @cached_property
    def _distance_matrices(self) -> tuple[np.ndarray, np.ndarray]:
        """Distances between the rows on the maps, before and after."""
        if self.n_rows < 3:
            raise Missing(f"a map needs three rows; got {self.n_rows}.")
        X = self.X[self.shown]
        return distance_matrix(self.before.distance, X), distance_matrix(self.metric, X)

    @cached_property
    def maps(self) -> tuple[np.ndarray, np.ndarray]:
        return neighbor_maps(*self._distance_matrices)

    @cached_property
    def neighbors(self) -> NeighborRanks:
        return neighbor_ranks(*self._distance_matrices)

    @cached_property
    def hubs(self) -> tuple[HubCounts, HubCounts]:
        before, after = self._distance_matrices
        return hub_counts(before), hub_counts(after)

    # -- explanations --------------------------------------------------------------------------------------------

    @cached_property
    def shares(self) -> FeatureShares:
        if not self.metric.is_linear:
            raise Missing("a metric with a kernel has no weights of features; use kernel='linear', features=None.")
        scaling = getattr(self.metric, "scaling", None)
        X = self.X if scaling is None else scaling.apply(self.X)
        deviation = None if scaling is not None or self._data.scale is None else np.array(self._data.scale)
        return feature_shares(self.metric, X, sample_pairs(self.codes, self.constraints), deviation)

    @cached_property
    def local_weights(self) -> LocalWeights | None:
        """Weights that vary with place; None for other metrics."""
        return None if self.metric.features is None else local_weights(self.metric, self.X)

    @cached_property
    def notes(self) -> FitNotes | None:
        """Notes of the fit on these rows, without those on labels if these are others; None if the rows are others."""
        noted = self.provenance.notes
        if noted is None or self.learner is not None or not self.are_training_rows:
            return None
        if not self._are_training_labels:
            noted = {**noted, "doubtful_rows": None}
        return FitNotes.read(noted, self.n_rows, [] if self.labels is None else self.labels.classes.tolist())

    @cached_property
    def _are_training_labels(self) -> bool:
        """Return whether these are the labels of the fit."""
        return (
            self._training_labels is not None and self.y is not None and self._training_labels in label_hashes(self.y)
        )

    @property
    def learned_from_labels(self) -> bool:
        """Return whether the metric was learned from labels of these rows."""
        from_labels = self.constraints is None if self.learner else self._training_labels is not None
        return self.are_training_rows and from_labels

    @cached_property
    def influential(self) -> InfluentialConstraints:
        if not self.are_training_rows:
            raise Missing("the constraints are about the training rows, and these rows are others.")
        choice = self.provenance.choice
        if self.learner is None and choice is not None and choice.prior_was_chosen:
            raise Missing("the prior was chosen, so no constraint shaped the metric.")
        if self.notes is not None:
            return self.notes.influential
        if self.learner is None:
            raise Missing("the file holds no multipliers of constraints; make the report from the learner.")
        return most_influential(self.learner.constraints_, self.learner.duals_, self.learner.values_, N_NOTED)

    @cached_property
    def doubtful_rows(self) -> DoubtfulRows:
        if self.labels is None:
            raise Missing("there are no labels.")
        if self.notes is not None and self.notes.rows is not None:
            return self.notes.rows
        try:
            return doubtful_rows_in_sample(self._label_judge, self.labels.codes, N_NOTED)
        except ValueError as error:
            raise Missing(str(error)) from None

    @cached_property
    def doubtful_constraints(self) -> DoubtfulConstraints:
        if self.constraints is None:
            if self.notes is not None and self.notes.constraints is not None:
                return self.notes.constraints
            raise Missing("the pairs were drawn from the labels; see the labels instead.")
        try:
            return doubtful_constraints(self._label_judge, self.constraints, N_NOTED)
        except ValueError as error:
            raise Missing(str(error)) from None

    @cached_property
    def _label_judge(self) -> LabelJudge:
        """Judge of labels; it fits metrics without the labels it judges, if the learner was fitted to these labels."""
        if self.learner is not None and self.are_training_rows and self.constraints is None:
            return LabelJudge.from_learner(self.learner, self.X)
        return LabelJudge(self.X, None, self.metric, prior_distances=self.before.distance.distances)
