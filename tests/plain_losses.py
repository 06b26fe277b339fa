"""Losses written out by hand, number by number: what the library's vectorised ones are compared with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import exp, inf, log, sqrt

import numpy as np
from sklearn.base import BaseEstimator

from mahalo.losses import Frobenius, LogDet, Loss, SDPFrobenius, SDPLogDet, VonNeumann


class Hellinger(BaseEstimator):
    """A loss as a user would write one: f(w) = (√w − √η)², f*(s) = η s/(1 − s) for s < 1.

    s w − f(w) is largest where s − 1 + √(η/w) = 0, so at w = η/(1 − s)².
    """

    def __init__(self, eta=1.0):
        self.eta = eta

    def value(self, w):
        return np.where(w >= 0, (np.sqrt(np.maximum(w, 0)) - np.sqrt(self.eta)) ** 2, np.inf)

    def conjugate(self, s):
        with np.errstate(divide="ignore"):
            return np.where(s < 1, self.eta * s / (1 - s), np.inf)

    def conjugate_slope(self, s):
        return self.eta / (1 - s) ** 2

    def conjugate_curvature(self, s):
        return 2 * self.eta / (1 - s) ** 3


@dataclass(frozen=True)
class PlainLoss:
    """The library's (or a user's) loss, and its formulas on single numbers; `edge` is where the domain of f* ends."""

    loss: Loss
    f: Callable[[float], float]
    conjugate: Callable[[float], float]
    edge: float = inf

    @property
    def eta(self) -> float:
        return float(self.loss.eta)

    def __repr__(self) -> str:
        return repr(self.loss)


LOGDET = PlainLoss(
    LogDet(),
    lambda w: w - log(w) - 1 if w > 0 else inf,
    lambda s: -log(1 - s) if s < 1 else inf,
    edge=1.0,
)
VON_NEUMANN = PlainLoss(
    VonNeumann(),
    lambda w: w * log(w) - w + 1 if w > 0 else (1.0 if w > -1e-12 else inf),
    lambda s: exp(s) - 1 if s < 700 else inf,
)


def frobenius(eta: float) -> PlainLoss:
    return PlainLoss(
        Frobenius(eta),
        lambda w: (w - eta) ** 2 / 2 if w > -1e-12 else inf,
        lambda s: s * s / 2 + eta * s if s > -eta else -eta * eta / 2,
    )


def sdp_frobenius(strength: float) -> PlainLoss:
    return PlainLoss(
        SDPFrobenius(strength),
        lambda w: strength * w * w / 2 if w > -1e-12 else inf,
        lambda s: s * s / (2 * strength) if s > 0 else 0.0,
    )


def sdp_logdet(strength: float) -> PlainLoss:
    return PlainLoss(
        SDPLogDet(strength),
        lambda w: -strength * log(w) if w > 0 else inf,
        lambda s: strength * (log(strength / -s) - 1) if s < 0 else inf,
        edge=0.0,
    )


def hellinger(eta: float) -> PlainLoss:
    return PlainLoss(
        Hellinger(eta),
        lambda w: (sqrt(max(w, 0.0)) - sqrt(eta)) ** 2 if w > -1e-12 else inf,
        lambda s: eta * s / (1 - s) if s < 1 else inf,
        edge=1.0,
    )


# At rest somewhere: they pull the metric to η times the prior.
RESTING = [LOGDET, VON_NEUMANN, frobenius(1.0), frobenius(0.0), frobenius(0.4), sdp_frobenius(2.0), hellinger(0.7)]
ALL_LOSSES = [*RESTING, sdp_logdet(0.5)]
