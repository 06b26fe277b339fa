"""`mahalo index`, `mahalo export` and `mahalo pairs`: what they write is what the library says."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from csv_tables import table, write_csv
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

import mahalo
from mahalo.pairs import PairClassifier
from mahalo.search import build_index, load_index


@pytest.fixture
def fitted(trees, run):
    code, _, err = run("fit", "trees.csv", "--label", "kind", "--id", "name", "--gamma", "1", "--out", "m.safetensors")
    assert code == 0, err
    write_csv(Path("q.csv"), table(5, seed=1))
    return "m.safetensors"


def numbers(columns):
    return np.column_stack([columns[name] for name in ("width", "height", "depth")])


@pytest.mark.parametrize("backend", ["exact", "faiss", "usearch"])
def test_neighbours_from_an_index(fitted, run, backend):
    code, out, err = run("index", fitted, "trees.csv", "--backend", backend, "--out", "i.safetensors", "--json")
    assert (code, err) == (0, "") and json.loads(out) == {"rows": 40, "backend": backend, "out": "i.safetensors"}
    assert load_index("i.safetensors").ids[0] == table()["name"][0]
    asked = ("neighbors", fitted, "--query", "q.csv", "-k", 3, "--json", "--index")
    from_rows, from_index = (json.loads(run(*asked, source)[1]) for source in ("trees.csv", "i.safetensors"))
    for a, b in zip(from_rows["neighbors"], from_index["neighbors"], strict=True):
        assert a["query"] == b["query"] and a["neighbors"] == b["neighbors"]
        np.testing.assert_allclose(a["distances"], b["distances"], rtol=1e-4)


def test_an_index_of_another_model_is_refused(fitted, run):
    run("index", fitted, "trees.csv", "--out", "i.safetensors")
    run("fit", "trees.csv", "--label", "kind", "--id", "name", "--gamma", "5", "--out", "n.safetensors")
    code, _, err = run("neighbors", "n.safetensors", "--index", "i.safetensors", "--query", "q.csv")
    assert code == 2 and "another model" in err
    code, _, err = run("neighbors", fitted, "--index", "i.safetensors")
    assert code == 2 and "--query" in err


@pytest.mark.parametrize("name", ["g.npy", "g.npz", "g.csv"])
def test_the_exported_matrix_is_the_map(fitted, run, name):
    code, out, err = run("export", fitted, "--out", name)
    assert (code, err) == (0, "") and "multiply all vectors" in out
    G = {
        "g.npy": lambda: np.load(name),
        "g.npz": lambda: np.load(name)["matrix"],
        "g.csv": lambda: np.loadtxt(name, delimiter=",", skiprows=1),
    }[name]()
    X = numbers(table())
    D = mahalo.load(fitted).distances(X)
    np.testing.assert_allclose(np.linalg.norm((X @ G)[:, None] - X @ G, axis=2), D, atol=1e-6)


@pytest.mark.parametrize("side", ["rows", "query"])
def test_a_model_without_a_matrix_says_how_to_get_one(trees, run, side):
    run(
        "fit",
        "trees.csv",
        "--label",
        "kind",
        "--id",
        "name",
        "--kernel",
        "rbf",
        "--gamma",
        "1",
        "--out",
        "r.safetensors",
    )
    code, _, err = run("export", "r.safetensors", "--side", side, "--out", "g.npz")
    assert code == 2 and "r.safetensors" in err and "--kernel linear" in err and "mahalo transform" in err


def test_the_rows_of_the_exported_matrix_are_named(trees, run):
    columns = table()
    write_csv("soil.csv", columns | {"soil": ["ab"[k % 2] for k in range(len(columns["kind"]))]})
    given = ("--label", "kind", "--id", "name", "--one-hot", "soil", "--gamma", "1")
    code, _, err = run("fit", "soil.csv", *given, "--out", "soil.safetensors")
    assert code == 0, err
    code, out, err = run("export", "soil.safetensors", "--out", "g.npz", "--json")
    assert code == 0, err
    exported = np.load("g.npz")
    names = exported["columns"].tolist()
    assert names == json.loads(out)["names"] and len(names) == len(exported["matrix"])
    assert names == ["width", "height", "depth", "soil=a", "soil=b"]


def test_the_exported_query_side_ranks_alike(fitted, run):
    code, _, err = run("export", fitted, "--side", "query", "--out", "m.npy")
    assert (code, err) == (0, "")
    M, X, Q = np.load("m.npy"), numbers(table()), numbers(table(5, seed=1))
    scores = Q @ M @ X.T - 0.5 * np.einsum("ij,ij->i", X @ M, X)
    D = mahalo.load(fitted).distances(Q, X)
    assert np.array_equal(np.argsort(-scores, axis=1), np.argsort(D, axis=1))


def test_pairs_are_learned_saved_and_asked(trees, run):
    Path("ask.csv").write_text("a,b\nr0,r1\nr0,r2\nr5,r5\n")
    learn = ("pairs", "trees.csv", "--label", "kind", "--id", "name", "--gamma", "1")
    code, out, err = run(*learn, "--save", "same.safetensors", "--ask", "ask.csv")
    assert (code, err) == (0, "")
    lines = [line.split(",") for line in out.splitlines()]
    assert lines[0] == ["first", "second", "distance", "probability", "same"] and len(lines) == 4
    assert lines[3][:3] == ["r5", "r5", "0"] and lines[3][4] == "1"
    code, again, err = run("pairs", "trees.csv", "--model", "same.safetensors", "--ask", "ask.csv")
    assert (code, err, again) == (0, "", out)
    classifier = PairClassifier.load("same.safetensors")
    p = classifier.predict_proba(numbers(table()), [[0, 1]])[0, 1]
    assert float(lines[1][3]) == pytest.approx(p, abs=1e-4)
    code, out, _ = run("pairs", "trees.csv", "--model", "same.safetensors", "--ask", "ask.csv", "--json")
    assert code == 0 and json.loads(out)["answers"][0]["first"] == "r0"


def test_pairs_with_nothing_to_do(trees, run):
    code, _, err = run("pairs", "trees.csv", "--label", "kind")
    assert code == 2 and "--save FILE, --ask FILE" in err
    code, _, err = run("pairs", "trees.csv", "--label", "kind", "--model", "x.safetensors")
    assert code == 2 and "--ask FILE" in err


def places(n: int, seed: int) -> np.ndarray:
    """Degrees within a few metres: means of a million times the spread."""
    return np.array([48.1371, 11.5754, 0.0]) + np.random.default_rng(seed).standard_normal((n, 3)) * [1e-5, 1e-5, 1.0]


@pytest.mark.parametrize("asked", [True, False])
def test_neighbours_are_exact_where_a_mean_is_large_against_its_spread(tmp_path, monkeypatch, run, asked):
    monkeypatch.chdir(tmp_path)
    X, Q = places(200, 0), places(50, 1)
    np.savez("x.npz", X=X, kind=(X[:, 0] > 48.1371).astype(int))
    np.save("q.npy", Q)
    code, _, err = run("fit", "x.npz", "--label", "kind", "--gamma", "1", "--out", "m.safetensors")
    assert code == 0, err
    query = ("--query", "q.npy") if asked else ()
    code, out, err = run("neighbors", "m.safetensors", "--index", "x.npz", *query, "-k", 5, "--json")
    assert (code, err) == (0, "")
    found = json.loads(out)["neighbors"]
    D = mahalo.load("m.safetensors").distances(Q if asked else X, X)
    if not asked:
        np.fill_diagonal(D, np.inf)
    nearest = np.argsort(D, axis=1)[:, :5]
    assert [one["neighbors"] for one in found] == nearest.tolist()
    np.testing.assert_allclose(
        [one["distances"] for one in found], np.take_along_axis(D, nearest, axis=1), rtol=1e-6, atol=1e-8
    )


def test_a_row_among_copies_of_it_finds_the_others(tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    X = np.repeat(places(6, 0), 5, axis=0)
    np.savez("x.npz", X=X, kind=np.arange(30) // 15)
    code, _, err = run("fit", "x.npz", "--label", "kind", "--gamma", "1", "--out", "m.safetensors")
    assert code == 0, err
    for k in (1, 2, 4):
        code, out, err = run("neighbors", "m.safetensors", "--index", "x.npz", "-k", k, "--json")
        assert (code, err) == (0, "")
        for row, one in enumerate(json.loads(out)["neighbors"]):
            copies = [other for other in range(row - row % 5, row - row % 5 + 5) if other != row]
            assert one["neighbors"] == copies[:k] and max(one["distances"]) == 0.0


def test_wide_sparse_rows_are_found_and_not_transformed(tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    X = sp.random_array((40, 25_000), density=1e-3, random_state=rng, format="csr")
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)  # all that older writers take
    dump_svmlight_file(X, np.arange(40) % 2, "wide.svm", zero_based=False)
    code, out, err = run("fit", "wide.svm", "--gamma", "1", "--out", "m.safetensors")
    assert code == 0, err
    assert "mahalo transform" not in out and "mahalo neighbors m.safetensors --index wide.svm" in " ".join(out.split())
    code, out, err = run("neighbors", "m.safetensors", "--index", "wide.svm", "-k", 3, "--json")
    assert (code, err) == (0, "")
    D = mahalo.load("m.safetensors").distances(load_svmlight_file("wide.svm")[0])
    np.fill_diagonal(D, np.inf)
    found = json.loads(out)["neighbors"]
    np.testing.assert_allclose([one["distances"] for one in found], np.sort(D, axis=1)[:, :3], rtol=1e-6)


def test_ids_of_an_index_are_said_be_they_text_or_numbers(fitted, run):
    X = numbers(table())
    for ids in (None, np.arange(100, 140), [f"tree {k}" for k in range(40)]):
        built = build_index(mahalo.load(fitted), X, ids=ids)
        built.save("i.safetensors")
        code, out, err = run("neighbors", fitted, "--index", "i.safetensors", "--query", "q.csv", "-k", 2, "--json")
        assert (code, err) == (0, "")
        expected = built.kneighbors(numbers(table(5, seed=1)), 2).ids.tolist()
        assert [one["neighbors"] for one in json.loads(out)["neighbors"]] == expected


def test_searching_says_how_far_it_is(model, run, monkeypatch):
    monkeypatch.setattr("mahalo.workflows.neighbor_search._QUERIES", 10)
    monkeypatch.setattr("mahalo.cli.progress._PATIENCE", 0.0)
    code, _, err = run("neighbors", model, "--index", "trees.csv", "-k", 2)
    assert code == 0 and "searching: part 2 of " in err and "s left" in err


LEARN = ("pairs", "trees.csv", "--label", "kind", "--id", "name", "--gamma", "1")


def test_answers_need_questions(trees, run):
    code, _, err = run(*LEARN, "--save", "same.safetensors", "--out", "answers.csv")
    assert code == 2 and "--out" in err and "--ask FILE" in err
    assert not Path("same.safetensors").exists()


def test_an_output_is_called_by_its_option(trees, run):
    code, _, err = run(*LEARN, "--save", "same.bin")
    assert code == 2 and "--save same.bin" in err and "--out" not in err
    Path("same.safetensors").write_text("precious")
    code, _, err = run(*LEARN, "--save", "same.safetensors")
    assert code == 2 and "another --save" in err


@pytest.mark.parametrize("more", ["grade", "same", "score"])
def test_questions_are_answered_whatever_is_known_of_them(trees, run, more):
    asked = [("r0", "r1", 2), ("r0", "r2", 2), ("r5", "r5", 0), ("r0", "r1", 1), ("r7", "r9", 7)]
    Path("ask.csv").write_text(f"a,b,{more}\n" + "".join(f"{a},{b},{grade}\n" for a, b, grade in asked))
    code, out, err = run(*LEARN, "--ask", "ask.csv", "--json")
    assert (code, err) == (0, "")
    answers = json.loads(out)["answers"]
    assert [(answer["first"], answer["second"]) for answer in answers] == [(a, b) for a, b, _ in asked]


def test_a_model_answers_without_options_of_learning(trees, run):
    Path("ask.csv").write_text("a,b\nr0,r1\n")
    Path("pairs.csv").write_text("a,b,same\nr0,r2,1\nr0,r1,0\n")
    assert run(*LEARN, "--save", "same.safetensors")[0] == 0
    answer = ("pairs", "trees.csv", "--model", "same.safetensors", "--ask", "ask.csv")
    options = {"--label": "kind", "--labels": "y.txt", "--columns": "width", "--drop": "width", "--one-hot": "kind"}
    options |= {"--pairs": "pairs.csv", "--gamma": "2", "--prior": "identity", "--kernel": "linear", "--fpr": "0.1"}
    options |= {"--components": "2", "--holdout": "rows", "--threshold": "f1", "--base-rate": "0.1", "--seed": "0"}
    options |= {"--save": "again.safetensors"}
    for option, value in options.items():
        code, _, err = run(*answer, option, value)
        assert code == 2 and f"leave out {option}." in err
    for option in ("--embeddings", "--no-standardise"):
        code, _, err = run(*answer, option)
        assert code == 2 and f"leave out {option}." in err
    code, _, err = run(*answer, "--threshold", "fpr", "--fpr", "0.1", "--no-standardise")
    assert code == 2 and "leave out --no-standardise, --threshold, --fpr." in err
    code, _, err = run(*answer, "--id", "name", "--encoding", "utf-8", "--out", "answers.csv", "--force")
    assert (code, err) == (0, "")


def test_a_share_of_false_alarms_is_what_the_threshold_is_for(trees, run):
    code, _, err = run(*LEARN, "--save", "same.safetensors", "--fpr", "0.1")
    assert code == 2 and "--threshold fpr" in err
    code, _, err = run(*LEARN, "--save", "same.safetensors", "--fpr", "0.1", "--threshold", "fpr")
    assert (code, err) == (0, "")


@pytest.mark.parametrize("how", [(), ("--embeddings",)])
def test_gamma_settles_what_pairs_are_learned_with(trees, run, monkeypatch, how):
    learned = []

    def fit(self, *args, **more):
        learned.append(self.learner)
        return fitted_by(self, *args, **more)

    fitted_by = PairClassifier.fit
    monkeypatch.setattr(PairClassifier, "fit", fit)
    code, _, err = run(*LEARN[:-1], "0.3", *how, "--save", "same.safetensors")
    assert (code, err) == (0, "")
    [learner] = learned
    assert type(learner) is mahalo.MetricLearner and learner.gamma == 0.3
    assert learner.normalize is bool(how)


@pytest.mark.parametrize("gamma", [(), ("--gamma", "1")])
def test_learning_of_pairs_says_how_far_it_is(trees, run, monkeypatch, gamma):
    monkeypatch.setattr("mahalo.cli.progress._PATIENCE", 0.0)
    monkeypatch.setattr("mahalo.cli.progress._LOG_INTERVAL", 0.0)
    monkeypatch.setattr("mahalo.selection.splits._MAX_REPEATS", 1)
    code, _, err = run(*LEARN[:-2], *gamma, "--save", "same.safetensors", "--log", "pairs.log")
    assert code == 0
    logged = Path("pairs.log").read_text(encoding="utf-8")
    for words in ("relative gap",) if gamma else ("choosing: 2 of", "s left"):
        assert words in err and words in logged


@pytest.mark.parametrize(
    "command", [("fit", "--out", "m.safetensors"), ("evaluate",), ("pairs", "--save", "s.safetensors")]
)
def test_classes_are_held_out_where_there_are_some(trees, run, command):
    pairs = "".join(f"r{a},r{b},{int((a - b) % 2 == 0)}\n" for a in range(20) for b in range(a + 1, 20))
    Path("pairs.csv").write_text(f"a,b,same\n{pairs}")
    known = ("--pairs", "pairs.csv", "--id", "name", "--drop", "kind", "--holdout", "classes")
    for gamma in ((), ("--gamma", "1")):
        code, _, err = run(command[0], "trees.csv", *known, *gamma, *command[1:])
        assert code == 2 and "--holdout classes needs labels" in err


def test_the_exported_graph_is_the_transform(trees, run):
    pytest.importorskip("onnx")
    onnxruntime = pytest.importorskip("onnxruntime")
    columns = table()
    soil = ["ab"[k % 2] for k in range(len(columns["kind"]))]
    write_csv("soil.csv", columns | {"soil": soil})
    given = ("--label", "kind", "--id", "name", "--one-hot", "soil", "--gamma", "1", "--kernel", "rbf")
    code, _, err = run("fit", "soil.csv", *given, "--out", "soil.safetensors")
    assert code == 0, err
    code, out, err = run("export", "soil.safetensors", "--onnx", "--out", "g.onnx", "--json")
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert found["names"] == ["width", "height", "depth", "soil=a", "soil=b"] and found["opset"] == 18
    one_hot = np.array([[s == "a", s == "b"] for s in soil], dtype=np.float64)
    X = np.hstack([numbers(columns), one_hot]).astype(np.float32)
    (answer,) = onnxruntime.InferenceSession("g.onnx").run(None, {"X": X})
    wanted = mahalo.load("soil.safetensors").transform(X.astype(np.float64))
    np.testing.assert_allclose(answer, wanted, rtol=0, atol=1e-5 * np.abs(wanted).max())


def test_export_says_which_options_belong_together(fitted, run):
    code, _, err = run("export", fitted, "--onnx", "--side", "query", "--out", "g.onnx")
    assert code == 2 and "leave --side query out" in err
    code, _, err = run("export", fitted, "--onnx", "--out", "g.npz")
    assert code == 2 and "wanted .onnx" in err
    code, _, err = run("export", fitted, "--out", "g.onnx")
    assert code == 2 and "pass --onnx too" in err
