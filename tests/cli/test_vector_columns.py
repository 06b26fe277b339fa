"""Parquet columns of lists are vectors: read at once or in pieces, refused where their lengths differ."""

from __future__ import annotations

import json

import numpy as np
import pytest

import mahalo

pa = pytest.importorskip("pyarrow")
from pyarrow import parquet  # noqa: E402

from mahalo.tables import parquet_shards as on_disk  # noqa: E402

N, D = 240, 6


def vectors() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    y = np.arange(N) % 3
    return rng.standard_normal((N, D)) + 2.0 * np.eye(D)[y], y


def list_column(X: np.ndarray, kind: str, dtype: str = "float32"):
    rows, value = X.astype(dtype), pa.from_numpy_dtype(np.dtype(dtype))
    if kind == "fixed":
        return pa.FixedSizeListArray.from_arrays(pa.array(rows.ravel()), D)
    made = pa.large_list(value) if kind == "large" else pa.list_(value)
    return pa.array(list(rows), type=made)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(params=["in memory", "in pieces"])
def place(request, monkeypatch):
    if request.param == "in pieces":
        pytest.importorskip("dask")
        monkeypatch.setattr(on_disk, "MEMORY_LIMIT", 0)
        monkeypatch.setattr(on_disk, "PIECE_SIZE", 50 * (D + 2) * 8)
    return request.param


def write(path, **columns) -> None:
    parquet.write_table(pa.table(columns), path, row_group_size=40)


FIT = ("--label", "kind", "--id", "name", "--gamma", "1", "--out", "m.safetensors", "--json")


@pytest.mark.parametrize(("kind", "dtype"), [("fixed", "float32"), ("plain", "float64"), ("large", "float16")])
def test_a_column_of_lists_is_a_column_of_vectors(run, folder, place, kind, dtype):
    X, y = vectors()
    X = X.astype(dtype).astype(np.float64)
    names = [f"r{k}" for k in range(N)]
    write("lists.parquet", name=names, embedding=list_column(X, kind, dtype), kind=y)
    write("wide.parquet", name=names, **{f"x{k}": X[:, k] for k in range(D)}, kind=y)
    found = []
    for table in ("lists.parquet", "wide.parquet"):
        code, out, err = run("fit", table, *FIT, "--force")
        assert code == 0, err
        metric = mahalo.load("m.safetensors")
        found.append((metric.distances(X), json.loads(out)["columns"], json.loads(out)["after"]))
        if table == "lists.parquet":
            assert metric.about["columns"] == ["embedding"] and metric.about["vectors"] == {"embedding": D}
            code, _, err = run("transform", "m.safetensors", table, "--out", "new.parquet")
            assert code == 0, err
            new = parquet.read_table("new.parquet")
            assert new.column_names == ["name", "kind", *(f"mahalo{k}" for k in range(D))]
            moved = np.column_stack([new.column(f"mahalo{k}") for k in range(D)])
            np.testing.assert_allclose(moved, metric.transform(X), rtol=1e-12)
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-12)
    assert found[0][1:] == found[1][1:]


def test_commands_name_the_entries_of_a_vector(run, folder):
    X, y = vectors()
    write("t.parquet", size=X[:, 0], embedding=list_column(X, "fixed"), kind=y)
    assert run("fit", "t.parquet", "--label", "kind", "--gamma", "1", "--out", "m.safetensors")[0] == 0
    assert run("export", "m.safetensors", "--out", "map.npz")[0] == 0
    assert np.load("map.npz")["columns"].tolist() == ["size", *(f"embedding[{k}]" for k in range(D))]
    code, _, err = run("neighbors", "m.safetensors", "--index", "t.parquet", "-k", "3", "--out", "near.csv")
    assert code == 0, err
    code, _, err = run("report", "m.safetensors", "--data", "t.parquet")
    assert code == 0, err
    assert "embedding[3]" in (folder / "report.html").read_text(encoding="utf-8")
    code, _, err = run("fit", "t.parquet", "--label", "kind", "--drop", "embedding", "--out", "s.safetensors")
    assert code == 0 and mahalo.load("s.safetensors").n_features == 1, err


def test_vectors_of_different_lengths_are_refused_by_row(run, folder, place):
    X, y = vectors()
    rows = [list(x) for x in X]
    rows[123] = rows[123][:-1]
    write("t.parquet", name=[f"r{k}" for k in range(N)], embedding=rows, kind=y)
    code, out, err = run("fit", "t.parquet", *FIT)
    assert (code, out) == (2, "") and err.count("\n") == 1
    assert "'embedding' of t.parquet" in err and "row 123 has 5 numbers" in err and "6" in err


@pytest.mark.parametrize("value", [None, [1.0, None, 0.0, 0.0, 0.0, 0.0], [np.nan] * D])
def test_missing_vectors_and_numbers_are_refused_by_column(run, folder, place, value):
    X, y = vectors()
    rows = [list(x) for x in X]
    rows[77] = value
    write("t.parquet", name=[f"r{k}" for k in range(N)], embedding=rows, kind=y)
    code, _, err = run("fit", "t.parquet", *FIT)
    assert code == 2 and err.count("\n") == 1
    assert "row 77 of 'embedding'" in err and "--drop embedding)" in err


def test_what_a_model_measures_must_be_vectors_of_its_length(run, folder):
    X, y = vectors()
    write("t.parquet", embedding=list_column(X, "fixed"), size=y)
    assert run("fit", "t.parquet", "--label", "size", "--gamma", "1", "--out", "m.safetensors")[0] == 0
    write("short.parquet", embedding=X[:, :5].tolist())
    write("number.parquet", embedding=X[:, 0])
    for table, words in (
        ("short.parquet", "row 0 has 5 numbers; wanted 6"),
        ("number.parquet", "wanted 6 numbers a row"),
    ):
        code, _, err = run("transform", "m.safetensors", table, "--out", "new.npy")
        assert code == 2 and words in err and err.count("\n") == 1, err
    write("plain.parquet", embedding=X[:, 0], size=y)
    assert run("fit", "plain.parquet", "--label", "size", "--gamma", "1", "--out", "n.safetensors")[0] == 0
    code, _, err = run("transform", "n.safetensors", "t.parquet", "--out", "new.npy")
    assert code == 2 and "holds vectors; wanted one number a row" in err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--label", "kind"), "not numbers, in 'tags'"),
        (("--label", "embedding", "--drop", "tags"), "'embedding' of t.parquet holds lists; wanted one label a row"),
        (("--label", "kind", "--id", "tags"), "'tags' of t.parquet holds lists; wanted one id a row"),
        (("--label", "kind", "--one-hot", "tags"), "'tags' of t.parquet holds lists"),
        (("--label", "kind", "--drop", "tags", "--columns", "empty"), "'empty' of t.parquet holds empty lists"),
    ],
)
def test_other_lists_are_refused_in_one_line(run, folder, place, arguments, words):
    X, y = vectors()
    empty = pa.array([[]] * N, type=pa.list_(pa.float32()))
    columns = {"tags": [["a", "b"]] * N, "embedding": list_column(X, "plain"), "kind": y}
    write("t.parquet", **columns | ({"empty": empty} if "empty" in arguments else {}))
    code, out, err = run("fit", "t.parquet", *arguments, "--out", "m.safetensors")
    assert (code, out) == (2, "") and err.count("\n") == 1
    assert words in err
