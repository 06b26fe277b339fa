"""Datasets loaded from files by plain options, in memory and in pieces."""

from __future__ import annotations

import numpy as np
import pytest

pa = pytest.importorskip("pyarrow")
from pyarrow import parquet  # noqa: E402

from mahalo.progress import Progress  # noqa: E402
from mahalo.tables import labels_and_ids, parquet_shards  # noqa: E402
from mahalo.tables.dataset import load_dataset  # noqa: E402
from mahalo.tables.options import RowOptions  # noqa: E402
from mahalo.tables.table import Table, open_table, read_table  # noqa: E402

N = 30


def write_shards() -> dict[str, np.ndarray]:
    """Write two shards of fifteen rows in groups of five, and return all columns."""
    rng = np.random.default_rng(0)
    columns = {
        "name": np.array([f"r{k}" for k in range(N)]),
        "width": rng.standard_normal(N),
        "height": 10.0 + rng.standard_normal(N),
        "soil": rng.choice(["clay", "sand"], N),
        "kind": np.array(["oak", "elm", "ash"])[np.arange(N) % 3],
    }
    for k in range(2):
        part = pa.table({name: values[15 * k : 15 * k + 15] for name, values in columns.items()})
        parquet.write_table(part, f"part-{k}.parquet", row_group_size=5)
    return columns


@pytest.fixture
def columns(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return write_shards()


@pytest.fixture
def in_pieces(monkeypatch):
    """Nothing fits into memory, and pieces have five rows."""
    monkeypatch.setattr(parquet_shards, "MEMORY_LIMIT", 0)
    monkeypatch.setattr(parquet_shards, "PIECE_SIZE", 5 * 5 * 8)


OPTIONS = RowOptions(["part-*.parquet"], label="kind", id="name", one_hot=["soil"])


def test_rows_labels_and_ids_of_a_folder(columns):
    dataset = load_dataset(OPTIONS)
    clay = columns["soil"] == "clay"
    expected = np.column_stack([columns["width"], columns["height"], clay, ~clay])
    np.testing.assert_array_equal(dataset.X, expected)
    assert dataset.encoding.names == ["width", "height", "soil=clay", "soil=sand"]
    assert dataset.y.tolist() == columns["kind"].tolist() and dataset.ids == columns["name"].tolist()
    assert dataset.classes.names.tolist() == ["ash", "elm", "oak"] and dataset.classes.sizes.tolist() == [10, 10, 10]
    assert dataset.n_pieces is None and dataset.constraints is None


def test_pieces_hold_the_rows_of_the_whole(columns, monkeypatch):
    pytest.importorskip("dask")
    whole = load_dataset(OPTIONS)
    monkeypatch.setattr(parquet_shards, "MEMORY_LIMIT", 0)
    monkeypatch.setattr(parquet_shards, "PIECE_SIZE", 5 * 5 * 8)
    pieces = load_dataset(OPTIONS)
    assert pieces.n_pieces == 6 and pieces.ids is None
    np.testing.assert_array_equal(pieces.X.compute(), whole.X)
    assert [whole.classes.names[code] for code in pieces.y.compute()] == whole.y.tolist()
    assert (pieces.encoding, pieces.fingerprint) == (whole.encoding, whole.fingerprint)
    assert pieces.classes.sizes.tolist() == whole.classes.sizes.tolist()
    for one, other in ((pieces.scaling().mean, whole.scaling().mean), (pieces.scaling().scale, whole.scaling().scale)):
        np.testing.assert_allclose(one, other, rtol=1e-12)
    scaled = pieces.scaled(pieces.scaling()).compute()
    np.testing.assert_allclose(scaled, (whole.X - whole.X.mean(axis=0)) / whole.X.std(axis=0), atol=1e-12)


def test_large_files_are_read_whole_where_memory_is_asked_for(columns, in_pieces):
    assert not open_table(OPTIONS.data).in_memory
    assert isinstance(read_table(OPTIONS.data), Table)
    assert isinstance(load_dataset(OPTIONS, in_memory=True).X, np.ndarray)


def test_a_table_in_memory_is_its_only_piece(columns):
    table = read_table(OPTIONS.data)
    (piece,) = table.pieces
    assert len(piece) == N and piece.first == 0 and table.read(piece, ["width"]) is table


def test_supervision_is_required_unless_told_otherwise(columns):
    unsupervised = RowOptions(["part-0.parquet"], columns=["width,height"])
    with pytest.raises(ValueError, match="nothing to learn from"):
        load_dataset(unsupervised)
    dataset = load_dataset(unsupervised, supervised=False)
    assert dataset.y is dataset.classes is None and dataset.X.shape == (15, 2)


@pytest.mark.parametrize("limit", [0, 1 << 30], ids=["in pieces", "in memory"])
def test_too_many_labels_are_refused(columns, monkeypatch, limit):
    pytest.importorskip("dask")
    monkeypatch.setattr(parquet_shards, "MEMORY_LIMIT", limit)
    monkeypatch.setattr(labels_and_ids, "_MOST_CLASSES", 2)
    with pytest.raises(ValueError, match="more than 2 different labels"):
        load_dataset(OPTIONS)


def test_progress_names_the_files_that_are_read(columns):
    lines: list[str] = []
    load_dataset(OPTIONS, Progress(lines.append))
    assert any("reading: " in line and "part-1.parquet" in line for line in lines)
