"""From a table on disk to neighbours: what commands write is what the library says of the same rows."""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from csv_tables import table, write_csv
from pyarrow import csv, parquet
from sklearn.datasets import dump_svmlight_file
from sklearn.preprocessing import StandardScaler

import mahalo
from mahalo import MetricLearner
from mahalo.explain import Provenance
from mahalo.pairs import PairClassifier
from mahalo.selection import splits

COLUMNS = ("--columns", "width,height,depth")
FIT = ("--label", "kind", "--drop", "name", "--gamma", "1", "--out", "m.safetensors", "--force")


def numbers(columns=None) -> np.ndarray:
    columns = columns or table()
    return np.column_stack([columns[name] for name in ("width", "height", "depth")])


def of_the_library() -> np.ndarray:
    """Distances as the library learns them from standardised columns."""
    Z = StandardScaler().fit_transform(numbers())
    learner = MetricLearner(gamma=1.0, pairs_per_class=None, random_state=0).fit(Z, table()["kind"])
    return learner.metric_.distances(Z)


def distances(X: np.ndarray) -> np.ndarray:
    return np.linalg.norm(X[:, None] - X, axis=2)


def test_rows_are_measured_as_they_come(trees, run):
    code, out, err = run("fit", "trees.csv", *FIT)
    assert (code, err) == (0, "")
    metric = mahalo.load("m.safetensors")
    np.testing.assert_allclose(metric.distances(numbers()), of_the_library(), atol=1e-6)
    assert metric.about["columns"] == ["width", "height", "depth"] and metric.about["label"] == "kind"
    for words in ("40 rows", "standardised", "before", "after", "±", "relative gap", "converged", "mahalo transform"):
        assert words in out
    assert max(map(len, out.splitlines())) <= 80


@pytest.mark.parametrize("name", ["new.csv", "new.tsv", "new.parquet", "new.npy", "new.npz"])
def test_transformed_rows_have_the_learned_distance(model, run, name):
    shuffled = {key: table()[key] for key in ("kind", "depth", "width", "name", "height")}
    write_csv(Path("other.csv"), shuffled | {"more": list(range(40))})
    code, out, err = run("transform", model, "other.csv", "--out", name)
    assert (code, err) == (0, "") and name in out
    if name.endswith((".csv", ".tsv", ".parquet")):
        options = csv.ParseOptions(delimiter="\t" if name.endswith("tsv") else ",")
        new = parquet.read_table(name) if name.endswith("parquet") else csv.read_csv(name, parse_options=options)
        assert new.column_names == ["kind", "name", "more", "mahalo0", "mahalo1", "mahalo2"]
        assert new["name"].to_pylist() == table()["name"]
        T = np.column_stack([new[f"mahalo{k}"] for k in range(3)])
    else:
        loaded = np.load(name)
        T = loaded if name.endswith("npy") else loaded["X"]
    np.testing.assert_allclose(distances(T), of_the_library(), atol=1e-5)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_neighbours_are_the_nearest(trees, run, kernel):
    code, _, err = run("fit", "trees.csv", "--label", "kind", "--id", "name", *FIT[4:], "--kernel", kernel)
    assert code == 0, err
    write_csv(Path("q.csv"), table(5, seed=1))
    code, out, err = run("neighbors", "m.safetensors", "--index", "trees.csv", "--query", "q.csv", "-k", 3)
    assert (code, err) == (0, "")
    lines = [line.split(",") for line in out.splitlines()]
    assert lines[0] == ["query", "rank", "neighbor", "distance"] and len(lines) == 16
    D = mahalo.load("m.safetensors").distances(numbers(table(5, seed=1)), numbers())
    nearest = np.argsort(D, axis=1, kind="stable")[:, :3]
    assert [line[2] for line in lines[1:]] == [f"r{k}" for k in nearest.ravel()]
    np.testing.assert_allclose(
        [float(line[3]) for line in lines[1:]], np.take_along_axis(D, nearest, axis=1).ravel(), rtol=1e-4
    )


def test_more_neighbours_than_rows_are_asked_for_aloud(trees, model, run):
    code, out, err = run("neighbors", model, "--index", "trees.csv", "--query", "trees.csv", "-k", 500, "--json")
    n = len(json.loads(out)["neighbors"])
    assert code == 0 and f"there are {n} rows to find, fewer than -k 500" in err
    code, _, err = run("neighbors", model, "--index", "trees.csv", "--query", "trees.csv", "-k", n, "--json")
    assert code == 0 and "rows to find" not in err


def test_rows_are_not_their_own_neighbours(model, run):
    code, out, _ = run("neighbors", model, "--index", "trees.csv", "-k", 39, "--json")
    found = json.loads(out)["neighbors"]
    assert code == 0 and len(found) == 40
    for one in found:
        assert one["query"] not in one["neighbors"] and len(one["neighbors"]) == 39
        assert one["distances"] == sorted(one["distances"])


@pytest.mark.parametrize("name", ["nn.csv", "nn.parquet", "nn.npz"])
def test_neighbours_in_a_file(model, run, name):
    code, out, err = run("neighbors", model, "--index", "trees.csv", "-k", 2, "--out", name, "--json")
    assert (code, err) == (0, "") and json.loads(out) == {"queries": 40, "k": 2, "out": name}
    read = {".csv": csv.read_csv, ".parquet": parquet.read_table, ".npz": np.load}[Path(name).suffix]
    assert len(read(name)["distance"]) == 80


def test_choosing_says_what_it_chose_and_by_how_many_rows(trees, run, monkeypatch):
    monkeypatch.setattr(splits, "_MAX_ROWS", 24)
    code, out, _ = run("fit", "trees.csv", "--label", "kind", "--id", "name", "--out", "m.safetensors", "--json")
    told = json.loads(out)
    assert code == 0 and told["rows_to_choose_by"] == 24 and told["candidates"] == 51
    assert told["certificate"]["converged"] and told["out"] == "m.safetensors"
    assert set(told["before"]) == set(told["interval"]) == {"10-NN", "P@1", "P@10", "MAP", "AUC"}
    made = Provenance.of(mahalo.load("m.safetensors"))
    assert dataclasses.asdict(made.data.fingerprint) == told["fingerprint"]
    assert dataclasses.asdict(made.fit.certificate) == told["certificate"] and made.data.n_chosen_by == 24
    assert (made.data.source, made.data.n_rows, made.data.n_classes) == ("trees.csv", told["rows"], told["classes"])
    assert made.choice.chosen.score == told["score"] and len(made.choice.candidates) == told["candidates"]
    assert made.evaluation.before == told["before"] and made.evaluation.after == told["after"]
    code, out, _ = run("evaluate", "trees.csv", "--label", "kind", "--id", "name")
    assert code == 0 and "a sample of 24 of 40 rows" in out
    assert max(map(len, out.splitlines())) <= 80


def test_evaluating_writes_nothing(trees, run):
    code, out, _ = run("evaluate", "trees.csv", "--label", "kind", "--drop", "name", "--gamma", "1", "--json")
    assert code == 0 and json.loads(out)["after"]["10-NN"] > 0.8
    assert sorted(os.listdir()) == ["trees.csv"]


@pytest.mark.parametrize("how", ["folder", "glob", "files"])
def test_shards_are_read_in_the_order_of_their_numbers(trees, run, how):
    os.mkdir("shards")
    X, kind = numbers(), np.array(table()["kind"])
    for k in range(20):
        np.save(f"shards/part-{k}.npy", X[2 * k : 2 * k + 2])
    np.save("kind.npy", kind)
    data = {"folder": ["shards"], "glob": ["shards/*.npy"], "files": [f"shards/part-{k}.npy" for k in range(20)]}[how]
    code, _, err = run("fit", *data, "--labels", "kind.npy", *FIT[4:])
    assert (code, err) == (0, "")
    np.testing.assert_allclose(mahalo.load("m.safetensors").distances(X), of_the_library(), atol=1e-6)


def test_shards_of_tables_may_have_another_order_of_columns(trees, run):
    os.mkdir("shards")
    halves = [{key: values[:20] for key, values in table().items()}, {k: v[20:] for k, v in table().items()}]
    write_csv(Path("shards/a.csv"), halves[0])
    write_csv(Path("shards/b.csv"), dict(reversed(halves[1].items())))
    code, _, err = run("fit", "shards", *FIT)
    assert (code, err) == (0, "")
    np.testing.assert_allclose(mahalo.load("m.safetensors").distances(numbers()), of_the_library(), atol=1e-6)


def test_svmlight_brings_its_labels(trees, run):
    X = np.random.default_rng(0).standard_normal((30, 6)) * (np.arange(6) < 4)
    y = np.arange(30) % 2
    X[:, 0] += 3 * y
    dump_svmlight_file(X, y, "x.svm", zero_based=True)
    code, out, err = run("fit", "x.svm", "--gamma", "1", "--out", "m.safetensors")
    assert (code, err) == (0, "") and "standardised" not in out
    code, _, err = run("transform", "m.safetensors", "x.svm", "--out", "new.npy")
    assert (code, err) == (0, "")
    np.testing.assert_allclose(np.load("new.npy"), mahalo.load("m.safetensors").transform(X[:, :4]), atol=1e-10)


@pytest.mark.parametrize("by", ["id", "ids", "number", "array"])
def test_pairs_by_name_or_number(trees, run, by):
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 40, (2, 120))
    a, b = a[a != b], b[a != b]
    same = (a % 2 == b % 2).astype(int)
    named = [np.array(table()["name"])[ends] if by in ("id", "ids") else ends for ends in (a, b)]
    write_csv(Path("pairs.csv"), {"left": named[0].tolist(), "right": named[1].tolist(), "same": same.tolist()})
    np.save("pairs.npy", np.column_stack([a, b, same]))
    Path("names.txt").write_text("\n".join(table()["name"]))
    ids = {"id": ("--id", "name"), "ids": ("--ids", "names.txt", "--drop", "name")}.get(by, ("--drop", "name"))
    file = "pairs.npy" if by == "array" else "pairs.csv"
    code, out, err = run("fit", "trees.csv", "--pairs", file, *ids, *COLUMNS, "--gamma", "1", "--out", "m.safetensors")
    assert (code, err) == (0, "") and "AUC of similar against dissimilar pairs" in out
    Z = StandardScaler().fit_transform(numbers())
    constraints = mahalo.Constraints.from_pairs(np.column_stack([a, b]), same=same)
    expected = MetricLearner(gamma=1.0, pairs_per_class=None, random_state=0).fit(Z, constraints=constraints)
    got = mahalo.load("m.safetensors").distances(numbers())
    np.testing.assert_allclose(got, expected.metric_.distances(Z), atol=1e-6)


def test_grades_and_triplets(trees, run):
    rows = [(q, d, 2 if (q - d) % 2 == 0 else 0) for q in range(0, 20) for d in range(20, 40, 3)]
    query, document, grade = map(list, zip(*rows, strict=True))
    write_csv(Path("graded.csv"), {"query": query, "document": document, "grade": grade})
    write_csv(Path("triplets.csv"), {"a": [0, 1, 2], "b": [2, 3, 4], "c": [1, 2, 5]})
    known = ("--pairs", "graded.csv", "--triplets", "triplets.csv")
    code, out, err = run("evaluate", "trees.csv", *known, *COLUMNS, "--gamma", "1", "--json")
    assert (code, err) == (0, "")
    assert json.loads(out)["constraints"] > len(rows)


def test_categories_on_request(trees, run):
    write_csv(Path("other.csv"), table() | {"colour": ["red", "blue"] * 20, "on": [True, False] * 20})
    code, _, err = run("fit", "other.csv", *FIT, "--one-hot", "colour")
    assert (code, err) == (0, "")
    about = mahalo.load("m.safetensors").about
    assert about["columns"] == ["width", "height", "depth", "colour", "on"]
    assert about["one_hot"] == {"colour": ["blue", "red"]}
    code, _, err = run("transform", "m.safetensors", "other.csv", "--out", "new.npy")
    assert (code, err) == (0, "") and np.load("new.npy").shape == (40, 6)


def test_embeddings_keep_their_scale_and_the_name_of_their_encoder(trees, run):
    rng = np.random.default_rng(0)
    y = np.arange(120) % 6
    E = (np.eye(6)[y] @ rng.standard_normal((6, 20)) + 0.8 * rng.standard_normal((120, 20))).astype(np.float32)
    np.savez("e.npz", X=E, kind=y)
    arguments = ("fit", "e.npz", "--label", "kind", "--embeddings", "--encoder", "small-v1", "--out", "m.safetensors")
    code, out, _ = run(*arguments)
    assert code == 0 and "precision at 1" in out and "standardised" not in out
    assert "within" in out and "Within" not in out
    metric = mahalo.load("m.safetensors")
    assert metric.about["encoder"] == "small-v1" and metric.scaling is None and metric.normalize
    code, _, err = run("transform", "m.safetensors", "e.npz", "--out", "new.npy")
    assert code == 0 and np.load("new.npy").dtype == np.float32, err
    np.testing.assert_allclose(np.linalg.norm(np.load("new.npy"), axis=1), 1, atol=1e-5)


def test_a_fit_that_did_not_converge_is_written_and_said(trees, run, monkeypatch):
    from mahalo.workflows import estimation

    made = estimation.make_estimator
    monkeypatch.setattr(estimation, "make_estimator", lambda *args: made(*args).set_params(max_iter=1))
    code, out, err = run("fit", "trees.csv", *FIT)
    assert code == 1 and "NOT converged" in out and "gap" in err
    assert Provenance.of(mahalo.load("m.safetensors")).fit.certificate.converged is False


def test_report_is_written(model, run):
    code, out, err = run("report", model, "--data", "trees.csv")
    assert (code, err) == (0, "") and "report.html" in out
    page = Path("report.html").read_text(encoding="utf-8")
    assert "width" in page and "oak" in page and "r7" in page


def test_log_and_progress(trees, run, monkeypatch):
    monkeypatch.setattr("mahalo.cli.progress._PATIENCE", 0.0)
    monkeypatch.setattr("mahalo.cli.progress._LOG_INTERVAL", 0.0)
    code, out, err = run("fit", "trees.csv", *FIT[:4], *FIT[6:], "--log", "fit.log")
    assert code == 0 and "choosing" not in out
    logged = Path("fit.log").read_text(encoding="utf-8")
    for words in ("reading: trees.csv", "choosing: 2 of", "s left", "evaluating: ", "learning: "):
        assert words in err and words in logged
    assert all(len(line) <= 80 for line in err.splitlines())


def test_without_pyarrow_tables_say_what_to_install(trees, run, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    code, out, err = run("fit", "trees.csv", *FIT)
    assert (code, out) == (1, "") and 'pip install "mahalo[tables]"' in err and err.count("\n") == 1


def test_the_table_may_be_large_numbers_of_any_kind(trees, run):
    columns = pa.table({"a": pa.array([1, 2, 3, 4] * 5, pa.int8()), "b": pa.array(np.arange(20), pa.float32())})
    parquet.write_table(columns.append_column("kind", pa.array(["x", "y"] * 10).dictionary_encode()), "t.parquet")
    code, _, err = run("fit", "t.parquet", "--label", "kind", "--gamma", "1", "--out", "m.safetensors")
    assert (code, err) == (0, "")


def test_a_report_tells_rows_of_the_fit_from_as_many_others(model, run):
    write_csv(Path("other.csv"), table(seed=1))
    for name, noted in (("trees.csv", True), ("other.csv", False)):
        code, _, err = run("report", model, "--data", name, "--out", "page.html", "--force")
        assert (code, err) == (0, "")
        assert ("As stored with the metric at its fit" in Path("page.html").read_text(encoding="utf-8")) == noted


@pytest.mark.parametrize("zero_based", [True, False])
def test_svmlight_columns_stay_where_they_are(trees, run, zero_based):
    """Shards and queries that lack the first feature count as the whole of the fit does."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 4))
    y = np.arange(30) % 2
    X[:, 0] += 3 * y
    X[15:, 0] = 0
    os.mkdir("shards")
    for k, part in enumerate((slice(0, 15), slice(15, 30))):
        dump_svmlight_file(X[part], y[part], f"shards/{k}.svm", zero_based=zero_based)
    code, out, err = run("fit", "shards", "--gamma", "1", "--out", "m.safetensors", "--json")
    assert (code, err) == (0, "") and json.loads(out)["columns"] == 4
    for name in ("shards", "shards/1.svm"):
        code, _, err = run("transform", "m.safetensors", name, "--out", "new.npy", "--force")
        assert (code, err) == (0, "")
        rows = X if name == "shards" else X[15:]
        np.testing.assert_allclose(np.load("new.npy"), mahalo.load("m.safetensors").transform(rows), atol=1e-10)


def test_labels_that_look_missing_are_classes(trees, run):
    write_csv(Path("other.csv"), table() | {"kind": ["NA", "null"] * 15 + [""] * 10})
    code, out, err = run("evaluate", "other.csv", "--label", "kind", "--drop", "name", "--gamma", "1", "--json")
    assert (code, err) == (0, "")
    assert (json.loads(out)["classes"], json.loads(out)["unlabelled"]) == (2, 10)
    code, out, _ = run("evaluate", "other.csv", "--label", "kind", "--drop", "name", "--gamma", "1")
    assert "10 rows without a label" in out


def test_numbers_that_look_missing_are_classes_too(trees, run):
    Path("other.csv").write_text("a,kind\n" + "".join(f"{k / 2},{('1', '2', 'NA')[k % 3]}\n" for k in range(30)))
    code, out, err = run("evaluate", "other.csv", "--label", "kind", "--gamma", "1", "--json")
    assert (code, err) == (0, "")
    assert (json.loads(out)["classes"], json.loads(out)["unlabelled"]) == (3, 0)


def test_minus_one_is_a_class_of_svmlight(trees, run):
    X, y = numbers(), np.where(np.arange(40) % 2, 1, -1)
    dump_svmlight_file(X, y, "x.svm", zero_based=True)
    code, out, err = run("evaluate", "x.svm", "--gamma", "1", "--json")
    assert (code, err) == (0, "")
    assert (json.loads(out)["classes"], json.loads(out)["unlabelled"]) == (2, 0)


def test_options_that_name_columns_may_be_given_again(trees, run):
    write_csv(Path("other.csv"), table() | {"a,b": ["x", "y"] * 20, "town": ["Ulm", "Bonn"] * 20, "c": [1.0] * 40})
    again = ("--drop", "name,c", "--drop", "height", "--one-hot", "a,b", "--one-hot", "town")
    code, _, err = run("fit", "other.csv", *FIT[:2], *again, *FIT[4:])
    assert (code, err) == (0, "")
    about = mahalo.load("m.safetensors").about
    assert about["columns"] == ["width", "depth", "a,b", "town"] and set(about["one_hot"]) == {"a,b", "town"}
    code, _, err = run("fit", "other.csv", *FIT[:2], "--columns", "width", "--columns", "depth", *FIT[4:])
    assert (code, err) == (0, "")
    assert mahalo.load("m.safetensors").about["columns"] == ["width", "depth"]


@pytest.mark.parametrize("kind", ["csv", "txt"])
def test_ids_are_text(trees, run, kind):
    """001 is 001, in a table, in a file of names, and in pairs."""
    names = [f"{k:03d}" for k in range(40)]
    columns = table() | {"name": names} if kind == "csv" else {key: table()[key] for key in ("width", "depth")}
    write_csv(Path("other.csv"), columns)
    Path("names.txt").write_text("\n".join(names))
    Path("pairs.csv").write_text(
        "left,right,same\n" + "".join(f"{k:03d},{(k + d) % 40:03d},{d - 1}\n" for k in range(40) for d in (1, 2))
    )
    ids = ("--id", "name", *COLUMNS) if kind == "csv" else ("--ids", "names.txt")
    code, out, err = run("fit", "other.csv", "--pairs", "pairs.csv", *ids, *FIT[4:], "--json")
    assert code == 0 and json.loads(out)["constraints"] == 80, err
    if kind == "csv":
        code, out, err = run("neighbors", "m.safetensors", "--index", "other.csv", "-k", 1)
        assert (code, err) == (0, "") and out.splitlines()[1].startswith("000,1,0")


def test_arrays_bring_labels_and_ids_to_every_command(trees, run):
    np.savez("x.npz", X=numbers(), kind=np.array(table()["kind"]), name=np.array(table()["name"]))
    code, _, err = run("fit", "x.npz", "--label", "kind", "--id", "name", *FIT[4:])
    assert (code, err) == (0, "")
    code, _, err = run("report", "m.safetensors", "--data", "x.npz")
    assert (code, err) == (0, "")
    page = Path("report.html").read_text(encoding="utf-8")
    assert "oak" in page and "r7" in page
    code, out, err = run("neighbors", "m.safetensors", "--index", "x.npz", "-k", 1)
    assert (code, err) == (0, "") and out.splitlines()[1].startswith("r0,1,r")


def test_columns_that_are_not_measured_are_passed_on_as_they_are_written(model, run):
    other = table() | {
        "zip": [f"{k:05d}" for k in range(40)],
        "serial": [str(12345678901234567890 + k) for k in range(40)],
    }
    Path("other.csv").write_text(
        "\n".join(",".join(map(str, row)) for row in [list(other), *zip(*other.values(), strict=True)]) + "\n"
    )
    code, _, err = run("transform", model, "other.csv", "--out", "new.csv")
    assert (code, err) == (0, "")
    new = csv.read_csv("new.csv", convert_options=csv.ConvertOptions(column_types=dict.fromkeys(other, pa.string())))
    for name in ("name", "kind", "zip", "serial"):
        assert new[name].to_pylist() == other[name]
    code, out, err = run("neighbors", model, "--index", "other.csv", "--id", "zip", "-k", 1)
    assert (code, err) == (0, "") and out.splitlines()[1].startswith("00000,1,0")


def test_svmlight_columns_stay_where_they_are_for_pairs_too(trees, run):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((40, 4)), np.arange(40) % 2
    X[:, 1] += 3 * y
    dump_svmlight_file(X, y, "x.svm", zero_based=True)
    X[:, 0] = 0
    dump_svmlight_file(X, y, "q.svm", zero_based=True)
    Path("ask.csv").write_text("a,b\n0,1\n2,4\n")
    code, _, err = run("pairs", "x.svm", "--gamma", "1", "--save", "same.safetensors")
    assert code == 0, err
    code, out, err = run("pairs", "q.svm", "--model", "same.safetensors", "--ask", "ask.csv", "--json")
    assert (code, err) == (0, "")
    expected = PairClassifier.load("same.safetensors").distances(X, [[0, 1], [2, 4]])
    np.testing.assert_allclose([answer["distance"] for answer in json.loads(out)["answers"]], expected, rtol=1e-9)


@pytest.mark.parametrize("kind", ["column", "csv", "txt", "npy"])
def test_minus_one_among_numbers_is_no_class(trees, run, kind):
    y = [1, 2, -1, 2] * 10
    write_csv(Path("other.csv"), {"width": table()["width"]} | ({"label": y} if kind == "column" else {}))
    write_csv(Path("y.csv"), {"label": y})
    Path("y.txt").write_text("\n".join(map(str, y)))
    np.save("y.npy", y)
    given = ("--label", "label") if kind == "column" else ("--labels", f"y.{kind}")
    code, out, err = run("evaluate", "other.csv", *given, "--gamma", "1", "--json")
    assert (code, err) == (0, "")
    assert (json.loads(out)["classes"], json.loads(out)["unlabelled"]) == (2, 10)


def test_a_mark_of_byte_order_is_no_part_of_the_first_line(trees, run):
    Path("y.txt").write_text("\n".join(table()["kind"]), encoding="utf-8-sig")
    Path("names.txt").write_text("\n".join(table()["name"]), encoding="utf-8-sig")
    known = ("--labels", "y.txt", "--ids", "names.txt", *COLUMNS)
    code, out, err = run("fit", "trees.csv", *known, *FIT[4:], "--json")
    assert code == 0 and json.loads(out)["classes"] == 2, err
    code, out, err = run("neighbors", "m.safetensors", "--index", "trees.csv", "--index-ids", "names.txt", "-k", 1)
    assert (code, err) == (0, "") and out.splitlines()[1].startswith("r0,1,")
