"""Labels of any kind: what is a class, what is no label, and what is neither."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import DataConversionWarning

from mahalo import Constraints
from mahalo.constraints import as_labels, class_codes, codes_by_appearance, labels_by_appearance, unique_inverse

NUMBERS = [3, None, 5, 3, None, 5]
STRINGS = ["b", None, "c", "b", None, "c"]
CODES = [0, -1, 1, 0, -1, 1]


def instead(values, missing):
    return [missing if value is None else value for value in values]


WAYS = {
    "None in a list": lambda values: values,
    "NaN in a list": lambda values: instead(values, np.nan),
    "NaN of NumPy in a list": lambda values: instead(values, np.float32("nan")),
    "NA in a list": lambda values: instead(values, pd.NA),
    "NaT in a list": lambda values: instead(values, pd.NaT),
    "a tuple": tuple,
    "None in an array": lambda values: np.array(values, dtype=object),
    "NaN in an array of objects": lambda values: np.array(instead(values, np.nan), dtype=object),
    "NA in an array of objects": lambda values: np.array(instead(values, pd.NA), dtype=object),
    "what is masked": lambda values: np.ma.array(instead(values, values[0]), mask=[value is None for value in values]),
    "a Series": pd.Series,
    "a Series of objects": lambda values: pd.Series(values, dtype=object),
    "a Series of categories": lambda values: pd.Series(values, dtype="category"),
    "a Categorical": pd.Categorical,
    "an extension array": lambda values: pd.array(values, dtype="Int64" if 3 in values else "string"),
    "a Series of another index": lambda values: pd.Series(values, index=list("zyxwvu")),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("values", [NUMBERS, STRINGS], ids=["numbers", "strings"])
def test_what_is_missing_is_no_label(way, values):
    labels = as_labels(WAYS[way](values))
    np.testing.assert_array_equal(labels.codes, CODES)
    assert labels.codes.dtype == np.intp
    assert labels.classes.tolist() == [values[0], values[2]]


@pytest.mark.parametrize(
    "y",
    [
        pd.Series(NUMBERS, dtype="Int64"),
        pd.Series(NUMBERS, dtype="Float64"),
        pd.Series(STRINGS, dtype="string"),
        pd.Series([False, None, True, False, None, True], dtype="boolean"),
        pd.Series(instead(NUMBERS, -1), dtype="Int64"),
        np.array(instead(NUMBERS, -1)),
        np.array(instead(NUMBERS, -1), dtype=float),
        np.array(instead(NUMBERS, np.nan)),
        instead(NUMBERS, -1),
        [3, -1, 5, 3, None, 5],
        [3.0, -1, 5, 3, np.nan, 5],
    ],
    ids=repr,
)
def test_every_type_of_numbers_and_strings(y):
    np.testing.assert_array_equal(as_labels(y).codes, CODES)
    np.testing.assert_array_equal(class_codes(y), CODES)
    np.testing.assert_array_equal(codes_by_appearance(y), CODES)


@pytest.mark.parametrize("form", [list, np.array, pd.Series, lambda y: np.array(y, dtype=object)])
def test_minus_one_is_a_class_among_strings(form):
    labels = as_labels(form(["a", "-1", "b", "a"]))
    assert labels.classes.tolist() == ["-1", "a", "b"]
    np.testing.assert_array_equal(labels.codes, [1, 0, 2, 1])


@pytest.mark.parametrize("y", [np.array([7, 2, 7, -1]), ["x", "a", "x", None], [True, False, True, None]])
def test_codes_are_labels_that_mean_the_same(y):
    labels = as_labels(y)
    again = as_labels(labels.codes)
    np.testing.assert_array_equal(again.codes, labels.codes)
    np.testing.assert_array_equal(labels.classes[labels.codes[:3]], y[:3])


@pytest.mark.parametrize("kind", [np.uint8, np.int8, bool, np.float32])
def test_numbers_of_any_width(kind):
    np.testing.assert_array_equal(class_codes(np.array([1, 0, 1], dtype=kind)), [0, 1, 0])


def test_unlabelled_rows_take_part_in_no_pair():
    y = np.array(["a", "b", None] * 6, dtype=object)
    c = Constraints.from_labels(y, pairs_per_class=100)
    assert c.n_rows == 18
    assert not (c.pairs.index % 3 == 2).any()
    same = c.pairs.index[:, 0] % 3 == c.pairs.index[:, 1] % 3
    np.testing.assert_array_equal(c.pairs.sign > 0, same)
    X = np.random.default_rng(0).standard_normal((18, 2))
    for strategy in ("neighbors", "triplets"):
        c = Constraints.from_labels(pd.Series(y), X, strategy=strategy)
        assert not (np.concatenate([c.pairs.index.ravel(), c.triplets.index.ravel()]) % 3 == 2).any()
    pull = Constraints.target_pull(y, X).objective
    assert not np.isin(pull.nonzero()[0] % 3, 2).any()


@pytest.mark.parametrize("y", [np.linspace(0, 1, 5), [0.5, None, 1.5], pd.Series([0.1, None, 0.7], dtype="Float64")])
def test_numbers_that_are_measured_are_no_labels(y):
    with pytest.raises(ValueError, match=r"Unknown label type: continuous"):
        as_labels(y)


@pytest.mark.parametrize("y", [[1, "a", 2], np.array([1, "a", None], dtype=object), pd.Series(["a", 1, None])])
def test_labels_of_two_kinds(y):
    message = r"y mixes labels of different kinds, numbers and strings, that have no common order\. Make them all"
    with pytest.raises(ValueError, match=message):
        as_labels(y)


def test_labels_that_are_neither_numbers_nor_strings():
    with pytest.raises(ValueError, match="Unknown label type"):
        as_labels(np.array([{}, {}], dtype=object))


@pytest.mark.parametrize(("y", "n"), [([None, None], 0), (["a", None], 1), ([-1, 1], 1), ([np.nan, 2.0], 1)])
def test_too_few_classes_beside_unlabelled_rows(y, n):
    message = rf"y has {n} class beside unlabelled rows \(−1, None or NaN\): nothing to tell apart"
    with pytest.raises(ValueError, match=message):
        class_codes(y)
    assert codes_by_appearance(y).max() == n - 1


def test_codes_by_appearance_are_blind_to_names():
    np.testing.assert_array_equal(codes_by_appearance(["c", None, "a", "c", "b", "a"]), [0, -1, 1, 0, 2, 1])
    np.testing.assert_array_equal(codes_by_appearance([7, -1, 9, 7, 3, 9]), [0, -1, 1, 0, 2, 1])
    np.testing.assert_array_equal(codes_by_appearance([None, None]), [-1, -1])


@pytest.mark.parametrize("y", [np.zeros((3, 2)), 3, "abc", [[0, 1], [1, 0]], pd.DataFrame({"a": [0, 1], "b": [1, 0]})])
def test_labels_are_one_for_each_row(y):
    with pytest.raises(ValueError, match=r"y must be one label for each row, a 1-D array; got shape \("):
        as_labels(y)


@pytest.mark.parametrize(
    "y", [np.array([[0], [1], [0]]), pd.DataFrame({"class": ["a", "b", "a"]}), [["a"], ["b"], ["a"]]]
)
def test_a_column_is_taken_with_a_warning(y):
    with pytest.warns(DataConversionWarning, match=r"A column-vector y was passed .*Pass y\.ravel\(\)") as caught:
        labels = as_labels(y)
    np.testing.assert_array_equal(labels.codes, [0, 1, 0])
    assert caught[0].filename == __file__


def test_constraints_are_no_labels():
    message = r"y must be class labels; got a mahalo\.Constraints\. Pass it by name, as constraints=\."
    for call in (as_labels, class_codes, codes_by_appearance, Constraints.from_labels):
        with pytest.raises(ValueError, match=message):
            call(Constraints.from_pairs([[0, 1]]))


@given(st.lists(st.integers(-5, 40), max_size=30), st.integers(-(10**12), 10**12))
def test_integers_are_counted_as_others_are_sorted(values, shift):
    values = np.array(values, dtype=np.int64) + shift
    expected, position = np.unique(values, return_inverse=True)
    found, places = unique_inverse(values)
    assert found.dtype == values.dtype
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(places, position)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.uint64, np.int32])
def test_integers_of_every_kind_are_counted(dtype):
    values = np.array([3, 1, 100, 1, 3], dtype=dtype)
    values[0] = np.iinfo(dtype).max
    for found, expected in zip(unique_inverse(values), np.unique(values, return_inverse=True), strict=True):
        np.testing.assert_array_equal(found, expected)


@given(st.lists(st.integers(-1, 4), min_size=1, max_size=20))
def test_codes_in_order_of_appearance_are_taken_as_they_are(codes):
    codes = np.array(codes, dtype=np.intp)
    expected = as_labels(codes).by_appearance()
    for y in (codes, expected.codes):
        found = labels_by_appearance(y)
        np.testing.assert_array_equal(found.codes, expected.codes)
        assert len(found.classes) == len(expected.classes)
        assert found.codes is not y


@pytest.mark.parametrize(
    "values",
    [
        np.array([5, 3, 3, 9], dtype=np.uint64) + np.uint64(2**63),
        np.array([-128, 127, 0, -128], dtype=np.int8).repeat(100),
        np.array([2**63 - 1, 2**63 - 3, 2**63 - 1]),
        np.array([-(2**63), -(2**63) + 2, -(2**63)]),
    ],
    ids=str,
)
def test_integers_of_any_type_are_counted(values):
    classes, position = unique_inverse(values)
    expected = np.unique(values, return_inverse=True)
    assert classes.dtype == values.dtype
    np.testing.assert_array_equal(classes, expected[0])
    np.testing.assert_array_equal(position, expected[1])
