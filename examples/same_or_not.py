"""
Same or not
===========

Probabilities for pairs of rows never seen, and whether they mean what they say.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

from mahalo import Constraints, MetricLearner, ReliabilityDisplay
from mahalo.pairs import PairClassifier, calibration_error

X, y = load_digits(return_X_y=True)
classifier = PairClassifier(random_state=0).fit(X[::2], y[::2])

new, labels = X[1::2], y[1::2]
held = Constraints.from_labels(labels, pairs_per_class=1000, random_state=1).pairs
pairs, same = held.index, held.sign > 0
probability = classifier.predict_proba(new, pairs)[:, 1]
print(f"{len(same):,} pairs of digits that were not learned from")
print(f"said rightly whether they are the same: {(classifier.predict(new, pairs) == same).mean():.3f}")
print(f"expected calibration error: {calibration_error(same, probability):.3f}")

chosen = {name: getattr(classifier.learner_, f"{name}_") for name in ("gamma", "prior", "strategy", "normalize")}
strict = PairClassifier(MetricLearner(**chosen), threshold="fpr", fpr=0.01, random_state=0).fit(X[::2], y[::2])
said = strict.predict(new, pairs)
print(f"asked for at most 1 % false alarms: {said[~same].mean():.3f}, and {said[same].mean():.3f} of the same found")

ReliabilityDisplay.from_predictions(same, probability, ax=plt.figure(figsize=(5, 5)).gca())
plt.show()
