"""The parameters of a learner, looked at before anything is done with them."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np

from ..constraints import check_strategy, checked_bounds, checked_percentiles
from ..losses import as_loss
from ..validation import check_count, is_linear

__all__ = ["check_parameters"]


def check_parameters(settings: Any) -> None:
    """Raise where a parameter of a learner is not what it should be, or does not go with another."""
    s = settings
    if not (isinstance(s.tol, Real) and 0 < float(s.tol) < np.inf):
        raise ValueError(f"tol must be a positive number; got {s.tol!r}.")
    check_count(s.max_iter, "max_iter", or_none=True)
    if s.psd not in ("error", "clip", "shift"):
        raise ValueError(f"psd must be 'error', 'clip' or 'shift'; got {s.psd!r}.")
    as_loss(s.loss)
    _check_space(s)
    if not isinstance(s.normalize, (bool, np.bool_)):
        raise ValueError(f"normalize must be True or False; got {s.normalize!r}.")
    if s.solver not in ("auto", "newton", "dual", "bregman"):
        raise ValueError(f"solver must be 'auto', 'newton', 'dual' or 'bregman'; got {s.solver!r}.")
    check_count(s.n_components, "n_components", or_none=True)
    for strategy in s._strategies():
        check_strategy(strategy)
    check_count(s.pairs_per_class, "pairs_per_class", or_none=True)
    if s.bounds is not None:
        checked_bounds(s.bounds)
    checked_percentiles(s.percentiles, (5, 95))


def _check_space(s: Any) -> None:
    """Kernel, prior and basis."""
    weight = isinstance(s.residual, (Real, np.bool_)) and 0.0 <= float(s.residual) <= 1.0
    if not weight:
        raise ValueError(
            f"residual must be a weight from 0 (False: the basis alone) to 1 (True: all of the prior outside it); got "
            f"{s.residual!r}."
        )
    if float(s.residual) != 1.0 and s.basis is None:
        what = "weighs what lies outside a basis" if s.residual else "learns the part inside a basis alone"
        raise ValueError(f"residual={s.residual!r} {what}; give a basis too, such as basis=20.")
    linear = is_linear(s.kernel)
    if not linear and not (isinstance(s.prior, str) and s.prior == "identity"):
        raise ValueError(
            "a prior is a matrix over features and needs kernel='linear'; with another kernel leave prior='identity'."
        )
    if not (s.kernel_params is None or isinstance(s.kernel_params, dict)):
        raise ValueError(f"kernel_params must be a dict, such as {{'gamma': 0.1}}; got {s.kernel_params!r}.")
    if linear and s.psd != "error":
        raise ValueError(f"psd={s.psd!r} is for kernels that may be indefinite; kernel='linear' never is.")
    if linear and s.kernel_params:
        raise ValueError(f"kernel='linear' takes no kernel_params; got {sorted(s.kernel_params)}.")
