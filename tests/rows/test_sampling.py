"""Samples of rows by a hash of their number."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mahalo.rows.sampling import hash_uniform, order_with_first, per_class_limit


def test_hash_is_uniform_and_repeats():
    uniforms = hash_uniform(np.arange(100_000), key=3)
    assert (uniforms == hash_uniform(np.arange(100_000), key=3)).all()
    assert uniforms.min() >= 0.0 and uniforms.max() < 1.0
    counts = np.histogram(uniforms, 50, (0, 1))[0]
    assert ((counts - 2_000) ** 2 / 2_000).sum() < 90  # χ² with 49 degrees of freedom: 85 at 0.1 %


def test_hashes_of_neighbouring_rows_and_of_keys_are_uncorrelated():
    rows = np.arange(50_000)
    a, b = hash_uniform(rows, key=1), hash_uniform(rows, key=2)
    assert abs(np.corrcoef(a, b)[0, 1]) < 0.02
    for lag in (1, 2, 65_536 % 50_000):
        assert abs(np.corrcoef(a[lag:], a[:-lag])[0, 1]) < 0.02


def test_hash_of_a_row_does_not_depend_on_the_others():
    rows = np.array([5, 2**40, 17, 2**62])
    assert (hash_uniform(rows, 7) == [hash_uniform(row[None], 7)[0] for row in rows]).all()
    assert hash_uniform(rows, 2**63 - 1).max() < 1.0


def test_some_first_then_the_others_each_once():
    numbers = np.array([9, 2, 5, 2, 7, 9])
    order = order_with_first(numbers, np.isin(numbers, [7, 2]))
    assert numbers[order].tolist() == [2, 7, 5, 9]


@given(st.lists(st.integers(1, 50), min_size=1, max_size=12), st.integers(1, 200))
def test_per_class_limit_is_the_largest_that_fits(sizes, most):
    def taken(each):
        return sum(min(size, each) for size in sizes)

    each = per_class_limit(sizes, most)
    assert taken(each) <= most or each == 1
    assert taken(each + 1) > most or each >= max(sizes)
