"""Parquet shards beyond what is held in memory: read a piece at a time, learned from as if they were held."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import numpy as np
import pytest

import mahalo

pa = pytest.importorskip("pyarrow")
pytest.importorskip("dask")
from pyarrow import parquet  # noqa: E402

from mahalo.explain import Provenance  # noqa: E402
from mahalo.tables import parquet_shards as on_disk  # noqa: E402
from mahalo.tables.table import Table, open_table  # noqa: E402

FIT = ["--label", "kind", "--id", "name", "--out", "m.safetensors", "--force", "--json"]
N = 120  # rows in a shard


def columns(k: int) -> dict[str, list]:
    """Of one shard: two kinds of things, apart in one of three columns of very different units."""
    rng = np.random.default_rng(k)
    kind = rng.integers(0, 2, N)
    return {
        "name": [f"r{k * N + i}" for i in range(N)],
        "width": 1e3 * (kind + 0.4 * rng.standard_normal(N)),
        "height": 5e4 + rng.standard_normal(N),
        "depth": 1e-3 * rng.standard_normal(N),
        "kind": ["oak" if one else "elm" for one in kind],
    }


def write_shards(change=lambda k, shard: shard) -> None:
    os.makedirs("shards", exist_ok=True)
    for k in range(4):
        parquet.write_table(pa.table(change(k, columns(k))), f"shards/part-{k}.parquet", row_group_size=50)


@pytest.fixture
def shards(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_shards()


@pytest.fixture
def in_pieces(monkeypatch):
    """Nothing is small enough to be held; pieces are of 100 rows at most."""
    monkeypatch.setattr(on_disk, "MEMORY_LIMIT", 0)
    monkeypatch.setattr(on_disk, "PIECE_SIZE", 100 * 5 * 8)


def both(run, monkeypatch, *arguments) -> tuple:
    """What a command says, and the model it writes, of rows held and of rows read in pieces."""
    found = []
    for held in (True, False):
        with monkeypatch.context() as patch:
            patch.setattr(on_disk, "MEMORY_LIMIT", 1 << 30 if held else 0)
            patch.setattr(on_disk, "PIECE_SIZE", 100 * 5 * 8)
            code, out, err = run(*arguments)
        assert code == 0, err
        found += [json.loads(out), mahalo.load("m.safetensors") if arguments[0] == "fit" else None]
    return found[0], found[2], found[1], found[3]


def assert_same(one: dict, other: dict) -> None:
    """Words to the letter, numbers but for rounding."""
    assert one.keys() == other.keys()
    for name, value in one.items():
        if isinstance(value, dict):
            assert_same(value, other[name])
        elif isinstance(value, float):
            assert other[name] == pytest.approx(value, rel=1e-6, abs=1e-9), name
        else:
            assert other[name] == value, name


def test_pieces_give_the_fit_in_memory(shards, run, monkeypatch):
    held, read, model, other = both(run, monkeypatch, "fit", "shards/part-*.parquet", *FIT)
    assert_same(held, read)
    assert held["rows"] == 4 * N and held["standardised"]
    assert other.about["columns"] == model.about["columns"] == ["width", "height", "depth"]
    np.testing.assert_allclose(other.matrix, model.matrix, rtol=1e-8)


@pytest.mark.parametrize(
    "options",
    [
        ["--gamma", "1"],
        ["--gamma", "1", "--drop", "height"],
        ["--gamma", "1", "--columns", "depth,width"],
        ["--gamma", "1", "--no-standardise"],
        ["--gamma", "1", "--prior", "within", "--components", "2"],
        pytest.param(["--embeddings"], marks=pytest.mark.slow),
    ],
    ids=" ".join,
)
def test_options_mean_the_same(shards, run, monkeypatch, options):
    held, read, model, other = both(run, monkeypatch, "fit", "shards", *FIT, *options)
    assert_same(held, read)
    assert other.about["columns"] == model.about["columns"]
    np.testing.assert_allclose(other.matrix, model.matrix, rtol=1e-6, atol=1e-9 * np.abs(model.matrix).max())


def test_mean_and_scale_are_those_of_all_rows(shards, run, monkeypatch):
    """By cosine both are in the file."""
    from mahalo.workflows import estimation

    chosen = estimation.make_estimator
    monkeypatch.setattr(estimation, "make_estimator", lambda *args: chosen(*args).set_params(normalize=True))
    _, _, model, other = both(run, monkeypatch, "fit", "shards", *FIT, "--gamma", "1")
    X = np.hstack([np.column_stack([columns(k)[name] for name in ("width", "height", "depth")]).T for k in range(4)]).T
    for scaling in (model.scaling, other.scaling):
        np.testing.assert_allclose(scaling.mean, X.mean(axis=0), rtol=1e-10)
        np.testing.assert_allclose(scaling.scale, X.std(axis=0), rtol=1e-10)


@pytest.mark.slow
def test_evaluate_says_the_same(shards, run, monkeypatch):
    assert_same(*both(run, monkeypatch, "evaluate", "shards", "--label", "kind", "--id", "name", "--json")[:2])


def test_pairs_by_id(shards, run, monkeypatch):
    Path("pairs.csv").write_text("a,b,same\n" + "".join(f"r{k},r{479 - k},{k % 2}\n" for k in range(60)))
    options = ["--pairs", "pairs.csv", "--id", "name", "--drop", "kind", "--out", "m.safetensors", "--force", "--json"]
    held, read, model, other = both(run, monkeypatch, "fit", "shards", *options, "--gamma", "1")
    assert_same(held, read)
    np.testing.assert_allclose(other.matrix, model.matrix, rtol=1e-6)


def test_columns_of_values(shards, run, monkeypatch):
    write_shards(lambda k, shard: shard | {"soil": ["clay", "sand" if k < 2 else "loam"] * (N // 2)})
    held, read, model, other = both(run, monkeypatch, "fit", "shards", *FIT, "--one-hot", "soil", "--gamma", "1")
    assert_same(held, read)
    assert other.about["one_hot"] == {"soil": ["clay", "loam", "sand"]}
    np.testing.assert_allclose(other.matrix, model.matrix, rtol=1e-6, atol=1e-9 * np.abs(model.matrix).max())


def as_numbers(kind):
    return [10 if one == "oak" else 9 for one in kind]


LABELS = {
    "numbers": as_numbers,
    "numbers and none": lambda kind: [None if k % 7 == 0 else one for k, one in enumerate(as_numbers(kind))],
    "fractions and NaN": lambda kind: [
        float("nan") if k % 7 == 0 else float(one) for k, one in enumerate(as_numbers(kind))
    ],
    "text of numbers": lambda kind: [str(one) for one in as_numbers(kind)],
    "minus one": lambda kind: [-1 if k % 5 == 0 else one for k, one in enumerate(as_numbers(kind))],
    "categories": lambda kind: pa.array(kind).dictionary_encode(),
    "truth": lambda kind: [one == "oak" for one in kind],
}


@pytest.mark.parametrize("kind", LABELS)
def test_labels_of_any_kind(shards, run, monkeypatch, kind):
    write_shards(lambda k, shard: shard | {"kind": LABELS[kind](shard["kind"])})
    held, read, _, _ = both(run, monkeypatch, "fit", "shards", *FIT, "--gamma", "1")
    assert_same(held, read)


def test_categories_that_no_row_has(shards, run, monkeypatch):
    def as_categories(k, shard):
        values = pa.array(["elm", "oak", "yew"])
        places = pa.array([["elm", "oak"].index(name) for name in shard["kind"]], pa.int8())
        return shard | {"kind": pa.DictionaryArray.from_arrays(places, values)}

    write_shards(as_categories)
    held, read, *_ = both(run, monkeypatch, "fit", "shards", *FIT)
    assert_same(held, read)
    assert read["classes"] == 2


def test_one_large_piece(shards, run, monkeypatch):
    parquet.write_table(pa.table(columns(0)), "one.parquet")
    held, read, _, model = both(run, monkeypatch, "fit", "one.parquet", *FIT)
    assert_same(held, read)
    notes = Provenance.of(model).notes
    assert notes["constraints"]["first"] and notes["doubtful_rows"] is None


def test_text_that_is_a_number_in_some_shards_only_stays_text(shards, run, monkeypatch):
    write_shards(
        lambda k, shard: shard | {"kind": ["1" if one == "oak" else "x" if k == 3 else "-1" for one in shard["kind"]]}
    )
    held, read, _, _ = both(run, monkeypatch, "fit", "shards", *FIT, "--gamma", "1")
    assert_same(held, read)
    assert read["classes"] == 3 and read["unlabelled"] == 0


def test_labels_in_a_file(shards, run, monkeypatch):
    np.save("y.npy", np.concatenate([columns(k)["kind"] for k in range(4)]))
    options = [
        "--labels",
        "y.npy",
        "--drop",
        "kind,name",
        "--gamma",
        "1",
        "--out",
        "m.safetensors",
        "--force",
        "--json",
    ]
    assert_same(*both(run, monkeypatch, "fit", "shards", *options)[:2])


def test_shards_may_differ_in_order_and_precision_of_columns(shards, run, monkeypatch):
    def change(k, shard):
        shard["width"] = np.asarray(shard["width"]).astype(np.float32 if k else np.float64)
        return dict(reversed(shard.items())) if k == 2 else shard

    write_shards(change)
    held, read, model, other = both(run, monkeypatch, "fit", "shards", *FIT, "--gamma", "1")
    assert_same(held, read)
    assert other.about["columns"] == model.about["columns"]


# -- what is refused ----------------------------------------------------------------------------------------------


def refused(run, *arguments, words: list[str], code: int = 2) -> None:
    found, out, err = run(*arguments)
    assert found == code and not out, err
    assert err.count("\n") == 1 and not Path("m.safetensors").exists()
    for word in words:
        assert word in err, err


@pytest.mark.parametrize("value", [None, float("nan"), float("inf")])
def test_missing_values_are_named_by_column_file_and_row(shards, run, in_pieces, value):
    def change(k, shard):
        depth = shard["depth"].tolist()
        if k >= 2:
            depth[63] = depth[70] = value
        return shard | {"depth": depth}

    write_shards(change)
    words = ["'depth' (4)", "row 63 of 'depth' in part-2.parquet", "--drop depth", "shards (4 files)"]
    refused(run, "fit", "shards", *FIT, words=words)


def test_text_is_refused_by_what_the_files_say_of_their_columns(shards, run, in_pieces):
    refused(run, "fit", "shards", "--label", "kind", "--out", "m.safetensors", words=["'name'", "--drop", "--one-hot"])


@pytest.mark.parametrize(
    "options, words",
    [
        (["--label", "kinds"], ["no label column 'kinds'", "'kind'"]),
        (["--label", "kind", "--id", "names"], ["no id column 'names'", "'name'"]),
        (["--label", "kind", "--drop", "wide"], ["no column 'wide'"]),
        (["--drop", "name,kind"], ["nothing to learn from", "--label"]),
        (["--label", "kind", "--drop", "name", "--kernel", "rbf"], ["--kernel rbf", "memory"]),
        (["--labels", "few.txt", "--drop", "name"], ["few.txt holds 1 values for the 480 rows"]),
        (["--labels", "lengths.txt", "--drop", "name"], ["'lengths.txt' holds measurements, such as 0.5"]),
        (["--pairs", "few.txt", "--drop", "name"], ["few.txt"]),
    ],
)
def test_what_does_not_fit_is_refused_before_rows_are_read(shards, run, in_pieces, monkeypatch, options, words):
    monkeypatch.setattr(on_disk.ParquetShards, "read", lambda *arguments: pytest.fail("rows were read"))
    Path("few.txt").write_text("oak\n")
    Path("lengths.txt").write_text("0.5\n1\n" * 240)
    refused(run, "fit", "shards", *options, "--out", "m.safetensors", words=words)


def test_measurements_are_no_classes(shards, run, in_pieces):
    words = ["'width' holds measurements"]
    refused(run, "fit", "shards", "--label", "width", "--drop", "name,kind", "--out", "m.safetensors", words=words)


def test_ids_are_checked_without_pairs_too(shards, run, in_pieces):
    write_shards(lambda k, shard: shard | {"name": ["twin", "twin", *shard["name"][2:]]})
    code, _, err = run("fit", "shards", *FIT)
    assert code == 2 and "twin" in err
    beside = ["--label", "kind", "--drop", "name", "--ids", "nowhere.txt", "--out", "m2.safetensors"]
    code, _, err = run("fit", "shards", *beside)
    assert code == 2 and "nowhere.txt" in err


def test_shards_that_differ(shards, run, in_pieces):
    parquet.write_table(pa.table(columns(0)).drop_columns("depth"), "shards/part-3.parquet")
    refused(run, "fit", "shards", *FIT, words=["part-3.parquet and part-0.parquet", "'depth'"])
    write_shards(lambda k, shard: shard | {"depth": ["deep"] * N} if k == 3 else shard)
    refused(run, "fit", "shards", *FIT, words=["shards differ in the types of their columns"])


def test_one_class(shards, run, in_pieces):
    write_shards(lambda k, shard: shard | {"kind": ["oak"] * N})
    refused(run, "fit", "shards", *FIT, words=["have 1 class", "at least 2"])


def test_without_dask_the_message_says_what_to_install(shards, run, in_pieces, monkeypatch):
    for name in [name for name in sys.modules if name.startswith("mahalo.rows.dask")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "dask", None)
    refused(run, "fit", "shards", *FIT, words=["pip install 'mahalo[dask]'", "GB"], code=1)


# -- how much is held ---------------------------------------------------------------------------------------------


def test_pieces_are_neighbouring_row_groups(shards, in_pieces):
    found = open_table(["shards"])
    assert [(p.file.name, p.groups, p.first_in_file, p.first, len(p)) for p in found.pieces[:3]] == [
        ("part-0.parquet", (0, 1), 0, 0, 100),
        ("part-0.parquet", (2,), 100, 100, 20),
        ("part-1.parquet", (0, 1), 0, 120, 100),
    ]
    rows = [name for piece in found.pieces for name in found.read(piece, ["name"]).frame.column("name").to_pylist()]
    assert rows == [f"r{k}" for k in range(4 * N)]


def test_what_fits_into_memory_is_held(shards):
    assert isinstance(open_table(["shards"]), Table)


@pytest.mark.parametrize("options", [[], ["--gamma", "1", "--prior", "within"]], ids=["chosen", "settled"])
def test_rows_are_read_three_times(shards, run, in_pieces, monkeypatch, options):
    """A first look, then the two passes of a fit."""
    read, seen = on_disk.ParquetShards.read, []

    def counted(self, piece, names=None):
        seen.append((piece, tuple(names)))
        return read(self, piece, names)

    monkeypatch.setattr(on_disk.ParquetShards, "read", counted)
    code, _, err = run("fit", "shards", *FIT, *options)
    assert code == 0, err
    pieces = open_table(["shards"]).pieces
    often = [sum(1 for other, names in seen if other == piece and "width" in names) for piece in pieces]
    assert often == [4] + [3] * (len(pieces) - 1)  # the first of them for what its columns hold, too


def test_few_pieces_are_held_at_once(shards, run, in_pieces, monkeypatch):
    """As many as there are threads, and one more each while it is put into units."""
    import threading
    import weakref

    import dask

    from mahalo.tables import dataset

    alive, most, lock, read = 0, 0, threading.Lock(), dataset._read_numbers

    def forget():
        nonlocal alive
        with lock:
            alive -= 1

    def counted(*arguments):
        nonlocal alive, most
        X = read(*arguments)
        with lock:
            alive += 1
            most = max(most, alive)
        weakref.finalize(X, forget)
        return X

    monkeypatch.setattr(dataset, "_read_numbers", counted)
    write_shards()
    with dask.config.set(scheduler="threads", num_workers=2):
        code, _, err = run("fit", "shards", *FIT, "--gamma", "1")
    assert code == 0, err
    assert 1 <= most <= 3


# -- transform --------------------------------------------------------------------------------------------------------


@pytest.fixture
def model(shards, run):
    code, _, err = run("fit", "shards", *FIT, "--gamma", "1")
    assert code == 0, err
    return "m.safetensors"


@pytest.mark.parametrize("name", ["new.parquet", "new.csv", "new.npy", "new.npz"])
def test_transform_in_pieces_writes_the_same(model, run, monkeypatch, name):
    run("transform", model, "shards", "--out", "held" + name)
    monkeypatch.setattr(on_disk, "MEMORY_LIMIT", 0)
    code, out, err = run("transform", model, "shards", "--out", name)
    assert code == 0, err
    assert f"{4 * N} rows, 3 new columns" in out
    held, new = contents("held" + name), contents(name)
    assert held.keys() == new.keys() and len(held) == (1 if name == "new.npy" else 3 if name == "new.npz" else 5)
    for column, values in held.items():
        np.testing.assert_array_equal(values, new[column])


def contents(name: str) -> dict[str, np.ndarray]:
    from pyarrow import csv

    if name.endswith(".npy"):
        return {"X": np.load(name)}
    if name.endswith(".npz"):
        return dict(np.load(name))
    frame = (parquet.read_table if name.endswith(".parquet") else csv.read_csv)(name)
    return {column: np.array(frame.column(column).to_pylist()) for column in frame.column_names}


def test_transform_holds_one_piece_at_a_time(model, run, in_pieces, monkeypatch):
    read, seen = on_disk.ParquetShards.read, []
    monkeypatch.setattr(on_disk.ParquetShards, "read", lambda *given: seen.append(read(*given)) or seen[-1])
    monkeypatch.setattr(on_disk.ParquetShards, "load", lambda *given: pytest.fail("all rows were read"))
    code, _, err = run("transform", model, "shards", "--out", "new.npy")
    assert code == 0, err
    assert [table.n_rows for table in seen] == [100, 20] * 4


def test_transform_names_the_file_of_a_missing_value(model, run, in_pieces):
    write_shards(lambda k, shard: shard | {"depth": [None if k == 2 and i == 107 else 0.0 for i in range(N)]})
    code, _, err = run("transform", model, "shards", "--out", "new.parquet")
    assert code == 2 and "row 107 of 'depth'" in err and "part-2.parquet" in err
    assert not Path("new.parquet").exists() and not list(Path().glob(".new*"))
