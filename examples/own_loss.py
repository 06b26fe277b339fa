"""
A loss of your own
==================

Four functions of one number are all it takes. f(w) = w + 1/w − 2 treats stretching and shrinking alike, f(w) =
f(1/w); its conjugate is f*(s) = 2 − 2 √(1 − s). Every fit begins with a check that the functions belong together, and
ends with the same certificate as any other.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import BaseEstimator
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler

from mahalo import MetricLearner
from mahalo.losses import LogDet, VonNeumann, check_loss


class Evenhanded(BaseEstimator):
    """f(w) = w + 1/w − 2."""

    def value(self, w):
        with np.errstate(divide="ignore"):
            return np.where(w > 0, w + 1 / w - 2, np.inf)

    def conjugate(self, s):
        return np.where(s < 1, 2 - 2 * np.sqrt(np.maximum(1 - s, 0)), np.inf)

    def conjugate_slope(self, s):
        return 1 / np.sqrt(1 - s)

    def conjugate_curvature(self, s):
        return 0.5 * (1 - s) ** -1.5


class Careless(Evenhanded):
    """The same with a slip in its last formula."""

    def conjugate_curvature(self, s):
        return (1 - s) ** -1.5


try:
    check_loss(Careless())
except ValueError as error:
    print(error, "\n")

X, y = load_wine(return_X_y=True)
X = StandardScaler().fit_transform(X)
_, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.6), layout="constrained")
grid = np.linspace(0.02, 4, 200)
for loss in (Evenhanded(), LogDet(), VonNeumann()):
    learner = MetricLearner(loss=loss).fit(X, y)
    w = np.linalg.eigvalsh(learner.metric_.matrix)[::-1]
    print(f"{loss!s:14} relative gap {learner.certificate_.relative_gap:.0e}, eigenvalues {w[-1]:.2g} to {w[0]:.2g}")
    left.plot(grid, loss.value(grid), label=str(loss))
    right.semilogy(1 + np.arange(len(w)), w, marker=".", label=str(loss))
left.set(title="what it costs to leave 1", xlabel="w", ylabel="f(w)", ylim=(0, 3))
right.set(title="what is learned about wine", xlabel="direction", ylabel="eigenvalue")
left.legend()
plt.show()
