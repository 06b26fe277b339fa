"""
From labels to nearest neighbours
=================================

A metric learner in front of a nearest-neighbour classifier, in one pipeline. The picture shows rows that were not
learned from, before and after.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_wine
from sklearn.model_selection import RepeatedStratifiedKFold, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mahalo import MetricDisplay, MetricLearner

X, y = load_wine(return_X_y=True)
halves = RepeatedStratifiedKFold(n_splits=2, n_repeats=5, random_state=0)

plain = make_pipeline(StandardScaler(), KNeighborsClassifier(10))
learned = make_pipeline(StandardScaler(), MetricLearner(), KNeighborsClassifier(10))

for name, model in (("Euclidean", plain), ("learned", learned)):
    accuracy = cross_val_score(model, X, y, cv=halves)
    print(f"{name:10s} 10-NN error {100 * (1 - accuracy.mean()):.1f} %")

learner = learned.fit(X, y)[1]
certificate = learner.certificate_
print(f"\n{learner.constraints_}, {learner.n_iter_} steps, converged: {certificate.converged}")
print(f"objective {certificate.primal:.4f}; no metric has less than {certificate.dual:.4f}")

Z = StandardScaler().fit_transform(X)
of_one_half = MetricLearner().fit(Z[::2], y[::2])
_, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
MetricDisplay.from_estimator(of_one_half, Z[1::2], y[1::2], kind="map", ax=axes)
plt.show()
