"""The compiled loops refuse arrays that do not fit, and indices where nobody has checked them before."""

from __future__ import annotations

import numpy as np
import pytest

from mahalo._core.distances import finish_distances
from mahalo._core.edges import edge_dots, edge_gram, edge_laplacian, edge_rows
from mahalo._core.intersections import LANES, intersect_rows
from mahalo._core.projections import sweep_block, sweep_features, sweep_kernel, sweep_relative
from mahalo._core.systems import solve_small

N, M, R = 4, 3, 8  # rows, edges, numbers a row


def numbers(*shape):
    return np.ones(shape)


def index(*values):
    return np.array(values, dtype=np.intp)


TAIL, HEAD = index(0, 1, 2), index(1, 2, 3)
MULTIPLIERS = {name: numbers(M) for name in ("delta", "offset", "gamma", "xi", "lam")}
START, NEIGHBOUR, EDGE = index(0, 1, 3, 5, 6), index(1, 0, 2, 1, 3, 2), index(0, 0, 1, 1, 2, 2)


def int32(*values):
    return np.array(values, dtype=np.int32)


def float32(*shape):
    return np.ones(shape, dtype=np.float32)


# A call that is in order, by name: tests below spoil one argument at a time.
GOOD = {
    finish_distances: {"G": numbers(N, M), "a": numbers(N), "b": numbers(M), "squared": True},
    edge_rows: {"Y": numbers(N, R), "tail": TAIL, "head": HEAD},
    edge_dots: {"A": numbers(N, R), "B": numbers(N, R), "tail": TAIL, "head": HEAD, "out": numbers(M)},
    edge_laplacian: {
        "Y": numbers(N, R),
        "start": START,
        "neighbour": NEIGHBOUR,
        "edge": EDGE,
        "weight": numbers(M),
        "out": numbers(N, R),
        "first": 0,
        "last": N,
    },
    edge_gram: {"Y": numbers(N, R), "tail": TAIL, "head": HEAD, "weight": numbers(M), "squared": False},
    intersect_rows: {
        "table": np.zeros((5, LANES), dtype=np.float32),
        "start_a": int32(0, 1, 2),
        "bin_a": int32(0, 4),
        "value_a": float32(2),
        "start_b": int32(0, 1, 3),
        "bin_b": int32(1, 0, 4),
        "value_b": float32(3),
        "out": numbers(2, LANES),
    },
    sweep_features: {
        "F": np.eye(R),
        "X": numbers(N, R),
        "tail": TAIL,
        "head": HEAD,
        **MULTIPLIERS,
        "scratch": numbers(3, R),
    },
    sweep_kernel: {
        "K": np.eye(N),
        "B": np.eye(N),
        "M": numbers(N, N),
        "tail": TAIL,
        "head": HEAD,
        **MULTIPLIERS,
        "scratch": numbers(2, N),
    },
    sweep_block: {"G": np.eye(M), **MULTIPLIERS, "beta": numbers(M)},
    sweep_relative: {
        "F": np.eye(R),
        "X": numbers(N, R),
        "near": np.column_stack([TAIL, HEAD]),
        "far": np.column_stack([HEAD, TAIL]),
        "excess": numbers(M),
        "h": numbers(M),
        "lam": numbers(M),
        "scratch": numbers(4, R),
    },
    solve_small: {
        "Y": numbers(N, R),
        "tail": TAIL,
        "head": HEAD,
        "combine": (index(0, 1, 3), index(0, 1, 2), numbers(M)),
        "E": numbers(2),
        "R": np.eye(R),
        "root": numbers(R, R),
        "divisor": numbers(R, R),
        "block": np.eye(R),
        "small_rz": 0.0,
        "inexact": 0.0,
        "most": 5,
    },
}
# Lengths that the other arguments leave open; of scratch, more than enough will do.
OPEN = {
    (edge_rows, "Y", 1),
    (edge_gram, "Y", 0),
    (edge_gram, "Y", 1),
    (intersect_rows, "table", 0),
    (intersect_rows, "start_a", 0),
    (sweep_features, "X", 0),
    (sweep_relative, "X", 0),
}
OPEN_ABOVE = {
    (edge_rows, "Y", 0),
    (solve_small, "Y", 0),
    (sweep_features, "scratch", 0),
    (sweep_relative, "scratch", 0),
}
LENGTHS = [
    (function, name, axis)
    for function, good in GOOD.items()
    for name, value in good.items()
    for axis in range(np.ndim(value) if isinstance(value, np.ndarray) else 0)
    if (function, name, axis) not in OPEN
]


def arguments(function, **changed):
    """Copies of the good ones, as some are written to."""
    good = {k: v.copy() if isinstance(v, np.ndarray) else v for k, v in GOOD[function].items()}
    return good | changed


@pytest.mark.parametrize("function", GOOD, ids=lambda f: f.__name__)
def test_arrays_that_fit_are_taken(function):
    function(**arguments(function))


def refuses(function, name, array):
    with pytest.raises(ValueError, match=r"must .*; got "):
        function(**arguments(function, **{name: np.ascontiguousarray(array)}))


@pytest.mark.parametrize("function, name, axis", LENGTHS, ids=lambda x: getattr(x, "__name__", x))
def test_arrays_that_do_not_fit_are_refused(function, name, axis):
    array = GOOD[function][name]
    refuses(function, name, np.delete(array, -1, axis))
    if (function, name, axis) not in OPEN_ABOVE:
        refuses(function, name, np.concatenate([array, array], axis))


@pytest.mark.parametrize("function", [edge_rows, sweep_features, sweep_kernel, solve_small], ids=lambda f: f.__name__)
@pytest.mark.parametrize("end", ["tail", "head"])
@pytest.mark.parametrize("wrong", [1000, -1])
def test_edges_to_no_row_are_refused(function, end, wrong):
    with pytest.raises(ValueError, match=rf"{end} must be in \[0, 4\); got {wrong}"):
        function(**arguments(function, **{end: index(0, wrong, 2)}))


@pytest.mark.parametrize("end", ["near", "far"])
def test_relative_constraints_on_no_row_are_refused(end):
    with pytest.raises(ValueError, match=rf"{end} must be in \[0, 4\); got 4"):
        sweep_relative(**arguments(sweep_relative, **{end: np.array([[0, 1], [1, 4], [2, 3]])}))


@pytest.mark.parametrize(
    "combine, match",
    [
        ((index(0, 1, 3), index(0, 1, 3), numbers(3)), r"edge must be in \[0, 3\); got 3"),
        ((index(0, 1, 9), index(0, 1, 2), numbers(3)), r"start must go from 0 to 3; got \[0, 1, 9\]"),
        ((index(0, 5, 3), index(0, 1, 2), numbers(3)), r"start must not fall; got 3 after 5"),
        ((index(0, 1, 3), index(0, 1, 2), numbers(2)), r"coefficient must be of length 3; got 2"),
        ((index(0, 3), index(0, 1, 2), numbers(3)), r"E must be of length 1; got 2"),
        (None, r"E must be of length 3; got 2"),
    ],
)
def test_forms_of_no_edges_are_refused(combine, match):
    with pytest.raises(ValueError, match=match):
        solve_small(**arguments(solve_small, combine=combine))


@pytest.mark.parametrize("first, last", [(-1, 2), (0, 5), (3, 2)])
def test_rows_outside_are_refused(first, last):
    with pytest.raises(ValueError, match=rf"in order in \[0, 4\]; got {first} and {last}"):
        edge_laplacian(**arguments(edge_laplacian, first=first, last=last))


@pytest.mark.parametrize("name, start", [("start_a", (0, 1, 3)), ("start_b", (-1, 1, 3)), ("start_b", ())])
def test_rows_of_entries_that_are_not_there_are_refused(name, start):
    with pytest.raises(ValueError, match=rf"{name} must be in \[0, [23]\]"):
        intersect_rows(**arguments(intersect_rows, **{name: int32(*start)}))


def test_more_rows_than_lanes_are_refused():
    with pytest.raises(ValueError, match=f"at most {LANES} rows of A; got {LANES + 1}"):
        intersect_rows(**arguments(intersect_rows, start_a=np.zeros(LANES + 2, dtype=np.int32)))


def test_rows_of_edges_are_differences(rng):
    Y, tail, head = rng.standard_normal((N, 5)), index(0, 3, 2, 2), index(1, 0, 2, 3)
    np.testing.assert_array_equal(edge_rows(Y, tail, head), Y[tail] - Y[head])
    assert edge_rows(Y, index(), index()).shape == (0, 5)
