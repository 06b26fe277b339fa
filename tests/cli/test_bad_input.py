"""Bad input: one clear line on standard error, exit code 2, and nothing lost or half-written."""

from __future__ import annotations

import errno
import json
import os
import shlex
import signal
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from csv_tables import table, write_csv
from pyarrow import parquet
from safetensors import safe_open
from safetensors.numpy import save_file

from mahalo import MetricLearner, load
from mahalo.tables import csv_files

FIT = ("--label", "kind", "--drop", "name", "--gamma", "1", "--out", "new.safetensors")


def refused(run, *arguments, words):
    """One line that says these words; the folder is left as it was."""
    before = {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()}
    code, out, err = run(*arguments)
    assert (code, out) == (2, ""), err
    assert err.startswith("mahalo: ") and err.count("\n") == 1, err
    for word in words:
        assert word in err, err
    assert {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()} == before


def changed(**columns):
    return write_csv(Path("other.csv"), table() | columns)


def without(*names, n=40):
    return write_csv(Path("other.csv"), {name: values for name, values in table(n).items() if name not in names})


# -- tables ------------------------------------------------------------------------------------------------------


def test_missing_file(trees, run):
    refused(run, "fit", "forest.csv", *FIT, words=["forest.csv", "no file"])


def test_wrong_suffix(trees, run):
    Path("trees.xlsx").write_bytes(b"?")
    refused(run, "fit", "trees.xlsx", *FIT, words=[".xlsx", ".parquet"])


@pytest.mark.parametrize("text", ["5.1,3.5,oak\n4.9,3.0,elm\n", "5,3\n4,3\n"])
def test_no_header(trees, run, text):
    Path("other.csv").write_text(text)
    refused(run, "fit", "other.csv", *FIT, words=["no header", "column names"])


def test_columns_that_count_up_are_a_header(trees, run):
    Path("other.csv").write_text("0,1,kind\n" + "".join(f"{k % 2 + 0.1 * k},{k},{'ab'[k % 2]}\n" for k in range(12)))
    code, _, err = run("fit", "other.csv", "--label", "kind", "--gamma", "1", "--out", "new.safetensors")
    assert code == 0, err


def test_columns_of_one_name(trees, run):
    Path("other.csv").write_text("a,a,kind\n1,2,x\n3,4,y\n")
    refused(run, "fit", "other.csv", "--label", "kind", "--out", "new.safetensors", words=["'a'", "Rename"])


def test_label_column_absent(trees, run):
    refused(run, "fit", "trees.csv", "--label", "kimd", "--out", "new.safetensors", words=["'kimd'", "'kind'"])


def test_nothing_known(trees, run):
    refused(run, "fit", "trees.csv", "--out", "new.safetensors", words=["--label", "--pairs"])


def test_text_among_numbers(trees, run):
    changed(width=[*map(str, table()["width"][:-1]), "tall"])
    refused(run, "fit", "other.csv", *FIT, words=["'width'", "'tall'", "row 39", "--drop width", "--one-hot"])


def test_text_columns_are_named_all_at_once(trees, run):
    changed(colour=["red", "blue"] * 20, town=["Ulm"] * 40)
    refused(run, "fit", "other.csv", *FIT, words=["'colour', 'town'", "--one-hot colour,town"])


@pytest.mark.parametrize(
    "options, words",
    [
        (["--one-hot", "colour", "--drop", "colour"], ["--one-hot names 'colour'", "--drop"]),
        (["--one-hot", "kind"], ["--one-hot names 'kind'", "--label"]),
        (["--columns", "width,kind"], ["--columns names 'kind'", "--label"]),
    ],
)
def test_a_column_to_learn_from_and_to_leave_out(trees, run, options, words):
    changed(colour=["red", "blue"] * 20)
    refused(run, "fit", "other.csv", "--label", "kind", *options, "--out", "new.safetensors", words=words)


@pytest.mark.parametrize("value", [None, float("nan"), float("inf")])
def test_missing_values(trees, run, value):
    width = table()["width"]
    width[7] = value
    changed(width=width)
    refused(run, "fit", "other.csv", *FIT, words=["'width' (1)", "row 7", "--drop width"])


def test_missing_values_in_an_array(trees, run):
    X = np.ones((6, 2))
    X[4, 1] = np.nan
    np.save("x.npy", X)
    Path("y.txt").write_text("a\nb\n" * 3)
    refused(run, "fit", "x.npy", "--labels", "y.txt", "--out", "new.safetensors", words=["x.npy", "row 4"])


@pytest.mark.parametrize("name", ["other.csv", "other.parquet", "other.npy", "other.svm"])
def test_empty_file(trees, run, name):
    Path(name).write_bytes(b"")
    refused(run, "fit", name, *FIT, words=[name, "empty"])


def test_header_without_rows(trees, run):
    Path("other.csv").write_text("width,kind\n")
    refused(run, "fit", "other.csv", "--label", "kind", "--out", "new.safetensors", words=["no rows"])


def test_one_row(trees, run):
    write_csv(Path("other.csv"), table(1))
    refused(run, "fit", "other.csv", *FIT, words=["one row", "at least 2"])


def test_one_class(trees, run):
    changed(kind=["oak"] * 40)
    refused(run, "fit", "other.csv", *FIT, words=["1 class", "at least 2"])


def test_a_class_of_one_row_alone(trees, run):
    changed(kind=["oak"] * 39 + ["elm"])
    refused(run, "evaluate", "other.csv", "--label", "kind", "--drop", "name", words=["class"])


def test_duplicate_ids(trees, run):
    changed(name=["r0", "r0", *table()["name"][2:]])
    refused(run, "fit", "other.csv", *FIT, "--id", "name", words=["'r0'", "more than once"])


@pytest.mark.parametrize(
    ("ids", "pairs", "words"),
    [
        (("--id", "name"), "a,b,same\nr0,r2,1\nr1,r99,0\nx,r5,0\n", ["'r99', 'x'", "'r0'"]),
        ((), "a,b,same\n0,2,1\n1,40,0\n", ["row 40", "0 to 39", "--id"]),
        ((), "a,b,same\nr0,r2,1\n", ["by number", "--id"]),
        ((), "a,b,same\n0,2,maybe\n", ["'same'"]),
        ((), "a,b,same\n0,2,3\n", ["'same'", "0 and 1"]),
        ((), "a\n0\n", ["1 columns", "2"]),
    ],
)
def test_pairs_that_name_no_row(trees, run, ids, pairs, words):
    Path("pairs.csv").write_text(pairs)
    drop = () if ids else ("--drop", "name")
    source = ("trees.csv", "--pairs", "pairs.csv", *ids, *drop, "--label", "kind")
    refused(run, "fit", *source, "--out", "new.safetensors", words=["pairs.csv", *words])


def test_latin_1(trees, run):
    text = trees.read_text(encoding="utf-8").replace("oak", "chêne")
    Path("other.csv").write_bytes(text.encode("latin-1"))
    refused(run, "fit", "other.csv", *FIT, words=["other.csv", "utf-8", "--encoding latin-1"])
    code, _, err = run("fit", "other.csv", *FIT, "--encoding", "latin-1")
    assert code == 0, err


def test_latin_1_in_the_header(trees, run):
    Path("other.csv").write_bytes("größe,kind\n1,a\n2,b\n".encode("latin-1"))
    refused(run, "fit", "other.csv", *FIT, words=["--encoding latin-1"])


def test_unknown_encoding(trees, run):
    refused(run, "fit", "trees.csv", *FIT, "--encoding", "klingon", words=["klingon"])


@pytest.mark.parametrize("start", ["", "width,kind\n1,oak\n"])
def test_a_line_without_end_is_not_held(trees, run, start):
    """Sparse on disk: two gigabytes of zeros in one line. Refused after a few megabytes."""
    with open("other.csv", "wb") as file:
        file.write(start.encode())
        file.truncate(2 << 30)
    tracemalloc.start()
    try:
        code, out, err = run("fit", "other.csv", "--label", "kind", "--out", "new.safetensors")
        assert tracemalloc.get_traced_memory()[1] < 6 * csv_files.LONGEST_LINE
    finally:
        tracemalloc.stop()
    said = [line for line in err.splitlines() if not line.startswith("reading: ")]  # progress, on a slow machine
    assert (code, out, len(said)) == (2, "", 1) and "line" in said[0]
    assert not Path("new.safetensors").exists()


def test_an_object_array(trees, run):
    np.save("x.npy", np.array([["a", 1]], dtype=object), allow_pickle=True)
    refused(run, "fit", "x.npy", *FIT, words=["x.npy", "Python objects"])


def test_truncated_parquet(trees, run):
    parquet.write_table(pa.table(table()), "x.parquet")
    data = Path("x.parquet").read_bytes()
    Path("x.parquet").write_bytes(data[: len(data) // 2])
    refused(run, "fit", "x.parquet", *FIT, words=["x.parquet", "Parquet"])


def test_shards_that_differ(trees, run):
    os.mkdir("shards")
    np.save("shards/a.npy", np.ones((3, 2)))
    np.save("shards/b.npy", np.ones((3, 4)))
    refused(run, "fit", "shards", "--labels", "y.txt", "--out", "new.safetensors", words=["b.npy has 4", "a.npy has 2"])


def test_labels_of_another_length(trees, run):
    Path("y.txt").write_text("oak\nelm\n")
    source = ("trees.csv", "--drop", "name,kind", "--labels", "y.txt")
    refused(run, "fit", *source, "--out", "new.safetensors", words=["2 values", "40 rows"])


# -- models ------------------------------------------------------------------------------------------------------


def rewritten(model: Path, change) -> None:
    """The model with another header, fingerprint and all."""
    from mahalo.persistence import _digest

    with safe_open(model, framework="numpy") as file:
        header = json.loads(file.metadata()["mahalo"])
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    header.pop("sha256")
    change(header)
    save_file(arrays, model, metadata={"mahalo": json.dumps(header | {"sha256": _digest(header, arrays)})})


def test_model_of_a_newer_version(model, run):
    rewritten(model, lambda header: header.update(version=99))
    for command in (("transform", model, "trees.csv", "--out", "o.csv"), ("neighbors", model, "--index", "trees.csv")):
        refused(run, *command, words=["version 99", "Upgrade"])


def test_truncated_model(model, run):
    model.write_bytes(model.read_bytes()[:-100])
    refused(run, "transform", model, "trees.csv", "--out", "o.csv", words=["m.safetensors", "truncated"])


def test_a_model_that_is_none(model, run):
    refused(run, "transform", "trees.csv", "trees.csv", "--out", "o.csv", words=["trees.csv", "safetensors"])
    refused(run, "transform", "none", "trees.csv", "--out", "o.csv", words=["none"])


def test_other_columns(model, run):
    without("width")
    for command in (
        ("transform", model, "other.csv", "--out", "o.csv"),
        ("neighbors", model, "--index", "trees.csv", "--query", "other.csv"),
        ("report", model, "--data", "other.csv"),
    ):
        refused(run, *command, words=["other.csv lacks", "'width'"])


def test_arrays_have_no_names_to_check(model, run):
    np.save("x.npy", np.ones((4, 3)))
    refused(run, "transform", model, "x.npy", "--out", "o.npy", words=["'width'", "Give a table"])


def test_another_width(trees, run):
    X = np.random.default_rng(0).standard_normal((20, 3))
    np.savez("x.npz", X=X, y=np.arange(20) % 2)
    code, _, err = run("fit", "x.npz", "--label", "y", "--gamma", "1", "--out", "m.safetensors")
    assert code == 0, err
    np.save("wide.npy", np.ones((4, 5)))
    refused(run, "transform", "m.safetensors", "wide.npy", "--out", "o.npy", words=["5 columns", "fitted on 3"])


def test_values_never_seen(trees, run):
    changed(colour=["red", "blue"] * 20)
    code, _, err = run("fit", "other.csv", *FIT, "--one-hot", "colour")
    assert code == 0, err
    changed(colour=["red", "teal"] * 20)
    refused(run, "transform", "new.safetensors", "other.csv", "--out", "o.csv", words=["'teal'", "'colour'"])


# -- output ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("out", ["nowhere/new.safetensors", "trees.csv/new.safetensors", "/proc/new.safetensors"])
def test_unwritable_output(trees, run, out):
    refused(run, "fit", "trees.csv", "--label", "kind", "--drop", "name", "--out", out, words=["new.safetensors"])


def test_output_that_exists_needs_force(model, run):
    Path("o.csv").write_text("precious")
    commands = {
        "m.safetensors": ("fit", "trees.csv", *FIT[:-1], "m.safetensors"),
        "o.csv": ("transform", model, "trees.csv", "--out", "o.csv"),
    }
    for name, command in commands.items():
        refused(run, *command, words=[name, "--force"])
        code, _, err = run(*command, "--force")
        assert code == 0, err


@pytest.mark.parametrize("out", ["new.txt", "new"])
def test_output_of_another_kind(model, run, out):
    refused(run, "transform", model, "trees.csv", "--out", out, words=[out, ".parquet"])
    refused(run, "fit", "trees.csv", *FIT[:-1], out, words=[out, ".safetensors"])


@pytest.mark.parametrize("name", ["o.csv", "o.parquet", "o.npy", "o.npz", "o.safetensors", "o.html"])
def test_disk_full(model, run, monkeypatch, name):
    def full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    commands = {".safetensors": ("fit", "trees.csv", *FIT[:-2]), ".html": ("report", model, "--data", "trees.csv")}
    command = commands.get(Path(name).suffix, ("transform", model, "trees.csv"))
    Path(name).write_text("precious")
    monkeypatch.setattr(os, "fsync", full)
    refused(run, *command, "--out", name, "--force", words=["No space left", name])


def test_interrupted_while_writing(model, run, monkeypatch):
    def interrupt(descriptor):
        raise KeyboardInterrupt

    Path("o.csv").write_text("precious")
    before = sorted(Path().iterdir())
    monkeypatch.setattr(os, "fsync", interrupt)
    code, out, err = run("transform", model, "trees.csv", "--out", "o.csv", "--force")
    assert (code, out, err) == (130, "", "mahalo: interrupted\n")
    assert sorted(Path().iterdir()) == before and Path("o.csv").read_text() == "precious"


def test_log_that_cannot_be_written(trees, run):
    refused(run, "evaluate", "trees.csv", "--label", "kind", "--log", "nowhere/x.log", words=["nowhere/x.log"])


@pytest.mark.parametrize(
    ("option", "text", "words"),
    [
        ("--pairs", ",a,b\n0,3,5\n1,4,6\n", ["3 columns", "'', 'a', 'b'", "wanted 2"]),
        ("--pairs", ",a,b,same\n0,3,5,1\n1,4,6,0\n", ["3 columns", "'', 'a', 'b'", "wanted 2"]),
        ("--pairs", "same,a\n1,3\n0,4\n", ["1 columns", "'a'", "wanted 2"]),
        ("--triplets", ",a,b,c\n0,3,5,4\n1,4,6,5\n", ["4 columns", "'', 'a', 'b' and 1 more", "wanted 3"]),
    ],
)
def test_columns_that_are_no_ends(trees, run, option, text, words):
    Path("known.csv").write_text(text)
    source = ("trees.csv", option, "known.csv", "--drop", "name,kind")
    refused(run, "fit", *source, "--out", "new.safetensors", words=["known.csv", *words])


@pytest.mark.parametrize(("column", "out"), [("mahalo0", "o.csv"), ("X", "o.npz"), ("file", "o.npz")])
def test_names_taken_already(model, run, column, out):
    changed(**{column: ["mine"] * 40})
    refused(run, "transform", model, "other.csv", "--out", out, words=[repr(column), "Rename"])


def test_truncated_arrays(trees, run):
    np.savez_compressed("x.npz", X=np.random.default_rng(0).standard_normal((40, 3)), y=np.arange(40) % 2)
    whole = Path("x.npz").read_bytes()
    middle = len(whole) // 3
    for part in (whole[: len(whole) // 2], whole[:middle] + b"\0" * 64 + whole[middle + 64 :]):
        Path("x.npz").write_bytes(part)
        refused(run, "fit", "x.npz", "--label", "y", "--out", "new.safetensors", words=["x.npz", "cannot be read"])


def test_svmlight_of_another_base(trees, run):
    Path("x.svm").write_text("".join(f"{k % 2} 1:{k % 2 + 0.1 * k} 2:{k}\n" for k in range(20)))
    code, _, err = run("fit", "x.svm", "--gamma", "1", "--out", "m.safetensors")
    assert code == 0, err
    Path("q.svm").write_text("1 0:2 1:3\n0 1:2\n")
    refused(run, "transform", "m.safetensors", "q.svm", "--out", "o.npy", words=["q.svm", "from 1", "column 0"])


def test_options_that_need_another(model, run):
    Path("names.txt").write_text("\n".join(table()["name"]))
    refused(
        run, "neighbors", model, "--index", "trees.csv", "--query-ids", "names.txt", words=["--query-ids", "--query "]
    )
    refused(run, "fit", "trees.csv", *FIT, "--encoder", "small", words=["--encoder", "--embeddings"])


def test_integers_that_are_not_exact(trees, run):
    changed(serial=[2**60 + 2 * k + 1 for k in range(40)])
    refused(run, "fit", "other.csv", *FIT, words=["'serial'", "--drop serial"])


def test_parquet_with_columns_of_one_name(trees, run):
    columns = pa.table([pa.array([1.0, 2.0]), pa.array([1.0, 3.0]), pa.array(["x", "y"])], names=["a", "a", "kind"])
    parquet.write_table(columns, "x.parquet")
    refused(run, "fit", "x.parquet", "--label", "kind", "--out", "new.safetensors", words=["'a'", "Rename"])


@pytest.mark.parametrize(("delimiter", "word"), [(";", "--sep semicolon"), ("\t", "--sep tab")])
def test_another_delimiter(trees, run, delimiter, word):
    Path("other.csv").write_text(trees.read_text().replace(",", delimiter))
    refused(run, "fit", "other.csv", *FIT, words=["other.csv", "one column", word])


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="signals are sent otherwise there")
def test_a_fit_that_is_interrupted_leaves_nothing(trees):
    """A real signal to a real process, in the midst of its work."""
    rng = np.random.default_rng(0)
    np.savez("x.npz", X=rng.standard_normal((6000, 95)), y=rng.integers(0, 200, 6000))
    before = sorted(Path().iterdir())
    command = ("fit", "x.npz", "--label", "y", "--out", "new.safetensors")
    process = subprocess.Popen([sys.executable, "-m", "mahalo.cli", *command], stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    seen = next((line for line in process.stderr if line.startswith(("choosing", "evaluating"))), "")
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert seen and process.returncode == 130 and err.splitlines()[-1] == "mahalo: interrupted", err
    assert sorted(Path().iterdir()) == before


def test_a_column_without_a_name_is_no_measurement(tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    rows = "\n".join(f"{i},{i % 2 + 0.1 * i},{i % 3},{'ab'[i % 2]}" for i in range(40))
    Path("t.csv").write_text(f",u,v,kind\n{rows}\n")
    code, _, err = run("fit", "t.csv", "--label", "kind", "--out", "m.safetensors")
    assert code == 2 and "has no name" in err and "--drop ''" in err
    code, _, err = run("fit", "t.csv", "--label", "kind", "--drop", "", "--gamma", "1", "--out", "m.safetensors")
    assert code == 0, err


def test_measurements_are_no_classes(tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    rows = "\n".join(f"{i % 5},{i % 3},{0.5 * i}" for i in range(40))
    Path("t.csv").write_text(f"u,v,length\n{rows}\n")
    code, _, err = run("fit", "t.csv", "--label", "length", "--out", "m.safetensors")
    assert code == 2 and "'length' holds measurements, such as 0.5" in err
    Path("t.csv").write_text(f"u,v,length\n{rows}\n1,2,\n")  # a row without a label beside them
    code, _, err = run("fit", "t.csv", "--label", "length", "--out", "m.safetensors")
    assert code == 2 and "'length' holds measurements, such as 0.5" in err


def test_a_model_that_names_no_columns_takes_those_of_numbers(tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    X = np.random.default_rng(0).standard_normal((30, 2))
    MetricLearner().fit(X, np.arange(30) % 2).metric_.save("m.safetensors")
    rows = "\n".join(f"r{i},{u},{v}" for i, (u, v) in enumerate(X))
    Path("t.csv").write_text(f"name,u,v\n{rows}\n")
    code, out, err = run("neighbors", "m.safetensors", "--index", "t.csv", "--id", "name", "-k", "1", "--json")
    assert code == 0 and json.loads(out)["neighbors"][0]["neighbors"], err
    Path("t.csv").write_text("name,u\n" + "\n".join(f"r{i},{u}" for i, (u, _) in enumerate(X)) + "\n")
    code, _, err = run("neighbors", "m.safetensors", "--index", "t.csv", "-k", "1")
    assert code == 2 and "1 columns of numbers" in err and "fitted on 2" in err


def indexed(name: str, index: str) -> None:
    """A table with a row index that pandas has stored, which knows the classes."""
    rows = {index: list(range(40)), "u": [0.1 * k for k in range(40)], "v": [k % 3 for k in range(40)]}
    rows |= {"kind": ["ab"[k >= 20] for k in range(40)]}
    parquet.write_table(pa.table(rows), name) if name.endswith(".parquet") else write_csv(Path(name), rows)


@pytest.mark.parametrize(
    ("name", "index"), [("t.parquet", "__index_level_0__"), ("t.csv", "Unnamed: 0"), ("t.csv", "")]
)
def test_a_row_index_is_learned_from_only_where_it_is_named(tmp_path, monkeypatch, run, name, index):
    monkeypatch.chdir(tmp_path)
    indexed(name, index)
    fit = ("fit", name, "--label", "kind", "--gamma", "1", "--out", "m.safetensors")
    refused(run, *fit, words=[name, "row index", "index=False", f"--drop {shlex.quote(index)}", "--columns"])
    for given, learned in (("--drop", ["u", "v"]), ("--columns", [index])):
        code, _, err = run(*fit, given, index, "--force")
        assert code == 0, err
        assert load("m.safetensors").about["columns"] == learned


def test_a_row_index_of_large_parquet_files_is_refused_too(tmp_path, monkeypatch, run):
    monkeypatch.setattr("mahalo.tables.parquet_shards.MEMORY_LIMIT", 100)
    monkeypatch.chdir(tmp_path)
    indexed("t.parquet", "__index_level_0__")
    refused(run, "fit", "t.parquet", "--label", "kind", "--out", "m.safetensors", words=["row index", "--drop"])


def test_a_row_index_is_no_column_of_a_model_that_names_none(tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    indexed("t.csv", "Unnamed: 0")
    X = np.random.default_rng(0).standard_normal((30, 2))
    MetricLearner().fit(X, np.arange(30) % 2).metric_.save("m.safetensors")
    code, _, err = run("transform", "m.safetensors", "t.csv", "--out", "o.npy")
    assert (code, err) == (0, "")
    U = np.column_stack([[0.1 * k for k in range(40)], [k % 3 for k in range(40)]])
    np.testing.assert_allclose(np.load("o.npy"), load("m.safetensors").transform(U), atol=1e-12)


def test_columns_made_of_values_are_learned_from_beside_those_named(trees, run):
    changed(colour=["red", "blue"] * 20)
    code, _, err = run("fit", "other.csv", *FIT[:2], "--columns", "width,depth", "--one-hot", "colour", *FIT[4:])
    assert code == 0, err
    about = load("new.safetensors").about
    assert about["columns"] == ["width", "depth", "colour"] and about["one_hot"] == {"colour": ["blue", "red"]}


def with_bfloat16(name: str, **metadata: str) -> None:
    """A safetensors file with one tensor of bfloat16, which numpy lacks; written by hand."""
    header = {"__metadata__": metadata, "w": {"dtype": "BF16", "shape": [2, 2], "data_offsets": [0, 8]}}
    text = json.dumps(header).encode()
    Path(name).write_bytes(len(text).to_bytes(8, "little") + text + bytes(8))


def test_weights_of_another_library_are_no_model(trees, run):
    with_bfloat16("other.safetensors", format="pt")
    ours = json.dumps({"format": "mahalo-metric", "version": 2})
    for command in (
        ("transform", "other.safetensors", "trees.csv", "--out", "o.csv"),
        ("neighbors", "other.safetensors", "--index", "trees.csv"),
    ):
        refused(run, *command, words=["other.safetensors", "header does not say 'mahalo"])
    with_bfloat16("other.safetensors", mahalo=ours)
    refused(run, "transform", "other.safetensors", "trees.csv", "--out", "o.csv", words=["bfloat16", "another kind"])
    pytest.importorskip("ml_dtypes")  # which teaches numpy bfloat16
    refused(run, "transform", "other.safetensors", "trees.csv", "--out", "o.csv", words=["bfloat16", "another kind"])


@pytest.mark.parametrize("name", ["y.txt", "y.csv"])
def test_unknown_encoding_of_labels(trees, run, name):
    np.save("x.npy", np.ones((4, 2)))
    Path(name).write_text("kind\na\nb\na\nb\n"[5 * name.endswith(".txt") :])
    source = ("x.npy", "--labels", name, "--encoding", "klingon")
    refused(run, "fit", *source, "--out", "new.safetensors", words=["--encoding 'klingon' does not exist"])


# -- what is said is so, and what is advised can be done -----------------------------------------------------------


@pytest.mark.parametrize(
    ("kinds", "words"),
    [(list("abcdefgh"), "8 classes, none of them of more than one row"), (list("aabcdefg"), "7 classes, one of them")],
)
def test_classes_of_one_row_are_counted(trees, run, kinds, words):
    write_csv(Path("other.csv"), table(8) | {"kind": kinds})
    refused(run, "fit", "other.csv", *FIT, words=[words, "two such are needed"])


@pytest.mark.parametrize("wrong", [None, "tall"])
def test_columns_of_a_model_cannot_be_left_out(model, run, wrong):
    values = table()
    changed(width=[wrong, *map(str, values["width"][1:])])
    code, _, err = run("transform", "m.safetensors", "other.csv", "--out", "new.csv")
    assert code == 2 and "'width'" in err
    assert "--drop" not in err and "--one-hot" not in err


def test_a_saved_index_is_asked_for_other_rows(model, run):
    run("index", "m.safetensors", "trees.csv", "--out", "index.safetensors")
    asked = ("neighbors", "m.safetensors", "--index", "index.safetensors", "-k", "2")
    refused(run, *asked, words=["index.safetensors", "give the queries, --query DATA."])
    Path("ids.txt").write_text("r0\n")
    refused(run, *asked, "--query", "trees.csv", "--index-ids", "ids.txt", words=["leave --index-ids out"])


FEW = {
    "few": ("--pairs", "a,b,same\n0,2,1\n1,3,1\n0,1,0\n2,5,0\n", "2 similar and 2 dissimilar pairs"),
    "alike": ("--pairs", "a,b,same\n" + "".join(f"{k},{k + 2},1\n" for k in range(30)), "30 similar and 0 dissimilar"),
    "triplets": ("--triplets", "a,b,c\n0,2,1\n1,3,0\n", "there are 2 triplets"),
}


@pytest.mark.parametrize("name", FEW)
def test_pairs_too_few_to_hold_out(trees, run, name):
    option, text, words = FEW[name]
    Path("few.csv").write_text(text)
    given = ("trees.csv", "--drop", "name,kind", option, "few.csv")
    refused(run, "fit", *given, "--out", "new.safetensors", words=["γ cannot be chosen", words, "--gamma"])
    refused(run, "evaluate", *given, "--gamma", "1", words=["nothing can be evaluated", words])
    code, out, err = run("fit", *given, "--gamma", "1", "--out", "new.safetensors")
    assert code == 0 and err.count("\n") == 1 and "nothing was evaluated" in err and words in err
    assert "held out" not in out and "certificate" in out
    code, out, _ = run("fit", *given, "--gamma", "1", "--out", "new.safetensors", "--force", "--json")
    assert code == 0 and json.loads(out)["before"] == {}


@pytest.mark.parametrize(
    ("column", "words"),
    [
        (range(40), "'no' of other.csv counts its rows"),
        (range(1, 41), "'no' of other.csv counts its rows"),
        ([f"{7 * k:05}" for k in range(40)], "'no' of other.csv has codes such as '00000'"),
    ],
)
def test_names_of_rows_that_are_learned_from_are_told(trees, run, column, words):
    changed(no=list(column))
    code, _, err = run("fit", "other.csv", *FIT)
    assert code == 0 and err.count("\n") == 1 and words in err and "--id no or --drop no" in err
    for option in ("--id", "--drop", "--columns"):
        assert run("fit", "other.csv", *FIT, option, "no", "--force")[::2] == (0, "")


@pytest.mark.parametrize("column", [range(5, 45), [3 * k for k in range(40)], [f"{k % 9:02}" for k in range(40)]])
def test_whole_numbers_are_measured_without_a_word(trees, run, column):
    changed(no=list(column))
    assert run("fit", "other.csv", *FIT)[::2] == (0, "")


# -- numbers as names, and names as numbers ------------------------------------------------------------------------


def test_years_in_the_header_are_names(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    lines = [f"{'ab'[k % 2]},{v[0] + k % 2:.3f},{v[1]:.3f},{v[2]:.3f}" for k, v in enumerate(rng.normal(size=(30, 3)))]
    fit = ("fit", "t.csv", "--gamma", "1", "--label", "species", "--force", "--out", "m.safetensors")
    for header in ("species,1990,2000,2010", "species,1987,1990,2015", "1987,1990,2015,species"):
        rows = lines if header.startswith("species") else [",".join(reversed(line.split(","))) for line in lines]
        (tmp_path / "t.csv").write_text("\n".join([header, *rows]) + "\n")
        code, _, err = run(*fit)
        assert code == 0, f"{header}: {err}"
        columns = load("m.safetensors").about["columns"]
        assert columns == [name for name in header.split(",") if name != "species"]


@pytest.mark.parametrize(
    "first", ["setosa,1,2,3.5", "b,1,5,9", "a,3,2,1", "a,1,2,4"], ids=["broken", "its class", "falling", "in range"]
)
def test_a_first_row_of_whole_numbers_is_not_a_header(run, tmp_path, monkeypatch, first):
    monkeypatch.chdir(tmp_path)
    rows = [f"{'ab'[k % 2]},{k % 5},{k % 7},{k % 11}" for k in range(30)]
    (tmp_path / "t.csv").write_text("\n".join([first, *rows]) + "\n")
    code, _, err = run("fit", "t.csv", "--label", first.split(",")[0], "--out", "m.safetensors")
    assert code == 2 and "has no header" in err and "put a letter in front" in err


def test_labels_with_underscores_are_not_numbers(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    rows = [f"{('1_1', '2_1')[k % 2]},{v[0] + k % 2:.3f},{v[1]:.3f}" for k, v in enumerate(rng.normal(size=(30, 2)))]
    (tmp_path / "t.csv").write_text("\n".join(["kind,x,z", *rows]) + "\n")
    code, out, err = run("evaluate", "t.csv", "--gamma", "1", "--label", "kind", "--json")
    assert code == 0, err
    assert [entry["name"] for entry in json.loads(out)["by_class"]] == ["1_1", "2_1"]


def test_rows_of_pairs_with_underscores_are_not_numbers(run, trees):
    Path("pairs.csv").write_text("a,b,same\n1_1,2,1\n3,4,0\n")
    code, _, err = run("fit", "trees.csv", "--drop", "name,kind", "--pairs", "pairs.csv", "--out", "m.safetensors")
    assert code == 2 and "must name rows by number" in err
