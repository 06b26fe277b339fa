"""
Choosing γ: the whole path, then held-out rows
==============================================

γ sets how much the constraints count against the metric to start from. A path of twenty values costs as much as a
few fits; which of them is best only rows can tell that were not learned from.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler

from mahalo import MetricDisplay, MetricLearnerCV, metric_path

X, y = load_wine(return_X_y=True)
X = StandardScaler().fit_transform(X)

path = metric_path(X, y, gammas=np.logspace(-3, 3, 20))
print("γ         objective   violated   relative gap")
for gamma, certificate in list(zip(path.gammas, path.certificates, strict=True))[::4]:
    print(f"{gamma:<9.3g} {certificate.primal:9.3f} {certificate.n_violated:10d}   {certificate.relative_gap:12.0e}")

learner = MetricLearnerCV(kernel="linear", features=None, prior="identity").fit(X, y)
print(f"\nheld-out rows choose γ = {learner.gamma_:g} and {learner.strategy_} pairs")
print(f"accuracy of ten nearest neighbours over the folds: {learner.best_score_:.3f}")

_, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
left.loglog(path.gammas, [certificate.primal for certificate in path.certificates], marker=".")
left.set(xlabel="γ", ylabel="objective at the optimum")
MetricDisplay.from_estimator(learner, kind="choosing", ax=right)
plt.show()
