"""How sure the answer is: the certificate in words, the way to it, what it was chosen among."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..explain.provenance import Candidate, Choice, FitRecord
from .markup import Cell, Column, chart, escaped, number, percent, section, table
from .sheet import Sheet, part

__all__ = ["proof"]

_N_CANDIDATES = 30
_FACTS = {
    "prior": "Prior",
    "strategy": "Pairs from labels",
    "residual": "Weight outside the basis",
    "normalize": "Compared by",
    "n_components": "Components",
}


def proof(sheet: Sheet) -> str:
    fit, choice = sheet.findings.provenance.fit, sheet.findings.provenance.choice
    if fit is None:
        why = "the file does not hold how the metric was found; report from the learner itself."
        return section("sure", "How sure", f'<p class="missing">Not shown: {why}</p>')
    candidates = "" if choice is None else _choosing(sheet, choice)
    return section("sure", "How sure", _proof(fit, choice), _gap(sheet, fit), candidates)


def _proof(fit: FitRecord, choice: Choice | None) -> str:
    c = fit.certificate
    gap, n = c.relative_gap, sum(fit.n_constraints.values())
    if choice is not None and choice.start_was_chosen:
        text = (
            "<strong>The start was kept.</strong> On held-out rows no candidate was clearly better than the metric "
            "that learning starts from, so the constraints have next to no say in this one. That nothing does better "
            f"at what was asked is proved to within {part(gap)} of the objective, but says little here."
        )
    elif c.converged:
        text = (
            f"<strong>The answer is proved.</strong> No metric at all does better at what was asked by more than "
            f"{part(gap)} of the objective. The proof is worked out from the problem and the answer alone, whoever "
            "found it."
        )
    else:
        text = (
            f"<strong>The solver stopped early.</strong> Another metric might do better at what was asked, by "
            f"{part(gap)} of the objective at most. Raise max_iter or tol, or lower γ, and learn again."
        )
    kept = n - c.n_violated
    limits = (
        f" Of the {n:,} constraints {kept:,} hold; the others are bent, the most by "
        f"{_of_bound(c.max_violation)} its bound. Where similar and dissimilar rows overlap that is "
        "as it should be."
        if c.n_violated
        else f" All {n:,} constraints hold."
    )
    facts = _facts(fit, choice)
    listed = "".join(f"<dt>{escaped(k)}</dt><dd>{escaped(v)}</dd>" for k, v in facts.items())
    return f'<p>{text}{limits}</p><dl class="facts">{listed}</dl>'


def _of_bound(violation: float) -> str:
    return f"{percent(violation, 0)} of" if violation < 2 else f"{number(float(f'{violation:.2g}'))} times"


def _facts(fit: FitRecord, choice: Choice | None) -> dict[str, str]:
    """Return what was settled on, by name."""
    facts = {"γ": number(fit.gamma), "Steps of the solver": f"{fit.n_iter:,}"}
    if choice is not None:
        settings = dict(choice.chosen.settings)
        if settings.get("residual") in (True, 1.0):
            del settings["residual"]  # nothing was weighed
        facts |= {name: _setting(k, settings[k]) for k, name in _FACTS.items() if settings.get(k) is not None}
        facts["Score on held-out rows"] = f"{choice.chosen.score:.3f}"
    left_out = {"Constraints left out: identical rows": fit.n_dropped, "Left out: rows not there": fit.n_outside}
    facts |= {name: f"{n:,}" for name, n in left_out.items() if n}
    return facts | {"Estimator": fit.estimator}


def _gap(sheet: Sheet, fit: FitRecord) -> str:
    gaps = [_finite(step.relative_gap) for step in fit.history]
    if not any(gaps):
        return "<p>The start was close enough: the solver made no step.</p>"
    gammas = [_finite(step.gamma) for step in fit.history]
    sheet.charts["gap"] = {"gap": gaps, "gamma": gammas, "tol": fit.tol}
    return "<h3>On the way to the proof</h3>" + chart(
        "gap",
        f"Relative gap after each of {len(gaps)} steps, ending at {part(fit.certificate.relative_gap)}",
        "The gap bounds how far the answer can be from the best one. Where the curve starts anew, the solver went on "
        "to a larger γ.",
    )


def _choosing(sheet: Sheet, choice: Choice) -> str:
    candidates = choice.candidates
    varied = [k for k in _FACTS if len({str(c.settings.get(k)) for c in candidates}) > 1]
    one_fold = any(c.interval is None for c in candidates)
    sheet.charts["choosing"] = _curves(choice, varied)
    columns = [
        Column("γ", True),
        *(Column(_FACTS[k]) for k in varied),
        Column("Score", True),
        *([] if one_fold else [Column("± 95 %", True)]),
    ]
    rows = [
        [
            Cell(
                "prior alone" if choice.is_start(c) else number(c.gamma),
                f"{c.gamma:.6g}",
            ),
            *(Cell(_setting(k, c.settings.get(k))) for k in varied),
            Cell(
                f"{c.score:.3f}",
                f"{c.score:.6f}",
                f"<strong>{c.score:.3f} chosen</strong>" if c.chosen else "",
            ),
            *([] if one_fold else [Cell(f"{c.interval:.3f}", f"{c.interval:.6f}")]),
        ]
        for c in _best_and_chosen(candidates)
    ]
    more = f" The {len(rows)} best of {len(candidates):,} are listed." if len(rows) < len(candidates) else ""
    return (
        f"<h3>What it was chosen among</h3><p>Every candidate was learned on a part of the rows and scored on the "
        f"rest{' (one split: no interval)' if one_fold else ''}. Those less than one row behind the best (by a score "
        "of your own: equal but for rounding) count as good as it, and the first of them is taken: starts and pairs "
        "in the order they were named in, then γ from the smallest on. Of residuals, cosine and directions it is the "
        f"first within one standard error of the best.{more}</p>"
        + chart(
            "choosing",
            "Score of every candidate on held-out rows against γ",
            f"In colour the kind that was chosen{'' if one_fold else ', with its interval over folds'}; in grey the "
            "others.",
        )
        + table("Candidates, best first", columns, rows, name="candidates-table")
    )


def _finite(value: float) -> float:
    """0 where there is no number to draw."""
    return value if np.isfinite(value) and value > 0 else 0.0


def _setting(name: str, value: Any) -> str:
    if name == "normalize":
        return "cosine" if value else "distance"
    return number(float(value)) if isinstance(value, (int, float)) else str(value)


def _best_and_chosen(candidates: tuple[Candidate, ...]) -> list[Candidate]:
    return [c for k, c in enumerate(candidates) if k < _N_CANDIDATES or c.chosen]


def _curves(choice: Choice, varied: list[str]) -> dict[str, Any]:
    """Score against γ of every other combination of settings."""
    curves: dict[tuple, dict[str, Any]] = {}
    chosen, level = None, 0.0
    for c in choice.candidates:
        gamma = c.gamma
        if choice.is_start(c):
            level = max(level, c.score)
            continue
        if not np.isfinite(gamma):
            continue
        curve = curves.setdefault(tuple(str(c.settings.get(k)) for k in varied), {"points": [], "best": False})
        curve["points"].append([gamma, c.score, c.interval or 0.0])
        if c.chosen:
            curve["best"], chosen = True, [gamma, c.score]
    for curve in curves.values():
        curve["points"].sort()
    return {"series": list(curves.values()), "chosen": chosen, "level": level}
