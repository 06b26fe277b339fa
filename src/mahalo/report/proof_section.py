"""Proof: the certificate of the solution, the steps of the solver, and the candidates that were compared."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..drawing.charts import GapChart, ScoreCurve, ScoresChart
from ..explain.provenance import Candidate, Choice, FitRecord
from .findings import Findings, Missing
from .formatting import gap_text, number, percent
from .parts import Cell, Chart, Column, Table

_N_CANDIDATES = 30
_SETTINGS = {
    "space": "Space",
    "kernel_params": "Kernel",
    "features": "Features",
    "prior": "Prior",
    "strategy": "Pairs from labels",
    "residual": "Weight outside the basis",
    "normalize": "Compared by",
    "n_components": "Components",
}


@dataclass(frozen=True)
class CandidateScores:
    """Scores of candidates against γ, and a table of the best; in a race not all are scored on every fold."""

    has_intervals: bool
    n_candidates: int
    is_race: bool
    chart: Chart
    table: Table
    space: str | None
    spaces_behind: dict[str, str]

    @property
    def n_listed(self) -> int:
        """Number of candidates in the table."""
        return len(self.table.rows)


@dataclass(frozen=True)
class Proof:
    """Certificate in words and numbers.

    Attributes
    ----------
    status : str
        "prior chosen", "converged" or "stopped early".
    gap : str
        Relative gap in percent.
    certified_over : str
        Basis of all metrics that the certificate is about, empty if it is about any.
    n_constraints, n_violated : int
    largest_violation : str
        Violation relative to its bound, in words.
    facts : dict of str to str
        Settings of the fit by name.
    n_steps : int
        Steps of the solver.
    chart : Chart or None
        Gap after every step; None where no step had one.
    candidates : CandidateScores or None
    """

    status: str
    gap: str
    certified_over: str
    n_constraints: int
    n_violated: int
    largest_violation: str
    facts: dict[str, str]
    n_steps: int
    chart: Chart | None
    candidates: CandidateScores | None


def proof(findings: Findings) -> Proof:
    """Return the certificate of the fit: how far the solution can be from the optimum."""
    fit, choice = findings.provenance.fit, findings.provenance.choice
    if fit is None:
        raise Missing("the file does not hold how the metric was found; make the report from the learner.")
    certificate = fit.certificate
    status = "converged" if certificate.converged else "stopped early"
    return Proof(
        status="prior chosen" if choice is not None and choice.prior_was_chosen else status,
        gap=gap_text(certificate.relative_gap),
        certified_over=fit.certified_over,
        n_constraints=sum(fit.n_constraints.values()),
        n_violated=certificate.n_violated,
        largest_violation=_relative_to_bound(certificate.max_violation),
        facts=_facts(fit, choice),
        n_steps=fit.n_iter,
        chart=_gap_chart(fit),
        candidates=None if choice is None else _candidate_scores(choice),
    )


def _relative_to_bound(violation: float) -> str:
    return f"{percent(violation, 0)} of" if violation < 2 else f"{number(float(f'{violation:.2g}'))} times"


def _facts(fit: FitRecord, choice: Choice | None) -> dict[str, str]:
    facts = {"γ": number(fit.gamma), "Steps of the solver": f"{fit.n_iter:,}"}
    if choice is None:
        given = {"kernel": "Kernel", "kernel_params": "Its parameters", "features": "Features", "basis": "Basis"}
        values = {name: fit.parameters.get(name) for name in given}
        facts |= {given[name]: _setting(name, value) for name, value in values.items() if value not in (None, "linear")}
    else:
        settings = dict(choice.chosen.settings)
        if settings.get("residual") in (True, 1.0):
            del settings["residual"]  # the default
        facts |= {name: _setting(k, settings[k]) for k, name in _SETTINGS.items() if settings.get(k) is not None}
        facts["Score on held-out rows"] = f"{choice.chosen.score:.3f}"
    left_out = {"Constraints dropped: identical rows": fit.n_dropped, "Constraints dropped: absent rows": fit.n_outside}
    facts |= {name: f"{n:,}" for name, n in left_out.items() if n}
    return facts | {"Estimator": fit.estimator}


def _setting(name: str, value: object) -> str:
    if name == "normalize":
        return "cosine" if value else "distance"
    if isinstance(value, dict):
        return ", ".join(f"{key} {_setting(key, one)}" for key, one in value.items())
    return number(float(value)) if isinstance(value, (int, float)) else str(value)


def _gap_chart(fit: FitRecord) -> Chart | None:
    gap = tuple(_positive_or_zero(step.relative_gap) for step in fit.history)
    if not any(gap):
        return None
    gamma = tuple(_positive_or_zero(step.gamma) for step in fit.history)
    return Chart(
        "gap",
        f"Relative gap after each of {len(gap)} steps, ending at {gap_text(fit.certificate.relative_gap)}",
        "The gap bounds how far the solution can be from the optimum. Where the curve starts again, the solver "
        "continued with a larger γ.",
        GapChart(gap, gamma, fit.tol),
    )


def _positive_or_zero(value: float) -> float:
    return value if np.isfinite(value) and value > 0 else 0.0


# -- candidates ----------------------------------------------------------------------------------------------------


def _candidate_scores(choice: Choice) -> CandidateScores:
    candidates = [c for c in choice.candidates if np.isfinite(c.score)]
    varied = [k for k in _SETTINGS if _varies(k, candidates)]
    has_intervals = choice.chosen.interval is not None
    caption = f"In colour the chosen settings{', with their interval over folds' * has_intervals}; in grey the others."
    if choice.is_prior(choice.chosen):
        caption = "The prior alone was chosen (dashed line); in grey the candidates that learn from it."
    is_race = len({c.n_folds for c in choice.candidates}) > 1
    return CandidateScores(
        has_intervals,
        len(choice.candidates),
        is_race,
        Chart("scores", "Score of every candidate on held-out rows against γ", caption, _curves(choice, varied)),
        _candidate_table(choice, candidates, varied, has_intervals, is_race),
        choice.chosen.space,
        {space: _lag_text(behind) for space, behind in choice.spaces_behind.items()},
    )


def _varies(name: str, candidates: list[Candidate]) -> bool:
    """Return whether candidates of one space differ in a setting, or any two in their space."""
    values: dict[str | None, set[str]] = {}
    for c in candidates:
        values.setdefault(None if name == "space" else c.space, set()).add(str(c.settings.get(name)))
    return any(len(found) > 1 for found in values.values())


def _lag_text(behind: float) -> str:
    return f"{behind:.3f}" if behind >= 0 else f"{-behind:.3f} ahead, a near-tie,"


def _candidate_table(
    choice: Choice, candidates: list[Candidate], varied: list[str], has_intervals: bool, is_race: bool
) -> Table:
    """Return the best candidates; in a race those scored on more folds come first, with the number of folds."""
    if is_race:
        candidates = sorted(candidates, key=lambda c: (-(c.n_folds or 0), -c.score))
    columns = [Column("γ", True), *(Column(_SETTINGS[k]) for k in varied), Column("Score", True)]
    columns += [Column("± 95 %", True)] if has_intervals else []
    columns += [Column("Folds", True)] if is_race else []
    rows = []
    for c in _best_and_chosen(candidates):
        score = f"{c.score:.3f} chosen" if c.chosen else f"{c.score:.3f}"
        rows.append(
            [
                Cell("prior alone" if choice.is_prior(c) else number(c.gamma), f"{c.gamma:.6g}"),
                *(Cell(_setting(k, c.settings.get(k))) for k in varied),
                Cell(score, f"{c.score:.6f}", strong=c.chosen),
                *([_interval_cell(c.interval)] if has_intervals else []),
                *([Cell(str(c.n_folds or 0))] if is_race else []),
            ]
        )
    title = "Candidates, those scored on more folds first" if is_race else "Candidates, best first"
    return Table(title, columns, rows, "candidates-table")


def _interval_cell(interval: float | None) -> Cell:
    return Cell("") if interval is None else Cell(f"{interval:.3f}", f"{interval:.6f}")


def _best_and_chosen(candidates: list[Candidate]) -> list[Candidate]:
    return [c for k, c in enumerate(candidates) if k < _N_CANDIDATES or c.chosen]


def _curves(choice: Choice, varied: list[str]) -> ScoresChart:
    """Return scores against γ, one curve for each combination of the other settings."""
    groups: dict[tuple[str, ...], list[Candidate]] = {}
    candidates = [c for c in choice.candidates if np.isfinite(c.score)]
    n_folds = max((c.n_folds or 0 for c in candidates if choice.is_prior(c)), default=0)
    prior_scores = [c.score for c in candidates if choice.is_prior(c) and (c.n_folds or 0) == n_folds]
    for c in candidates:
        if np.isfinite(c.gamma) and not choice.is_prior(c):
            groups.setdefault(tuple(str(c.settings.get(k)) for k in varied), []).append(c)
    curves = tuple(
        ScoreCurve(tuple(sorted((c.gamma, c.score, c.interval or 0.0) for c in group)), any(c.chosen for c in group))
        for group in groups.values()
    )
    chosen = next(((c.gamma, c.score) for group in groups.values() for c in group if c.chosen), None)
    return ScoresChart(curves, chosen, max(prior_scores, default=0.0))
