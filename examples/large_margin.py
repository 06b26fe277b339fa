"""
Large margins, for those who come from LMNN
===========================================

Every row closer to its own class than to impostors. Triplets (row, target, impostor) ask for d²(row, target) + margin
≤ d²(row, impostor). With the SDP loss and a linear objective that pulls targets in, this is the large-margin nearest-
neighbour problem, regularised; LogDet keeps the learned metric positive definite and close to the prior instead.
Either way it is solved to the optimum, and proved.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from mahalo import Constraints, MetricLearner
from mahalo.evaluation import knn_predict
from mahalo.losses import SDPFrobenius

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, stratify=y, random_state=0)
scaler = StandardScaler().fit(X_train)
X_train, X_test = scaler.transform(X_train), scaler.transform(X_test)

triplets = Constraints.from_labels(y_train, X_train, strategy="triplets", n_neighbors=3, pairs_per_class=500)
pull = Constraints.target_pull(y_train, X_train, n_neighbors=3, weight=0.1)


def error(train, test):
    return np.mean(knn_predict(train, y_train, test, k=5) != y_test)


print(f"Euclidean                    error {error(X_train, X_test):.3f}")
_, ax = plt.subplots(figsize=(6.5, 3.4), layout="constrained")
for name, loss, constraints in (
    ("SDP, triplets and pull", SDPFrobenius(), triplets + pull),
    ("LogDet, triplets", "logdet", triplets),
):
    learner = MetricLearner(loss=loss, gamma=0.1).fit(X_train, constraints=constraints)
    certificate = learner.certificate_
    print(
        f"{name:28s} error {error(learner.transform(X_train), learner.transform(X_test)):.3f}   "
        f"relative gap {certificate.relative_gap:.0e}, {certificate.n_violated} of {constraints.n_constraints} violated"
    )
    w = np.linalg.eigvalsh(learner.metric_.matrix)[::-1]
    ax.semilogy(np.maximum(w, 1e-9), marker=".", label=name)

ax.set(xlabel="direction", ylabel="eigenvalue of the learned metric", ylim=(1e-6, None))
ax.legend()
plt.show()
