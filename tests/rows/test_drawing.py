"""Rows drawn by a hash of their number."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mahalo.rows.drawing import even_share, in_order, place_of


def test_places_are_spread_evenly_and_repeat():
    places = place_of(np.arange(100_000), key=3)
    assert (places == place_of(np.arange(100_000), key=3)).all()
    assert places.min() >= 0.0 and places.max() < 1.0
    counts = np.histogram(places, 50, (0, 1))[0]
    assert ((counts - 2_000) ** 2 / 2_000).sum() < 90  # χ² with 49 degrees of freedom: 85 at 0.1 %


def test_places_of_neighbours_and_of_keys_have_nothing_to_do_with_each_other():
    rows = np.arange(50_000)
    a, b = place_of(rows, key=1), place_of(rows, key=2)
    assert abs(np.corrcoef(a, b)[0, 1]) < 0.02
    for lag in (1, 2, 65_536 % 50_000):
        assert abs(np.corrcoef(a[lag:], a[:-lag])[0, 1]) < 0.02


def test_places_do_not_depend_on_who_asks():
    rows = np.array([5, 2**40, 17, 2**62])
    assert (place_of(rows, 7) == [place_of(row[None], 7)[0] for row in rows]).all()
    assert place_of(rows, 2**63 - 1).max() < 1.0


def test_some_first_then_the_others_each_once():
    numbers = np.array([9, 2, 5, 2, 7, 9])
    order = in_order(numbers, np.isin(numbers, [7, 2]))
    assert numbers[order].tolist() == [2, 7, 5, 9]


@given(st.lists(st.integers(1, 50), min_size=1, max_size=12), st.integers(1, 200))
def test_an_even_share_is_the_largest_that_fits(sizes, most):
    def taken(each):
        return sum(min(size, each) for size in sizes)

    each = even_share(sizes, most)
    assert taken(each) <= most or each == 1
    assert taken(each + 1) > most or each >= max(sizes)
