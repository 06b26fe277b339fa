"""
Hard constraints, and a proof of contradiction
==============================================

With γ = ∞ constraints are not wishes: the learner returns a metric that satisfies every one, or a proof that there is
none.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_iris

from mahalo import Constraints, InfeasibleError, MetricLearner

X, _ = load_iris(return_X_y=True)

# Bounds are squared distances: rows 0 and 100 at least 4 apart, 100 and 101 at most 0.5.
possible = Constraints.from_pairs(similar=[[100, 101]], dissimilar=[[0, 100]], upper=0.5**2, lower=4.0**2)
learner = MetricLearner(gamma=np.inf).fit(X, constraints=possible)
print("possible:")
for i, j in possible.pairs.index:
    before = np.linalg.norm(X[i] - X[j])
    after = learner.metric_.pair_distances(X[[i]], X[[j]])[0]
    print(f"  rows {i} and {j}: distance {before:.3f} before, {after:.3f} after")
print(f"  largest relative violation {learner.certificate_.max_violation:.1e}")

# 0 is near 50 and 50 is near 100, so 0 cannot be far from 100: 1 + 1 < 3, the triangle inequality.
impossible = Constraints.from_pairs(similar=[[0, 50], [50, 100]], dissimilar=[[0, 100]], upper=1.0**2, lower=3.0**2)
try:
    MetricLearner(gamma=np.inf).fit(X, constraints=impossible)
except InfeasibleError as error:
    print(f"\nimpossible ({error.outcome}):\n  {error}")
    print("  the proof, as weights of the constraints:")
    for k in error.constraints:
        print(f"    {error.multipliers[k]:.3f}  {impossible.describe(k)}")

# With a finite γ the same constraints are wishes, and the answer is the best compromise.
learner = MetricLearner(gamma=10.0).fit(X, constraints=impossible)
print("\ncompromise at γ = 10:")
ends = impossible.pairs.index
before = np.linalg.norm(X[ends[:, 0]] - X[ends[:, 1]], axis=1)
after = learner.metric_.pair_distances(X[ends[:, 0]], X[ends[:, 1]])
for (i, j), distance in zip(ends, after, strict=True):
    print(f"  rows {i} and {j}: distance {distance:.3f}")

_, ax = plt.subplots(figsize=(7, 3.4), layout="constrained")
places = np.arange(3)
ax.bar(places - 0.18, before, 0.32, color="lightgrey", label="before")
ax.bar(places + 0.18, after, 0.32, color="C0", label="compromise at γ = 10")
for k, bound in enumerate((1.0, 1.0, 3.0)):
    ax.hlines(bound, k - 0.4, k + 0.4, color="C3", ls="--", label="asked for" if k == 0 else None)
ax.set_xticks(places, [f"{i} and {j}\n{'at least' if k == 2 else 'at most'}" for k, (i, j) in enumerate(ends)])
ax.set(ylabel="distance", title="near, near, and yet far: no metric does it")
ax.legend()
plt.show()
