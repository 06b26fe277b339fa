"""Datasets with missing numbers: filled in memory and in pieces; what is no number stays refused."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

pa = pytest.importorskip("pyarrow")
from pyarrow import parquet  # noqa: E402

from mahalo.tables import parquet_shards  # noqa: E402
from mahalo.tables.dataset import load_dataset  # noqa: E402
from mahalo.tables.options import RowOptions  # noqa: E402

OPTIONS = RowOptions(["t.parquet"], label="kind", one_hot=["soil"], impute="mean")
N = 30


@pytest.fixture
def columns(tmp_path, monkeypatch, rng):
    monkeypatch.chdir(tmp_path)
    columns = {
        "width": pa.array([None if k % 7 == 3 else 0.5 * k for k in range(N)]),
        "height": pa.array([None if k % 5 == 4 else k % 4 for k in range(N)]),
        "tall": pa.array([None if k == 2 else k % 3 == 0 for k in range(N)]),
        "soil": pa.array(["clay", "sand"] * (N // 2)),
        "v": pa.array([[float(k), 1.0] for k in range(N)]),
        "kind": pa.array(["oak", "elm", "ash"] * (N // 3)),
    }
    write(columns)
    return columns


def write(columns: dict) -> None:
    parquet.write_table(pa.table(columns), "t.parquet", row_group_size=5)


def expected(columns: dict, fill) -> np.ndarray:
    """Return numbers by pandas, whose means and medians leave missing values out."""
    pd = pytest.importorskip("pandas")
    numbers = pd.DataFrame({name: columns[name].to_pylist() for name in ("width", "height", "tall")}, dtype=float)
    return numbers.fillna(fill(numbers)).to_numpy()


@pytest.mark.parametrize("method", ["mean", "median"])
def test_numbers_are_filled_and_counted(columns, method):
    data = load_dataset(dataclasses.replace(OPTIONS, impute=method))
    wanted = expected(columns, lambda frame: getattr(frame, method)())
    np.testing.assert_allclose(data.X[:, [data.encoding.names.index(n) for n in ("width", "height", "tall")]], wanted)
    assert data.n_imputed == 4 + 6 + 1 == data.data_record(None).n_imputed
    assert data.table_record().impute == data.imputation


def test_pieces_are_filled_as_the_whole(columns, monkeypatch):
    pytest.importorskip("dask.array")
    whole = load_dataset(OPTIONS)
    monkeypatch.setattr(parquet_shards, "MEMORY_LIMIT", 0)
    monkeypatch.setattr(parquet_shards, "PIECE_SIZE", 5 * 6 * 8)
    pieces = load_dataset(OPTIONS)
    assert len(pieces.table.pieces) > 1 and pieces.n_imputed == whole.n_imputed
    np.testing.assert_allclose(pieces.X.compute(), whole.X, rtol=1e-14)
    np.testing.assert_allclose(pieces.imputation.values, whole.imputation.values, rtol=1e-14)
    np.testing.assert_allclose(pieces.scaling().mean, whole.scaling().mean, rtol=1e-12)
    for method in ("median", "knn"):
        with pytest.raises(ValueError, match=rf"--impute {method} needs all rows in memory.*Give --impute mean"):
            load_dataset(dataclasses.replace(OPTIONS, impute=method))


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("soil", ["clay", None] * (N // 2)),
        ("v", [None, *([[1.0, 2.0]] * (N - 1))]),
        ("v", [[None, 1.0], *([[1.0, 2.0]] * (N - 1))]),
        ("width", [float("inf"), *([1.0] * (N - 1))]),
    ],
)
def test_what_is_no_missing_number_stays_refused(columns, name, values):
    write(columns | {name: pa.array(values)})
    with pytest.raises(ValueError, match=rf"missing or not finite in '{name}'") as raised:
        load_dataset(OPTIONS)
    assert "--impute" not in str(raised.value)


def test_a_column_of_nulls_is_named(columns):
    write(columns | {"height": pa.nulls(N)})
    with pytest.raises(ValueError, match=r"no row has a number in height.*--drop height"):
        load_dataset(OPTIONS)


def test_without_the_option_the_error_names_it(columns):
    with pytest.raises(
        ValueError, match=r"missing or not finite in 'width' \(4\).*give --impute mean, remove these rows"
    ):
        load_dataset(dataclasses.replace(OPTIONS, impute=None))


def test_arrays_are_filled_and_sparse_rows_refused(columns):
    X = np.arange(12.0).reshape(6, 2)
    X[1, 1] = X[4, 0] = np.nan
    np.savez("x.npz", X=X, y=np.arange(6) % 2)
    data = load_dataset(RowOptions(["x.npz"], label="y", impute="median"))
    assert data.X[1, 1] == np.nanmedian(X[:, 1]) and data.X[4, 0] == np.nanmedian(X[:, 0]) and data.n_imputed == 2
    np.savez("x.npz", X=np.where(np.isnan(X), np.inf, X), y=np.arange(6) % 2)
    with pytest.raises(ValueError, match="infinite values, first in row 1"):
        load_dataset(RowOptions(["x.npz"], label="y", impute="median"))
    with open("x.svm", "w") as file:
        file.writelines(f"{k % 2} 1:{k}\n" for k in range(6))
    with pytest.raises(ValueError, match="sparse"):
        load_dataset(RowOptions(["x.svm"], label="label", impute="mean"))
