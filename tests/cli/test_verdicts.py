"""One verdict: `fit`, `evaluate` and the page say the same about the same rows."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from csv_tables import write_csv

GAMMA = ["--gamma", "1"]


def words(page: str) -> str:
    """Return the text of a page without scripts, styles and tags, on one line."""
    page = re.sub(r"<(script|style)\b.*?</\1>", " ", page, flags=re.S)
    return " ".join(re.sub(r"<[^>]+>", " ", page).replace("\N{NO-BREAK SPACE}", " ").split())


def table(seed: int, *, gain: bool, n: int = 120) -> dict[str, list]:
    """Three classes; with `gain` two columns tell them apart beside six that do not, else labels are noise."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(3, size=n)
    X = rng.standard_normal((n, 8))
    X[:, :2] += 4.0 * gain * np.array([[0, 0], [1, 0], [0, 1]])[kind]
    X[:, 2:] = X[:, 2:] @ (np.eye(6) + 1.0)
    return {
        "name": [f"r{i}" for i in range(n)],
        **{f"x{j}": X[:, j].round(4).tolist() for j in range(8)},
        "kind": [f"k{k}" for k in kind],
    }


def said(run, *given) -> tuple[dict, dict, str]:
    """Return the JSON of `evaluate` and of `fit`, and the words of the page."""
    told = []
    for command, more in (("evaluate", []), ("fit", ["--out", "m.safetensors", "--force"])):
        code, out, err = run(command, *given, *more, "--json")
        assert code == 0, err
        told.append(json.loads(out))
    shown = [one for option in ("--pairs",) if option in given for one in (option, given[given.index(option) + 1])]
    code, _, err = run("report", "m.safetensors", "--data", given[0], *shown, "--out", "page.html", "--force")
    assert code == 0, err
    return told[0], told[1], words(Path("page.html").read_text(encoding="utf-8"))


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_all_three_open_with_one_sentence(folder, run):
    write_csv(folder / "t.csv", table(0, gain=True))
    evaluated, fitted, page = said(run, "t.csv", "--label", "kind", "--id", "name", *GAMMA)
    assert evaluated["sentence"] == fitted["sentence"] and fitted["sentence"] in page
    assert evaluated["verdict"] == "better" and "better by 10-NN accuracy" in page
    assert re.search(
        r"\([+−-]0\.\d{3} ± 0\.\d{3}\), on 120 held-out queries against 80 training rows; LDA reaches", page
    )
    for command in ("evaluate", "fit"):
        more = ["--out", "m.safetensors", "--force"] if command == "fit" else []
        _, out, _ = run(command, "t.csv", "--label", "kind", "--id", "name", *GAMMA, *more)
        assert " ".join(out.split()).startswith(evaluated["sentence"]) and "10-NN ties go to nearer rows" in out


def test_fit_says_all_that_evaluate_says(folder, run):
    write_csv(folder / "t.csv", table(1, gain=True))
    evaluated, fitted, _ = said(run, "t.csv", "--label", "kind", "--id", "name", *GAMMA)
    assert evaluated == {name: fitted[name] for name in evaluated}


def test_classes_and_confusions_are_told_to_machines_and_on_the_page(folder, run):
    write_csv(folder / "t.csv", table(2, gain=True))
    evaluated, _, page = said(run, "t.csv", "--label", "kind", "--id", "name", *GAMMA)
    assert sorted(one["name"] for one in evaluated["by_class"]) == ["k0", "k1", "k2"]
    assert sum(one["n_queries"] for one in evaluated["by_class"]) == 120
    for side in ("before", "after"):
        wrong = sum(one[side] for one in evaluated["confusions"])
        assert wrong == pytest.approx(120 * (1 - evaluated[side]["10-NN"]), abs=0.2)
    assert "By class" in page and "Confusions" in page and "Predicted" in page


def test_a_page_from_pairs_does_not_speak_of_classes(folder, run):
    columns = table(3, gain=True)
    kind = np.array(columns.pop("kind"))
    write_csv(folder / "t.csv", columns)
    pairs = np.random.default_rng(0).permuted(np.tile(np.arange(120), (400, 1)), axis=1)[:, :2]
    same = (kind[pairs[:, 0]] == kind[pairs[:, 1]]).astype(int)
    write_csv(folder / "p.csv", {"a": pairs[:, 0].tolist(), "b": pairs[:, 1].tolist(), "same": same.tolist()})
    evaluated, fitted, page = said(run, "t.csv", "--pairs", "p.csv", "--drop", "name", *GAMMA)
    assert evaluated["sentence"] == fitted["sentence"] and fitted["sentence"] in page
    assert not re.search(r"\bclass(es)?\b", page)
    assert re.search(r"on \d+ held-out pairs of \d+ rows", page) and "The pairs are of held-out rows" in page
    assert "each pair counted in every fold that holds it out" in page
    assert f"closer than a dissimilar one with probability {evaluated['after']['pair AUC']:.3f}" in page


def test_noise_is_rarely_called_a_gain_by_the_command(folder, run):
    """One verdict in twenty is wrong by construction; of three at most one, then."""
    verdicts = []
    for seed in range(3):
        write_csv(folder / "t.csv", table(seed, gain=False))
        code, out, err = run("evaluate", "t.csv", "--label", "kind", "--id", "name", "--json")
        assert code == 0, err
        verdicts.append(json.loads(out)["verdict"])
    assert verdicts.count("better") <= 1
