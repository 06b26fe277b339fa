"""
From pairs: choose γ by cross-validation
========================================

All that is known is which rows belong together. Pairs name rows by index, and a cross-validation fold has only some
of the rows. `rows`, the index of each row, is cut like y, so every fold learns from the pairs inside it and is scored
on the pairs among its held-out rows.
"""

import matplotlib.pyplot as plt
import numpy as np
import sklearn
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV

from mahalo import Constraints, MetricLearner, MetricLearnerCV
from mahalo.pairs import PairSplit

X, y = load_digits(return_X_y=True)

# What an annotator might have said about 3,000 pairs; the labels themselves are not used again.
rng = np.random.default_rng(0)
pairs = rng.choice(len(X), (3000, 2))
pairs = pairs[pairs[:, 0] != pairs[:, 1]]
same = y[pairs[:, 0]] == y[pairs[:, 1]]
constraints = Constraints.from_pairs(similar=pairs[same], dissimilar=pairs[~same], n_rows=len(X))
print(constraints.report(X), "\n")

sklearn.set_config(enable_metadata_routing=True)
search = GridSearchCV(
    MetricLearner(),
    {"gamma": [0.01, 0.1, 1.0, 10.0]},
    cv=PairSplit(constraints, n_splits=3, random_state=0),  # rows, not pairs, are held out
)
search.fit(X, constraints=constraints, rows=np.arange(len(X)))

gammas, scores = search.cv_results_["param_gamma"], search.cv_results_["mean_test_score"]
print("γ       AUC over held-out pairs")
for gamma, score in zip(gammas, scores, strict=True):
    print(f"{gamma:<7g} {score:.4f}{'  <- chosen' if gamma == search.best_params_['gamma'] else ''}")

# MetricLearnerCV does the same in one object, with one warm-started path of all γ in each fold.
chosen = MetricLearnerCV(gammas=[0.01, 0.1, 1.0, 10.0]).fit(X, constraints=constraints)
print(f"MetricLearnerCV chooses γ = {chosen.gamma_:g}")

_, ax = plt.subplots(figsize=(6, 3.6), layout="constrained")
spread = search.cv_results_["std_test_score"]
ax.errorbar(gammas.astype(float), scores, yerr=spread, marker="o", capsize=4)
ax.axvline(search.best_params_["gamma"], color="grey", ls=":")
ax.set(xscale="log", xlabel="γ", ylabel="AUC over held-out pairs", title="mean and deviation over three folds")
plt.show()
