"""
Labels that look wrong
======================

Ninety digits mislabelled on purpose, found, and drawn with what they were taken for.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import average_precision_score

from mahalo import MetricDisplay, MetricLearnerCV

X, y = load_digits(return_X_y=True)
rng = np.random.default_rng(0)
wrong = rng.choice(len(y), 90, replace=False)
given = y.copy()
given[wrong] = (y[wrong] + rng.integers(1, 10, len(wrong))) % 10

learner = MetricLearnerCV(gammas=[0.01, 0.03, 0.1], prior="identity").fit(X, given)
found = learner.suspects(X, given, n=len(y))
print(found.head(10).drop(columns="neighbours").round(3))
planted = np.isin(found.index, wrong)
print(f"\nof the first 90 suspects {planted[:90].sum()} were mislabelled on purpose")
print(f"average precision {average_precision_score(planted, found['score']):.3f}")
right = (found["suggested"] == y[found.index])[planted]
print(f"the label suggested for them is the true one in {100 * right.mean():.0f} % of cases")

print("\nthe constraints that shaped the metric most:")
print(learner.influential(5).round(3))

# The first suspects, each with the label it came with and the one its neighbours have; and where they lie.
figure = plt.figure(figsize=(11, 4.6), layout="constrained")
left, right = figure.subfigures(1, 2, width_ratios=(1.3, 1))
for ax, (row, suspect) in zip(left.subplots(3, 6).flat, found.iterrows(), strict=False):
    ax.imshow(X[row].reshape(8, 8), cmap="gray_r")
    ax.set_title(f"“{suspect['given']}”, looks like {suspect['suggested']}", fontsize=7.5)
    ax.set_axis_off()
part = rng.choice(len(y), 600, replace=False)
MetricDisplay.from_estimator(learner, X[part], y[part], kind="map", ax=right.subplots())
plt.show()
