"""
Learning from a stream
======================

Digits as a stream: labels beside refits, pairs asked for beside random ones, and classes that drift.
"""

import numpy as np
from sklearn.datasets import load_digits

from mahalo import Constraints, MetricLearner, OnlineMetricLearner
from mahalo.active import AnswerClosure, next_pairs


def label_stream(X, y, X_test, y_test, size=100, **space):
    """(pairs seen, AUC of the stream, AUC of a batch fit on as many pairs) after every `size` labelled rows."""
    learner, curve = OnlineMetricLearner(pairs_per_row=2, **space), []
    for seen in range(size, len(y) + 1, size):
        learner.partial_fit(X[seen - size : seen], y[seen - size : seen])
        n_each = max(1, learner.n_pairs_ // (2 * len(learner.classes_)))
        refit = MetricLearner(gamma=0.1, pairs_per_class=n_each, **space).fit(X[:seen], y[:seen])
        curve.append((learner.n_pairs_, learner.score(X_test, y_test), refit.score(X_test, y_test)))
    return learner, np.array(curve)


def asking(X, y, X_test, y_test, n=400, at_once=50, seed=0):
    """(pairs answered, AUC of pairs asked for and all they imply, AUC of random pairs)."""
    rng = np.random.default_rng(seed)
    i = rng.integers(0, len(y), n)
    drawn = np.column_stack([i, (i + rng.integers(1, len(y), n)) % len(y)])
    asked, curve = drawn[:at_once], []
    while True:
        known, at_random = (
            Constraints.from_pairs(pairs, same=y[pairs[:, 0]] == y[pairs[:, 1]], n_rows=len(y))
            for pairs in (asked, drawn[: len(asked)])
        )
        by_choice = MetricLearner().fit(X, constraints=AnswerClosure.of(known, len(y)).constraints())
        plain = MetricLearner().fit(X, constraints=at_random)
        curve.append((len(asked), by_choice.score(X_test, y_test), plain.score(X_test, y_test)))
        if len(asked) >= n:
            return np.array(curve)
        asked = np.concatenate([asked, next_pairs(by_choice, X, at_once, strategy="groups", known=known)])


def drift(seed=0, n=4000, size=200):
    """(pairs seen, AUC with a half-life, AUC without): halfway, what tells two classes apart is another column."""
    rng = np.random.default_rng(seed)
    learners, curve = (OnlineMetricLearner(half_life=500), OnlineMetricLearner()), []
    for seen in range(size, n + 1, size):
        y, column = rng.integers(0, 2, 2 * size), 0 if seen <= n // 2 else 1
        X = rng.standard_normal((2 * size, 10))
        X[:, column] += 3.0 * y
        for learner in learners:
            learner.partial_fit(X[:size], y[:size])
        scores = [learner.score(X[size:], y[size:]) for learner in learners]
        curve.append((learners[0].n_pairs_, *scores))
    return np.array(curve)


if __name__ == "__main__":
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    X, y = X[order], y[order]
    learner, curve = label_stream(X[:900], y[:900], X[900:], y[900:], size=300)
    print("pairs  stream  batch")
    for n_pairs, stream, batch in curve:
        print(f"{n_pairs:5.0f}  {stream:.3f}   {batch:.3f}")
    stats = learner.history_[-1]
    print(f"\nloss {stats.loss:.2f}; no fixed metric costs less than {stats.loss - stats.regret_bound:.2f}")
    learner.consolidate()
    print(f"the stream's metric was within {100 * learner.stream_certificate_.relative_gap:.1f} % of the optimum")
    print("\npairs  asked   random")
    for n_pairs, chosen, at_random in asking(X[:900], y[:900], X[900:], y[900:], n=200):
        print(f"{n_pairs:5.0f}  {chosen:.3f}   {at_random:.3f}")
    print("\npairs  half-life  none   (the classes change halfway)")
    for n_pairs, forgets, remembers in drift(n=2000)[1::2]:
        print(f"{n_pairs:5.0f}  {forgets:.3f}      {remembers:.3f}")
