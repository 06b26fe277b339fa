"""The paper's algorithm, transcribed literally."""

from __future__ import annotations

import numpy as np


class PaperAlgorithm1:
    """Steps 1 to 3.8 as printed, on a kernel matrix; u and ℓ may differ from pair to pair, γ too."""

    def __init__(self, K0, pairs, similar, bound, gamma):
        self.K = K0.copy()
        self.lam = np.zeros(len(pairs))
        self.xi = np.array(bound, dtype=float)
        self.pairs, self.similar, self.gamma = pairs, similar, np.broadcast_to(gamma, len(pairs))

    def project(self, k):
        i, j = self.pairs[k]
        e = np.zeros(len(self.K))
        e[i], e[j] = 1.0, -1.0
        gamma = self.gamma[k]
        p = e @ self.K @ e
        delta = 1.0 if self.similar[k] else -1.0
        factor = delta * (gamma / (gamma + 1.0) if np.isfinite(gamma) else 1.0)
        alpha = min(self.lam[k], factor * (1.0 / p - 1.0 / self.xi[k]))
        beta = delta * alpha / (1.0 - delta * alpha * p)
        if np.isfinite(gamma):
            self.xi[k] = gamma * self.xi[k] / (gamma + delta * alpha * self.xi[k])
        self.lam[k] = self.lam[k] - alpha
        self.K = self.K + beta * np.outer(self.K @ e, e @ self.K)

    def sweep(self):
        for k in range(len(self.pairs)):
            self.project(k)
