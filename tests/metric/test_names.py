"""Columns by name: a metric that knows them takes no table of others, or in another order."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from builders import labelled_data

import mahalo
from mahalo import MetricLearner

pd = pytest.importorskip("pandas")


@pytest.fixture
def frame(rng):
    X, y = labelled_data(rng, n=40, d=3)
    return pd.DataFrame(X, columns=["a", "b", "c"]), y


@pytest.fixture
def saved(frame, tmp_path):
    """Learned from a table, and read from its file."""
    MetricLearner().fit(*frame).metric_.save(tmp_path / "m.safetensors")
    return mahalo.load(tmp_path / "m.safetensors")


def test_names_of_a_table_are_in_the_file(saved):
    assert saved.about["columns"] == ["a", "b", "c"]


def test_columns_in_their_order_and_arrays_are_measured_alike(saved, frame):
    np.testing.assert_array_equal(saved.transform(frame[0]), saved.transform(frame[0].to_numpy()))


@pytest.mark.parametrize("method", ["transform", "distances", "kernel"])
def test_another_order_is_refused(saved, frame, method):
    with pytest.raises(ValueError, match=r"column 0 of X is 'c'; .* learned on 'a' .*X\[names\]"):
        getattr(saved, method)(frame[0][["c", "b", "a"]])


def test_rows_compared_with_are_looked_at_too(saved, frame):
    for method in (saved.distances, saved.pair_distances, saved.kneighbors):
        with pytest.raises(ValueError, match="column 1 of X is 'c'"):
            method(frame[0], frame[0][["a", "c", "b"]])


def test_other_names_are_refused(saved, frame):
    with pytest.raises(ValueError, match="no column 'b', one of the 3"):
        saved.transform(frame[0].rename(columns={"b": "z"}))


def test_one_column_more_is_refused(saved, frame):
    with pytest.raises(ValueError, match="column 3 of X is 'kind'"):
        saved.transform(frame[0].assign(kind=1.0))


def test_names_that_are_numbers_are_no_names(saved, frame):
    saved.transform(pd.DataFrame(frame[0].to_numpy()))


def test_columns_of_one_value_each_by_the_names_of_the_command_line(saved, frame):
    metric = dataclasses.replace(saved, about={"columns": ["a", "kind"], "one_hot": {"kind": ["x", "y"]}})
    metric.transform(frame[0].set_axis(["a", "kind=x", "kind=y"], axis=1))
    with pytest.raises(ValueError, match="column 1 of X is 'kind=y'"):
        metric.transform(frame[0].set_axis(["a", "kind=y", "kind=x"], axis=1))


def test_tables_of_pyarrow(saved, frame):
    pa = pytest.importorskip("pyarrow")
    with pytest.raises(ValueError, match="column 0 of X is 'c'"):
        saved.transform(pa.table(frame[0][["c", "b", "a"]]))


def test_tables_on_dask(saved, frame):
    dataframe = pytest.importorskip("dask.dataframe")
    with pytest.raises(ValueError, match="column 0 of X is 'c'"):
        saved.transform(dataframe.from_pandas(frame[0][["c", "b", "a"]], npartitions=2))
