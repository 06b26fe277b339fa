"""Files of query adapters."""

from __future__ import annotations

from dataclasses import asdict
from os import PathLike
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from ..metric import Metric
from ..metric.files import pack, unpack
from ..persistence import FEEDBACK, METRIC, Contents
from .certificate import FeedbackCertificate
from .evaluation import FeedbackEvaluation

if TYPE_CHECKING:
    from .adapter import QueryAdapter

_SETTINGS = ("lam", "temperature", "n_negatives", "weights", "n_components", "max_loss", "n_folds", "tol", "max_iter")

Adapter = TypeVar("Adapter", bound="QueryAdapter")


def save(adapter: QueryAdapter, path: str | PathLike, metric: Metric | None = None) -> None:
    """Write a fitted adapter, and the metric of the stored vectors; frozen vectors have null for λ and T."""
    frozen = not np.isfinite(adapter.lam_)
    certificate, evaluation = adapter.certificate_, adapter.before_after_
    fields = {
        "settings": {name: getattr(adapter, name) for name in _SETTINGS},
        "lam": None if frozen else adapter.lam_,
        "temperature": None if frozen else adapter.temperature_,
        "certificate": None if certificate is None else asdict(certificate),
        "evaluation": None if evaluation is None else evaluation.to_dict(),
    }
    nested = {} if metric is None else {"metric": pack(metric)}
    FEEDBACK.contents(fields, {"matrix": adapter.matrix_}, **nested).write(path)


def load(cls: type[Adapter], path: str | PathLike) -> Adapter:
    """Return the adapter of a file; raise ValueError if the file is damaged or of another kind."""
    contents = FEEDBACK.read(path)
    with contents.checking():
        settings = contents.fields["settings"]
        if set(settings) != set(_SETTINGS):
            raise ValueError("its header is not whole")
        adapter = cls(**settings)
        adapter.check_parameters()
        matrix = contents.array("matrix", (None, None))
        if matrix.shape[0] != matrix.shape[1]:
            raise ValueError(f"'matrix' has the shape {matrix.shape}")
        certificate, evaluation = contents.fields["certificate"], contents.fields["evaluation"]
        adapter.certificate_ = None if certificate is None else FeedbackCertificate(**certificate)
        adapter.before_after_ = None if evaluation is None else FeedbackEvaluation.from_dict(evaluation)
        adapter.lam_, adapter.temperature_ = (_number_or_infinity(contents, name) for name in ("lam", "temperature"))
    adapter.matrix_, adapter.n_features_in_ = matrix, matrix.shape[0]
    adapter.metric_ = unpack(contents.nested("metric", METRIC)) if "metric" in contents.fields else None
    return adapter


def _number_or_infinity(contents: Contents, name: str) -> float:
    return np.inf if contents.fields[name] is None else contents.number(name, least=np.finfo(float).tiny)
