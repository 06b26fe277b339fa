"""Simulated people, and rows whose classes differ in a few directions alone."""

from __future__ import annotations

import numpy as np

from mahalo.studio import Session


def planted(n=300, n_features=12, n_classes=4, seed=0):
    """Rows of classes that differ in the first two columns; the others are noise that is larger."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n)
    angle = 2 * np.pi * y / n_classes
    X = rng.standard_normal((n, n_features)) * 1.5
    X[:, :2] = 3.0 * np.column_stack([np.cos(angle), np.sin(angle)]) + 0.4 * rng.standard_normal((n, 2))
    return X, y


def reply(question, y):
    """The right answer to a question about rows with labels y, None where there is none."""
    if question.kind == "pair":
        i, j = question.rows
        return "same" if y[i] == y[j] else "different"
    a, b, c = question.rows
    return "skip" if (y[a] == y[b]) == (y[a] == y[c]) else "first" if y[a] == y[b] else "second"


def answered(session: Session, y, n, wrong=()):
    """Answer n questions; those whose number is in `wrong` wrongly."""
    for k in range(n):
        question = session.question()
        answer = reply(question, y)
        if k in wrong:
            answer = {"same": "different", "different": "same"}[answer]
        session.answer(question, answer)
    return session
