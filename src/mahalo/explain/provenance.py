"""Provenance of a metric: the table, the data, the fit, the choice and the evaluation it comes from.

It is made at the fit and stored with the metric, in `Metric.about`, and so in its file. What concerns new rows (names
of columns, one-hot values) are entries of `about`; everything else is under its entry "provenance".
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..constraints import Constraints
from ..evaluation import BeforeAfter, intervals
from ..linalg import Matrix
from ..metric import Metric
from ..solvers import Certificate, Step
from ..version import VERSION
from .encoder_record import EncoderRecord
from .fingerprint import Fingerprint, fingerprint
from .imputation import Imputation
from .json_values import Reader, to_json_values
from .old_provenance import OLD_ENTRIES, SETTINGS, upgrade

if TYPE_CHECKING:
    from .mixin import ExplainMixin

_MOST_STEPS = 200  # of the solver's history, the last ones


@dataclass(frozen=True)
class TableRecord:
    """Conversion of the rows of a table to features, by which new tables are checked.

    Attributes
    ----------
    columns : tuple of str or None
        Columns of features, in their order; None where they have no names.
    one_hot : dict of str to list of str
        Columns that become one 0/1 feature for each value.
    vectors : dict of str to int
        Columns of lists, and the length of these.
    text : tuple of str
        Columns of texts, joined and encoded by `encoder`; empty where rows are no texts.
    label, id : str or None
        Columns of labels and of row names.
    svmlight_base : int or None
        Number of the first feature in svmlight files.
    encoder : EncoderRecord, str or None
        Encoder that made the vectors; a str is its name alone.
    impute : Imputation or None
        Filling of missing numbers.
    """

    columns: tuple[str, ...] | None = None
    one_hot: Mapping[str, list[str]] = field(default_factory=dict)
    vectors: Mapping[str, int] = field(default_factory=dict)
    text: tuple[str, ...] = ()
    label: str | None = None
    id: str | None = None
    svmlight_base: int | None = None
    encoder: EncoderRecord | str | None = None
    impute: Imputation | None = None

    def to_dict(self) -> dict[str, object]:
        """Return the entries of `Metric.about`, without empty ones."""
        values = {name: to_json_values(getattr(self, name)) for name in _TABLE}
        empty = () if self.columns is None else ("columns", "one_hot")
        return {name: value for name, value in values.items() if value not in (None, {}, []) or name in empty}

    @classmethod
    def read(cls, about: Reader) -> TableRecord:
        columns = about.strings("columns")
        return cls(
            columns=None if columns is None else tuple(columns),
            one_hot=about.mapping("one_hot"),
            vectors=about.mapping("vectors"),
            text=tuple(about.strings("text") or ()),
            svmlight_base=about.count("svmlight_base"),
            encoder=EncoderRecord.read(about),
            impute=Imputation.read(about),
            **{name: about.text(name) for name in ("label", "id")},
        )


_TABLE = tuple(f.name for f in dataclasses.fields(TableRecord))


@dataclass(frozen=True)
class DataRecord:
    """Training rows and labels; None where something is not known.

    Attributes
    ----------
    scale : tuple of float or None
        Standard deviations that columns were divided by.
    n_chosen_by : int or None
        Rows that settings were chosen by, where these were a sample.
    n_imputed : int or None
        Missing numbers that were filled in.
    """

    source: str | None = None
    n_rows: int | None = None
    n_features: int | None = None
    n_classes: int | None = None
    n_unlabelled: int | None = None
    standardised: bool = False
    scale: tuple[float, ...] | None = None
    n_chosen_by: int | None = None
    n_imputed: int | None = None
    fingerprint: Fingerprint | None = None

    @classmethod
    def read(cls, values: Reader) -> DataRecord:
        prints, scale = values.part("fingerprint"), values.numbers("scale")
        counts = ("n_rows", "n_features", "n_classes", "n_unlabelled", "n_chosen_by", "n_imputed")
        return cls(
            source=values.text("source"),
            standardised=bool(values.get("standardised")),
            scale=None if scale is None else tuple(scale),
            fingerprint=None if prints is None else Fingerprint(prints.text("rows"), prints.text("labels")),
            **{name: values.count(name) for name in counts},
        )


@dataclass(frozen=True)
class FitRecord:
    """The estimator with its parameters, its constraints by kind, and the certificate of its solution."""

    estimator: str
    parameters: Mapping[str, object]
    gamma: float
    n_constraints: Mapping[str, int]
    n_dropped: int
    n_outside: int
    certificate: Certificate
    n_iter: int
    history: tuple[Step, ...] = ()
    certified_over: str = ""  # basis of all metrics that the certificate is about; not in older files

    @property
    def tol(self) -> float:
        return Reader(self.parameters).number("tol")

    @classmethod
    def read(cls, values: Reader) -> FitRecord:
        certificate = values.required("certificate")
        return cls(
            estimator=values.text("estimator") or "MetricLearner",
            parameters=values.mapping("parameters"),
            gamma=values.number("gamma"),
            n_constraints=values.mapping("n_constraints"),
            n_dropped=values.count("n_dropped") or 0,
            n_outside=values.count("n_outside") or 0,
            certificate=certificate.as_dataclass(Certificate),
            n_iter=values.count("n_iter") or 0,
            history=tuple(step.as_dataclass(Step) for step in values.parts("history")),
            certified_over=values.text("certified_over") or "",
        )


@dataclass(frozen=True)
class Candidate:
    """Settings, their mean score over `n_folds` folds (NaN for none) and half its 95 % interval (None below two).

    `behind` is by how much the score is below that of the chosen candidate in the same folds.
    """

    gamma: float
    settings: Mapping[str, object]
    score: float
    interval: float | None
    chosen: bool
    n_folds: int | None = None  # neither is in older files
    behind: float | None = None

    @property
    def space(self) -> str | None:
        """Name of the space of the metric; None in older files."""
        space = self.settings.get("space")
        return None if space is None else str(space)

    @classmethod
    def read(cls, values: Reader) -> Candidate:
        interval, behind = values.get("interval"), values.get("behind")
        return cls(
            gamma=values.number("gamma"),
            settings=values.mapping("settings"),
            score=values.number("score"),
            interval=None if interval is None else values.number("interval"),
            chosen=bool(values.get("chosen")),
            n_folds=values.count("n_folds"),
            behind=None if behind is None else values.number("behind"),
        )


@dataclass(frozen=True)
class Choice:
    """Candidates, best score first, one of them chosen."""

    candidates: tuple[Candidate, ...]

    @property
    def chosen(self) -> Candidate:
        return next(one for one in self.candidates if one.chosen)

    def is_prior(self, candidate: Candidate) -> bool:
        """Return whether a candidate is the prior itself: its γ is far below all others."""
        gammas = sorted({one.gamma for one in self.candidates})
        return len(gammas) > 1 and candidate.gamma == gammas[0] and gammas[0] < 1e-5 * gammas[1]

    @property
    def spaces_behind(self) -> dict[str, float]:
        """Least `behind` of every other space that was tried, best first; of its candidates scored in most folds."""
        found: dict[str, tuple[int, float]] = {}
        for one in self.candidates:
            if one.space not in (None, self.chosen.space) and one.behind is not None and math.isfinite(one.behind):
                rank = -(one.n_folds or 0), one.behind
                found[str(one.space)] = min(found.get(str(one.space), rank), rank)
        return dict(sorted(((space, behind) for space, (_, behind) in found.items()), key=lambda item: item[1]))

    @property
    def prior_was_chosen(self) -> bool:
        return self.is_prior(self.chosen)

    @classmethod
    def read(cls, values: Reader) -> Choice:
        choice = cls(tuple(Candidate.read(one) for one in values.parts("candidates")))
        if sum(one.chosen for one in choice.candidates) != 1:
            raise ValueError("one candidate must be the chosen one")
        return choice


@dataclass(frozen=True)
class Provenance:
    """Origin of a metric; parts that are not known are None.

    Attributes
    ----------
    version : str or None
        Version of mahalo.
    table : TableRecord
    data : DataRecord or None
    fit : FitRecord or None
    choice : Choice or None
        Candidates, if settings were chosen among some.
    evaluation : BeforeAfter or None
        Evaluation on held-out rows at the fit.
    notes : dict or None
        Influential constraints and doubtful labels, as `fit_notes` returns them.
    """

    version: str | None = None
    table: TableRecord = TableRecord()
    data: DataRecord | None = None
    fit: FitRecord | None = None
    choice: Choice | None = None
    evaluation: BeforeAfter | None = None
    notes: Mapping[str, object] | None = None

    @classmethod
    def of(cls, metric: Metric) -> Provenance:
        """Read the provenance stored with a metric; raise ValueError if it is damaged."""
        about = metric.about or {}
        try:
            return cls.read(Reader(upgrade(about) if "fitted" in about or "fit" in about else about))
        except (KeyError, TypeError, AttributeError, StopIteration, ValueError) as error:
            raise ValueError(f"the provenance stored with this model is damaged ({error}); fit it again.") from None

    @classmethod
    def read(cls, about: Reader) -> Provenance:
        values = about.part("provenance") or Reader({})
        data, fit, choice = (values.part(name) for name in ("data", "fit", "choice"))
        evaluation = values.mapping("evaluation")
        return cls(
            version=values.text("version"),
            table=TableRecord.read(about),
            data=None if data is None else DataRecord.read(data),
            fit=None if fit is None else FitRecord.read(fit),
            choice=None if choice is None else Choice.read(choice),
            evaluation=BeforeAfter.from_dict(evaluation) if evaluation else None,
            notes=values.mapping("notes") or None,
        )

    def to_dict(self) -> dict[str, object]:
        """Return the entries of `Metric.about`: values that JSON knows."""
        names = ("version", "data", "fit", "choice", "notes")
        values = {name: to_json_values(getattr(self, name)) for name in names if getattr(self, name) is not None}
        if self.evaluation is not None:
            values["evaluation"] = self.evaluation.to_dict()
        return self.table.to_dict() | ({"provenance": values} if values else {})

    def attach(self, metric: Metric) -> Metric:
        """Return the metric with this provenance; entries of `about` that are not of provenance stay."""
        ours = {*_TABLE, "provenance", *OLD_ENTRIES}
        others = {name: value for name, value in metric.about.items() if name not in ours}
        return dataclasses.replace(metric, about={**others, **self.to_dict()})


# -- provenance of a fit ---------------------------------------------------------------------------------------------


def provenance_of(learner: ExplainMixin, rows: tuple[Matrix, np.ndarray | None] | None) -> Provenance:
    """Return the provenance of the metric of a fitted learner; `rows` are its rows and labels, None if on disk."""
    check_is_fitted(learner)
    names, n_features = getattr(learner, "feature_names_in_", ()), learner.metric_.n_features
    named = len(names) and len(names) == n_features
    is_table = n_features is not None and not learner.metric_.coordinates.is_precomputed
    return Provenance(
        version=VERSION,
        table=TableRecord(columns=tuple(str(name) for name in names) if named else None),
        data=DataRecord(
            n_rows=learner.constraints_.n_rows,
            n_features=n_features,
            fingerprint=None if rows is None or not is_table else fingerprint(*rows),
        ),
        fit=FitRecord(
            estimator=type(learner).__name__,
            parameters={name: to_json_values(value) for name, value in vars(learner).items() if _is_parameter(name)},
            gamma=float(getattr(learner, "gamma_", None) or learner.gamma),
            n_constraints=_count_constraints(learner.constraints_),
            n_dropped=int(learner.n_dropped_),
            n_outside=int(learner.n_outside_),
            certificate=learner.certificate_,
            n_iter=int(learner.n_iter_),
            history=tuple(learner.history_[-_MOST_STEPS:]),
            certified_over=learner.certified_over_,
        ),
        choice=_choice(learner) if hasattr(learner, "cv_results_") else None,
        evaluation=getattr(learner, "before_after_", None),
    )


def _count_constraints(constraints: Constraints) -> dict[str, int]:
    """Return the number of constraints of every kind that there is."""
    n_similar, n_quadruplets = int((constraints.pairs.sign > 0).sum()), int(np.sum(constraints.linear.is_quadruplet))
    counts = {
        "similar": n_similar,
        "dissimilar": len(constraints.pairs) - n_similar,
        "triplet": len(constraints.triplets),
        "quadruplet": n_quadruplets,
        "linear": len(constraints.linear.is_quadruplet) - n_quadruplets,
    }
    return {kind: n for kind, n in counts.items() if n}


def _is_parameter(name: str) -> bool:
    """Return whether an attribute of an estimator is a parameter: `get_params` is slow beside a small fit."""
    return not (name.startswith("_") or name.endswith("_"))


def _choice(learner: ExplainMixin) -> Choice:
    results, best = vars(learner)["cv_results_"], vars(learner)["best_index_"]
    return Choice(
        tuple(
            Candidate(
                gamma=float(results["gamma"][k]),
                settings={name: to_json_values(results[name][k]) for name in SETTINGS},
                score=float(results["mean_score"][k]),
                interval=intervals.of_mean(results["scores"][k]),
                chosen=bool(k == best),
                n_folds=int(results["n_folds"][k]),
                behind=float(results["behind"][k]),
            )
            for k in np.argsort(results["behind"], kind="stable")  # NaN last
        )
    )
