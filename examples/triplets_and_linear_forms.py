"""
Triplets and linear forms, mixed
================================

"a is more like b than like c", and limits on the spread of whole groups, in one fit.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler

from mahalo import Constraints, MetricLearner

X, y = load_iris(return_X_y=True)
X = StandardScaler().fit_transform(X)
rng = np.random.default_rng(0)

# 300 comparisons: row a is more like b (same species) than like c (another one).
a = rng.integers(0, len(X), 300)
b = np.array([rng.choice(np.flatnonzero((y == y[i]) & (np.arange(len(X)) != i))) for i in a])
c = np.array([rng.choice(np.flatnonzero(y != y[i])) for i in a])
comparisons = Constraints.from_triplets(np.column_stack([a, b, c]), n_rows=len(X))


def spread_form(member: np.ndarray) -> np.ndarray:
    """C with tr(W Xᵀ C X) = the sum of squared distances of the member rows to their mean: I − 11ᵀ/n on them."""
    return np.diag(member) - np.outer(member, member) / member.sum()


# All rows together keep the spread they have; inside each species it is to be at most 10. There are 300 comparisons and
# 4 limits, so each limit gets a weight (it multiplies γ) to be heard.
everybody = spread_form(np.ones(len(X)))
species = [spread_form((y == k).astype(float)) for k in range(3)]
limits = Constraints.from_linear(
    [everybody, *species], [(X**2).sum(), 10.0, 10.0, 10.0], sense=[">=", "<=", "<=", "<="], weight=1000.0
)

learner = MetricLearner(gamma=1.0).fit(X, constraints=comparisons + limits)
Z = learner.transform(X)


def holding(rows: np.ndarray) -> float:
    """Share of the comparisons that hold."""
    near, far = ((rows[a] - rows[b]) ** 2).sum(axis=1), ((rows[a] - rows[c]) ** 2).sum(axis=1)
    return float((near < far).mean())


def spread(rows: np.ndarray) -> float:
    return float(((rows - rows.mean(axis=0)) ** 2).sum())


print(learner.constraints_)
print(f"{'':28s}{'before':>8s}{'after':>8s}")
print(f"{'comparisons that hold':28s}{100 * holding(X):6.1f} %{100 * holding(Z):6.1f} %")
print(f"{'spread of all rows':28s}{spread(X):8.1f}{spread(Z):8.1f}")
for k in range(3):
    print(f"{f'spread inside species {k}':28s}{spread(X[y == k]):8.1f}{spread(Z[y == k]):8.1f}")
print(f"relative gap {learner.certificate_.relative_gap:.1e}, converged {learner.certificate_.converged}")

_, axes = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
for ax, name, rows in zip(axes, ("before", "after"), (X, Z), strict=True):
    plane = PCA(2).fit_transform(rows)
    for k, species_name in enumerate(load_iris().target_names):
        ax.scatter(*plane[y == k].T, s=14, label=species_name)
    ax.set(title=f"{name}: {100 * holding(rows):.0f} % of the comparisons hold", aspect="equal")
axes[0].legend()
plt.show()
