"""Result of a comparison: measures before and after learning, with intervals, and those of LDA beside them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from .pair_distances import PairDistances

VOTE_NOTE = "10-NN ties go to nearer rows; scikit-learn's vote may differ by a point or two"
_TITLES = {
    "10-NN": "10-NN accuracy",
    "P@1": "precision at 1",
    "P@10": "precision at 10",
    "MAP": "mean average precision",
    "AUC": "AUC of own class against others",
    "pair AUC": "AUC of similar against dissimilar pairs",
    "retrieval": "mean of P@1, P@10 and MAP",
    "MRR": "mean reciprocal rank",
}


def measure_title(name: str) -> str:
    """Return a measure's name in words."""
    return _TITLES.get(name, name)


@dataclass(frozen=True)
class ClassResult:
    """Mean of the chosen measure over the queries of one class."""

    name: str
    n_queries: int
    before: float
    after: float


@dataclass(frozen=True)
class Confusion:
    """Number of queries of class `actual` that the vote gives to class `predicted`, before and after.

    A mean over repetitions where folds are repeated.
    """

    actual: str
    predicted: str
    before: float
    after: float


@dataclass(frozen=True)
class BeforeAfter:
    """Measures on held-out rows before and after learning.

    Each fold is evaluated with settings chosen on the other folds, so no figure is biased by the choice. Print it for a
    table.

    Attributes
    ----------
    before, after : dict of str to float
        Measures by name; `lda` holds those in the space of `LinearDiscriminantAnalysis` fitted to the same training
        rows, and is empty where there are no labels or LDA cannot be fitted.
    interval : dict of str to float or None
        Half the width of the 95 % interval of the difference after − before, over rows; None for a single row.
    n_queries, n_index : int
        Numbers of queries, and of rows that each was compared with (0 for an evaluation of pairs).
    n_ranked : int
        Number of queries with a complete ranking, for MAP and AUC, where that is a sample; 0: all of them.
    n_pairs : int
        Number of held-out pairs; 0 for an evaluation of labelled rows.
    n_copies : int
        Number of queries that are copies of training rows; 0 if they are fewer than a tenth.
    names : (str, str)
        Names of the two sides.
    searched : str
        Name of the rows that queries were compared with.
    before_interval, after_interval, lda_interval : dict of str to float or None
        Half-widths of the values before and after, and of the difference after − LDA.
    held_out : bool
        False if some rows may be training rows.
    primary : str
        Measure by which settings were chosen; the verdict is about it.
    lda_fitted_to : str
        Rows that LDA was fitted to.
    classes : tuple of ClassResult
        The primary measure by class.
    confusions : tuple of Confusion
        Pairs of classes that the vote confuses before or after, most frequent first, 200 at most.
    pair_distances : (PairDistances, PairDistances) or None
        Distances of held-out pairs before and after.
    """

    before: dict[str, float]
    after: dict[str, float]
    interval: dict[str, float | None]
    n_queries: int
    names: tuple[str, str] = ("before", "after")
    searched: str = "training rows"
    before_interval: dict[str, float | None] = field(default_factory=dict)
    after_interval: dict[str, float | None] = field(default_factory=dict)
    n_index: int = 0
    n_ranked: int = 0
    n_pairs: int = 0
    n_copies: int = 0
    held_out: bool = True
    primary: str = "10-NN"
    lda_fitted_to: str = "the same training rows"
    lda: dict[str, float] = field(default_factory=dict)
    lda_interval: dict[str, float | None] = field(default_factory=dict)
    classes: tuple[ClassResult, ...] = ()
    confusions: tuple[Confusion, ...] = ()
    pair_distances: tuple[PairDistances, PairDistances] | None = field(default=None, repr=False)

    def difference(self, name: str) -> str:
        """Return the difference after − before with its interval, as text."""
        half = self.interval[name]
        return f"{self.after[name] - self.before[name]:+.3f}" + ("" if half is None else f" ± {half:.3f}")

    def verdict(self, name: str | None = None) -> str:
        """Return "better", "no clear difference" or "worse", of one measure; default: the primary one."""
        name = self.primary if name is None else name
        half, change = self.interval[name], self.after[name] - self.before[name]
        if half is None or abs(change) <= half:
            return "no clear difference"
        return "better" if change > 0 else "worse"

    @property
    def evaluated_on(self) -> str:
        """Numbers of queries and of rows that they were compared with, or of pairs, in words."""
        held_out = "held-out " * self.held_out
        if not self.n_index:
            pairs = f"{self.n_pairs:,} {held_out}pairs of " if self.n_pairs else ""
            return f"{pairs}{self.n_queries:,} {self.searched}"
        return f"{self.n_queries:,} {held_out}queries against {self.n_index:,} {self.searched}"

    @property
    def sentence(self) -> str:
        """Sentence about the comparison: verdict, measure, both values, numbers of queries and of rows searched."""
        name = self.primary
        first, second = self.names
        learning = " learning" * (self.names == ("before", "after"))
        lda = f"; LDA reaches {_figure(self.lda[name])}" if name in self.lda else ""
        return (
            f"{self.verdict().capitalize()}: {measure_title(name)} is {_figure(self.before[name])} {first} and "
            f"{_figure(self.after[name])} {second}{learning} ({self.difference(name)}), on {self.evaluated_on}{lda}."
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """Remarks on the figures, each without a full stop."""
        notes = ["± is a 95 % interval of the difference, over rows"]
        if "10-NN" in self.before:
            notes.append(VOTE_NOTE)
        if self.n_ranked:
            notes.append(f"mean average precision and AUC are of {self.n_ranked:,} of the queries, drawn at random")
        if self.n_copies:
            notes.append(
                f"{self.n_copies:,} of the queries are copies of training rows, and say little about new rows: unless "
                "each is an observation of its own, keep one of them"
            )
        if self.lda:
            notes.append(f"LDA is scikit-learn's, with shrinkage, fitted to {self.lda_fitted_to}")
        return tuple(notes)

    def __str__(self) -> str:
        width = max(len(name) for name in self.before) + 2
        first, second = self.names
        lda = f"{'LDA':>9}" * bool(self.lda)
        lines = [f"{'':{width}}{first:>9}{second:>9}{lda}   difference"]
        for name in self.before:
            beside = f"{self.lda[name]:9.3f}" if name in self.lda else " " * len(lda)
            lines.append(
                f"{name:{width}}{self.before[name]:9.3f}{self.after[name]:9.3f}{beside}   {self.difference(name)}"
            )
        return "\n".join([*lines, self.evaluated_on, *self.notes])

    def with_class_names(self, names: Sequence[object]) -> BeforeAfter:
        """Return the comparison with class codes 0, 1, … replaced by these names."""
        named = {str(code): str(name) for code, name in enumerate(names)}
        return replace(
            self,
            classes=tuple(replace(one, name=named[one.name]) for one in self.classes),
            confusions=tuple(
                replace(one, actual=named[one.actual], predicted=named[one.predicted]) for one in self.confusions
            ),
        )

    def to_dict(self) -> dict[str, object]:
        """Return plain values for JSON; `from_dict` reads them."""
        values = {name: getattr(self, name) for name in (*_PLAIN_FIELDS, *_LATER_FIELDS, "held_out", "lda_fitted_to")}
        return values | {
            "verdict": self.verdict(),
            "sentence": self.sentence,
            "names": list(self.names),
            "classes": [vars(one) for one in self.classes],
            "confusions": [vars(one) for one in self.confusions],
            "pair_distances": None if self.pair_distances is None else [p.to_dict() for p in self.pair_distances],
        }

    @classmethod
    def from_dict(cls, values: dict) -> BeforeAfter:
        """Read what `to_dict` wrote; raise ValueError if it is damaged."""
        try:
            plain = {name: values[name] for name in _PLAIN_FIELDS}
            plain["held_out"] = bool(values.get("held_out", True))
            plain["lda_fitted_to"] = str(values.get("lda_fitted_to", "the same training rows"))
            plain |= {name: int(values.get(name, 0)) for name in _LATER_FIELDS}
            for name in _DICT_FIELDS:
                plain[name] = {str(key): _number(value) for key, value in plain[name].items()}
            if plain["primary"] not in plain["before"] or any(plain["before"].keys() != plain[n].keys() for n in _SAME):
                raise ValueError("measures do not match")
            pairs = values["pair_distances"]
            return cls(
                **plain | {name: int(plain[name]) for name in ("n_queries", "n_index")},
                names=(str(values["names"][0]), str(values["names"][1])),
                classes=tuple(
                    ClassResult(str(c["name"]), int(c["n_queries"]), float(c["before"]), float(c["after"]))
                    for c in values["classes"]
                ),
                confusions=tuple(
                    Confusion(str(c["actual"]), str(c["predicted"]), float(c["before"]), float(c["after"]))
                    for c in values["confusions"]
                ),
                pair_distances=None if pairs is None else tuple(PairDistances.from_dict(one) for one in pairs),  # type: ignore[arg-type]
            )
        except (KeyError, TypeError, AttributeError, IndexError, ValueError) as error:
            raise ValueError(f"the evaluation stored with this model is damaged ({error}); fit it again.") from None


_SAME = ("after", "interval")
_DICT_FIELDS = ("before", "after", "interval", "before_interval", "after_interval", "lda", "lda_interval")
_PLAIN_FIELDS = (*_DICT_FIELDS, "n_queries", "n_index", "primary", "searched")
_LATER_FIELDS = ("n_ranked", "n_pairs", "n_copies")  # missing in older files


def _number(value: object) -> float | None:
    if value is None:
        return None
    if not isinstance(value, (int, float)) or not math.isfinite(value):
        raise ValueError(f"{value!r} where a number was expected")
    return float(value)


def _figure(value: float) -> str:
    return f"{value:.3f}"
