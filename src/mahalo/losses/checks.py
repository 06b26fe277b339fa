"""Loss objects from the `loss` parameter, and numerical checks of losses that users write."""

from __future__ import annotations

import numpy as np

from .frobenius import Frobenius
from .logdet import LogDet
from .sdp import SDPFrobenius, SDPLogDet
from .spectral import Loss
from .von_neumann import VonNeumann

_BY_NAME: dict[str, type] = {"logdet": LogDet, "vonneumann": VonNeumann, "frobenius": Frobenius}
_OURS = (LogDet, VonNeumann, Frobenius, SDPFrobenius, SDPLogDet)
_FUNCTIONS = ("value", "conjugate", "conjugate_slope", "conjugate_curvature")


def as_loss(loss: str | Loss) -> Loss:
    """Return the loss object for a `loss` parameter; raise ValueError if it is not a valid loss."""
    if isinstance(loss, str):
        if loss not in _BY_NAME:
            raise ValueError(f"loss must be one of {', '.join(map(repr, _BY_NAME))} or a loss object; got {loss!r}.")
        return _BY_NAME[loss]()
    if isinstance(loss, type):
        raise ValueError(f"loss must be an object, not a class; pass {loss.__name__}().")
    if type(loss) in _OURS:  # subclasses may differ and are checked
        _check_numbers(loss)
        return loss
    check_loss(loss)
    return loss


def _check_numbers(loss: Loss) -> None:
    """Raise ValueError unless eta ≥ 0 and strength > 0."""
    for name, least in (("eta", "≥ 0"), ("strength", "> 0")):
        number = getattr(loss, name, 1.0)
        is_number = isinstance(number, (int, float, np.number)) and not isinstance(number, bool)
        if not is_number or not np.isfinite(number) or number < 0 or (name == "strength" and number == 0):
            raise ValueError(f"{name} of {type(loss).__name__} must be a number {least}; got {number!r}.")


def check_loss(loss: Loss) -> None:
    """Raise ValueError if `loss` does not have the properties that the solvers rely on.

    Checked on grids: f ≥ 0 = f(η) at η ≥ 0; f convex; f* the conjugate of f over w ≥ 0, attained at its slope; the
    curvature the derivative of the slope; the slope without bound where f* ends.
    """
    who = type(loss).__name__
    missing = [name for name in _FUNCTIONS if not callable(getattr(loss, name, None))]
    if missing:
        raise ValueError(f"a loss needs {', '.join(_FUNCTIONS)}; {who} lacks {', '.join(missing)}.")
    w, f = _value_on_grid(loss, who, _eta(loss, who))
    _check_convex(w, f, who)
    s, conjugate, beyond = _conjugate_on_grid(loss, who)
    _check_conjugate(loss, who, w, f, s, conjugate)
    if beyond is not None:
        _check_end_of_domain(loss, who, float(s[s < beyond][-1]), beyond)


def _grid_of_eigenvalues() -> np.ndarray:
    return np.unique(np.concatenate([np.logspace(-6, 3, 400), np.linspace(0.0, 5.0, 201)]))


def _eta(loss: Loss, who: str) -> float:
    stated = getattr(loss, "eta", None)
    if stated is None:
        eta = float(_evaluate(loss, who, "conjugate_slope", np.zeros(1))[0])
        if not 0 <= eta < np.inf:
            raise ValueError(
                f"{who} must be zero somewhere: at eta or, if it has none, at conjugate_slope(0), which is {eta:.4g}."
            )
        return eta
    if not isinstance(stated, (int, float, np.number)) or not 0 <= stated < np.inf:
        raise ValueError(f"eta of {who}, where the loss is zero, must be a number ≥ 0; got {stated!r}.")
    return float(stated)


def _value_on_grid(loss: Loss, who: str, eta: float) -> tuple[np.ndarray, np.ndarray]:
    w = np.union1d(_grid_of_eigenvalues(), eta)
    f = _evaluate(loss, who, "value", w)
    if np.isnan(f).any():
        raise ValueError(f"value of {who} is NaN at w = {w[np.isnan(f)][0]:.4g}; outside the domain it must be inf.")
    lowest = int(np.argmin(f))
    at_eta = float(f[np.searchsorted(w, eta)])
    if not abs(at_eta) <= 1e-9:
        hint = f"; it is smallest near w = {w[lowest]:.4g}, value {f[lowest]:.4g}" if np.isfinite(f[lowest]) else ""
        raise ValueError(f"value of {who} must be 0 at eta = {eta:g}; it is {at_eta:.4g}{hint}.")
    if f[lowest] < -1e-9:
        raise ValueError(f"value of {who} must be ≥ 0 everywhere; it is {f[lowest]:.4g} at w = {w[lowest]:.4g}.")
    return w, f


def _check_convex(w: np.ndarray, f: np.ndarray, who: str) -> None:
    finite = np.isfinite(f)
    w, f = w[finite], f[finite]
    slope = np.diff(f) / np.diff(w)
    rounding = 1e-15 * np.maximum(np.abs(f[1:]), np.abs(f[:-1])) / np.diff(w)
    falls = np.diff(slope) < -1e-6 * (1.0 + np.abs(slope[1:])) - rounding[1:] - rounding[:-1]
    if falls.any():
        raise ValueError(f"value of {who} must be convex; its slope falls near w = {w[1:-1][falls][0]:.4g}.")


def _conjugate_on_grid(loss: Loss, who: str) -> tuple[np.ndarray, np.ndarray, float | None]:
    """Return the grid points s where f* is finite, f* there, and the first s where it is infinite (or None)."""
    s = np.unique(np.concatenate([np.linspace(-10.0, 3.0, 261), -np.logspace(-4, 2, 60)]))
    conjugate = _evaluate(loss, who, "conjugate", s)
    if np.isnan(conjugate).any():
        at = s[np.isnan(conjugate)][0]
        raise ValueError(f"conjugate of {who} is NaN at s = {at:.4g}; outside the domain it must be inf.")
    inside = np.isfinite(conjugate)
    # f ≥ 0 = f(η) makes s η ≤ f*(s), and f*(s) ≤ 0 where s ≤ 0.
    wrong = ~inside & ((s <= 0) | (conjugate < 0))
    if wrong.any():
        k = int(np.flatnonzero(wrong)[-1])
        raise ValueError(
            f"conjugate of {who} must be finite for s ≤ 0, and never −inf; it is {conjugate[k]} at s = {s[k]:.4g}."
        )
    return s[inside], conjugate[inside], None if inside.all() else float(s[~inside][0])


def _check_conjugate(loss: Loss, who: str, w: np.ndarray, f: np.ndarray, s: np.ndarray, conjugate: np.ndarray) -> None:
    best = _evaluate(loss, who, "conjugate_slope", s)
    curvature = _evaluate(loss, who, "conjugate_curvature", s)
    if (best < 0).any() or not np.isfinite(best).all():
        k = int(np.argmin(np.where(np.isfinite(best), best, -np.inf)))
        raise ValueError(
            f"conjugate_slope of {who} is an eigenvalue of the metric, ≥ 0; got {best[k]:.4g} at s = {s[k]:.4g}."
        )
    # f*(s) = s w − f(w) at w = slope(s), and no w of the grid does better.
    attained = s * best - _evaluate(loss, who, "value", best)
    size = 1.0 + np.abs(conjugate) + np.abs(s * best)
    wrong = ~(np.abs(attained - conjugate) <= 1e-6 * size)
    if wrong.any():
        k = int(np.flatnonzero(wrong)[0])
        raise ValueError(
            f"conjugate of {who} must be s w − value(w) at w = conjugate_slope(s); at s = {s[k]:.4g}, "
            f"w = {best[k]:.4g} it is {conjugate[k]:.6g}, not {attained[k]:.6g}."
        )
    finite = np.isfinite(f)
    better = (s[:, None] * w[finite] - f[finite]).max(axis=1) > conjugate + 1e-6 * size
    if better.any():
        raise ValueError(
            f"conjugate of {who} must be the largest s w − value(w) over w ≥ 0; at s = {s[better][0]:.4g} there is a "
            "larger one."
        )
    if (curvature < 0).any() or not np.isfinite(curvature).all():
        raise ValueError(f"conjugate_curvature of {who} must be a number ≥ 0 wherever conjugate is finite.")
    _check_curvature(loss, who, s, best, curvature)


def _check_curvature(loss: Loss, who: str, s: np.ndarray, best: np.ndarray, curvature: np.ndarray) -> None:
    """Compare the curvature with one-sided differences, so that kinks pass with either side's curvature."""
    h = 1e-6 * np.maximum(1e-3, np.minimum(1.0, np.abs(s)))
    with np.errstate(all="ignore"):
        left = (best - _evaluate(loss, who, "conjugate_slope", s - h)) / h
        right = (_evaluate(loss, who, "conjugate_slope", s + h) - best) / h
    tolerance = 1e-3 * (1.0 + np.abs(curvature))
    low, high = np.fmin(left, right) - tolerance, np.fmax(left, right) + tolerance
    wrong = np.isfinite(low) & np.isfinite(high) & ((curvature < low) | (curvature > high))
    if wrong.any():
        k = int(np.flatnonzero(wrong)[0])
        raise ValueError(
            f"conjugate_curvature of {who} must be the derivative of conjugate_slope; at s = {s[k]:.4g} it is "
            f"{curvature[k]:.4g}, but finite differences give {right[k]:.4g}."
        )


def _check_end_of_domain(loss: Loss, who: str, inside: float, beyond: float) -> None:
    """Raise ValueError unless the slope of f* grows without bound at the end of its domain.

    That growth keeps the solvers' steps inside the domain. It fails if f becomes a straight line.
    """
    for _ in range(6):
        s = np.linspace(inside, beyond, 1001)
        k = int(np.argmin(np.isfinite(_evaluate(loss, who, "conjugate", s))))
        inside, beyond = float(s[k - 1]), float(s[k])
    # Over distances in equal ratios, the increments of an unbounded slope do not shrink.
    distance = (inside if inside > 0 else 1.0) * 2.0 ** -np.array([10, 25, 40])
    far, near, nearest = _evaluate(loss, who, "conjugate_slope", inside - distance)
    if not (nearest - near > 0.25 * (near - far) or nearest > 1e12):
        raise ValueError(
            f"conjugate of {who} ends at s = {inside:.4g}, where conjugate_slope is {nearest:.4g}; it must grow "
            "without bound there. value must grow faster than linearly, or reach its largest slope only in the limit."
        )


def _evaluate(loss: Loss, who: str, name: str, x: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        result = getattr(loss, name)(x)
    if not isinstance(result, (np.ndarray, np.generic)):
        raise ValueError(f"{name} of {who} must return an array for an array; got {type(result).__name__}.")
    result = np.asarray(result, dtype=np.float64)
    if result.shape != x.shape:
        raise ValueError(
            f"{name} of {who} must work elementwise on arrays; for shape {x.shape} it returned {result.shape}."
        )
    return result
