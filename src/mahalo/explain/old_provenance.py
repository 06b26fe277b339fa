"""Conversion of provenance as files of the second version stored it: nested dictionaries beside names of columns."""

from __future__ import annotations

from collections.abc import Mapping

from .json_values import Reader

OLD_ENTRIES = ("mahalo", "fitted", "fit", "evaluation", "notes")  # of `Metric.about` in the second version

# Settings of a candidate, beside γ.
SETTINGS = ("space", "kernel_params", "features", "prior", "strategy", "n_components", "residual", "normalize")


def upgrade(about: Mapping[str, object]) -> dict[str, object]:
    """Return the entries of `Metric.about` as they are stored today, from those of the second version."""
    values = Reader(about)
    fitted, fit = (values.mapping(name) for name in ("fitted", "fit"))
    candidates = [
        {"settings": {name: one.get(name) for name in SETTINGS}}
        | {name: one.get(name) for name in ("gamma", "score", "interval", "chosen")}
        for one in Reader(fit).parts("choosing")
    ]
    provenance = {
        "version": values.get("mahalo"),
        "data": {
            "source": fitted.get("data"),
            "n_rows": fit.get("n_rows") or fitted.get("rows"),
            "n_features": fit.get("n_features") or fitted.get("columns"),
            "n_classes": fitted.get("classes"),
            "n_unlabelled": fitted.get("unlabelled"),
            "standardised": fitted.get("standardised"),
            "n_chosen_by": fitted.get("rows_to_choose_by"),
            "fingerprint": fitted.get("fingerprint"),
        },
        "fit": fit if fit.get("certificate") else None,
        "choice": {"candidates": candidates} if candidates else None,
        "evaluation": values.get("evaluation") or _evaluation(Reader(fit.get("before_after") or fitted)),
        "notes": values.get("notes"),
    }
    kept = {name: value for name, value in about.items() if name not in OLD_ENTRIES}
    return {"columns": fit.get("feature_names"), **kept, "provenance": provenance}


def _evaluation(found: Reader) -> dict[str, object] | None:
    """Return measures that were stored without anything else."""
    before = found.mapping("before")
    if not before:
        return None
    intervals = {name: found.mapping(name) for name in ("interval", "before_interval", "after_interval")}
    return {
        "before": before,
        "after": found.mapping("after"),
        **intervals,
        "lda": {},
        "lda_interval": {},
        "n_queries": found.get("questions") or found.get("n_questions") or 0,
        "n_index": 0,
        "primary": next((name for name in ("10-NN", "MAP") if name in before), next(iter(before))),
        "searched": "other held-out rows",
        "names": ["before", "after"],
        "classes": [],
        "confusions": [],
        "pair_distances": None,
    }
