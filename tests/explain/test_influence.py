"""Influential constraints are those of the largest multipliers, with values that plain arithmetic gives."""

from __future__ import annotations

import numpy as np
import pytest

from mahalo import Constraints, MetricLearner


@pytest.fixture
def mixed(rng):
    X = rng.normal(size=(20, 4))
    constraints = (
        Constraints.from_pairs([[0, 1], [2, 3]], [[4, 5], [6, 7]], upper=0.5, lower=9.0)
        + Constraints.from_triplets([[8, 9, 10], [11, 12, 13]], margin=2.0)
        + Constraints.from_quadruplets([[14, 15, 16, 17]], margin=1.0, n_rows=20)
        + Constraints.from_linear([np.diag(np.arange(20.0))], [10.0])
    )
    return X, MetricLearner(tol=1e-9).fit(X, constraints=constraints)


def test_order_and_multipliers_are_those_of_the_fit(mixed):
    _, learner = mixed
    table = learner.influential(100)
    assert len(table) == 8 and (np.diff(table["dual"]) <= 0).all()
    np.testing.assert_array_equal(table["dual"], learner.duals_[table.index])
    assert set(table["kind"]) == {"similar", "dissimilar", "triplet", "quadruplet", "linear"}
    assert len(learner.influential(3)) == 3


def test_values_agree_with_plain_arithmetic(mixed):
    X, learner = mixed
    W = learner.metric_.matrix

    def sq(i, j):
        return (X[i] - X[j]) @ W @ (X[i] - X[j])

    for _, row in learner.influential(8).iterrows():
        r = row["rows"]
        value = {
            "similar": lambda r: sq(*r),
            "dissimilar": lambda r: sq(*r),
            "triplet": lambda r: sq(r[0], r[1]) - sq(r[0], r[2]),
            "quadruplet": lambda r: sq(r[0], r[1]) - sq(r[2], r[3]),
            "linear": lambda r: sum(k * X[k] @ W @ X[k] for k in range(20)),
        }[row["kind"]](r)
        assert row["value"] == pytest.approx(value, rel=1e-8)
        sign = -1 if row["kind"] == "dissimilar" else 1
        scale = abs(row["bound"])
        assert row["violation"] == pytest.approx(sign * (row["value"] - row["bound"]) / scale)
        if row["violation"] < -1e-6:
            assert row["dual"] == pytest.approx(0.0, abs=1e-9)


def test_rows_go_by_their_names_too(mixed):
    _, learner = mixed
    table = learner.influential(8, index=[f"row {i}" for i in range(20)])
    assert all(
        names == tuple(f"row {i}" for i in rows) for rows, names in zip(table["rows"], table["names"], strict=True)
    )
    with pytest.raises(ValueError, match="each of the 20 rows"):
        learner.influential(8, index=["a", "b"])
    with pytest.raises(ValueError, match="positive integer"):
        learner.influential(0)
