"""Hard constraints (γ = ∞): either a metric that satisfies every one, or a proof that there is none."""

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
for i, j in impossible.pairs.index:
    print(f"  rows {i} and {j}: distance {learner.metric_.pair_distances(X[[i]], X[[j]])[0]:.3f}")
