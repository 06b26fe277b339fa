"""A report from a model file and the table it was fitted on tells what one from the learner tells."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path

import numpy as np
import pytest
from csv_tables import write_csv
from sklearn.datasets import load_wine

import mahalo
from mahalo import MetricLearner
from mahalo.explain import Provenance

WRONG = {3: "c1", 20: "c2", 70: "c2", 100: "c0", 150: "c0", 160: "c1"}


def wine(wrong=WRONG) -> dict[str, list]:
    """Some labels are wrong."""
    X, y = load_wine(return_X_y=True)
    kinds = [wrong.get(i, f"c{k}") for i, k in enumerate(y)]
    return {"bottle": [f"b{i}" for i in range(178)], **{f"f{j}": X[:, j].tolist() for j in range(13)}, "kind": kinds}


def rows_of(page: str, table: str) -> list[list[str]]:
    """The cells of a table of the page, as they read."""
    page = page.replace("\N{NO-BREAK SPACE}", " ")
    body = re.search(rf'id="{table}".*?<tbody>(.*?)</tbody>', page, re.S)[1]
    rows = re.findall(r"<tr>(.*?)</tr>", body, re.S)
    return [[re.sub(r"<[^>]+>", "", c).strip() for c in re.findall(r"<td.*?>(.*?)</td>", row, re.S)] for row in rows]


@pytest.fixture
def fitted(tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    write_csv(tmp_path / "wine.csv", wine())
    code, _, err = run(
        "fit", "wine.csv", *["--label", "kind", "--id", "bottle", "--gamma", "1", "--out", "m.safetensors"]
    )
    assert code == 0, err
    return tmp_path / "m.safetensors"


@pytest.fixture
def page_of(run):
    def of(*arguments) -> str:
        code, _, err = run("report", *arguments, "--out", "page.html", "--force")
        assert (code, err) == (0, "")
        return Path("page.html").read_text(encoding="utf-8")

    return of


def test_wrong_labels_are_found_from_the_file(fitted, page_of):
    page = page_of(fitted, "--data", "wine.csv")
    assert "judged at the fit" in page and "metrics learned without this label" in page
    first = [row[0] for row in rows_of(page, "doubtful-rows")[:8]]
    assert len(set(first) & {f"b{i}" for i in WRONG}) >= 5
    assert 'class="missing"' not in page


def test_constraints_that_shaped_it_are_those_of_the_learner(fitted, page_of):
    from sklearn.preprocessing import StandardScaler

    shown = rows_of(page_of(fitted, "--data", "wine.csv"), "constraints-table")
    columns = wine()
    X = StandardScaler().fit_transform(np.column_stack([columns[f"f{j}"] for j in range(13)]))
    learner = MetricLearner(gamma=1.0, pairs_per_class=None, random_state=0).fit(X, columns["kind"])
    expected = learner.influential(50, index=columns["bottle"])
    assert [row[:2] for row in shown] == [
        [kind, " – ".join(names)] for kind, names in zip(expected["kind"], expected["names"], strict=True)
    ]


def test_notes_are_about_the_rows_and_labels_of_the_fit_alone(fitted, page_of):
    columns = wine()
    write_csv(Path("other.csv"), columns | {"f0": [v + 1 for v in columns["f0"]]})
    other = page_of(fitted, "--data", "other.csv")
    assert "these rows are others" in other and "judged at the fit" not in other
    write_csv(Path("mended.csv"), wine({}))
    mended = page_of(fitted, "--data", "mended.csv")
    assert "judged at the fit" not in mended and "so fewer stand out" in mended
    as_fitted = page_of(fitted, "--data", "wine.csv")
    assert [r[:2] for r in rows_of(mended, "constraints-table")] == [
        r[:2] for r in rows_of(as_fitted, "constraints-table")
    ]


def test_a_file_without_notes_is_still_told_about(fitted, page_of):
    metric = mahalo.load(fitted)
    dataclasses.replace(Provenance.of(metric), notes=None).attach(metric).save("old.safetensors")
    page = page_of("old.safetensors", "--data", "wine.csv")
    assert "Not shown: the file holds no multipliers" in page and "so fewer stand out" in page


def test_pairs_that_were_learned_from_need_not_be_given_again(fitted, run, page_of):
    kinds = wine({})["kind"]
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 178, (2, 300))
    a, b = a[a != b], b[a != b]
    same = [int(kinds[i] == kinds[j]) for i, j in zip(a, b, strict=True)]
    same[:5] = [1 - s for s in same[:5]]
    write_csv(Path("pairs.csv"), {"a": [f"b{i}" for i in a], "b": [f"b{j}" for j in b], "same": same})
    options = ["--pairs", "pairs.csv", "--id", "bottle", "--drop", "kind", "--gamma", "1", "--out", "p.safetensors"]
    code, _, err = run("fit", "wine.csv", *options)
    assert code == 0, err
    page = page_of("p.safetensors", "--data", "wine.csv")
    first = [row[0] for row in rows_of(page, "doubtful-pairs")[:20]]
    assert len(set(first) & {f"b{i} – b{j}" for i, j in zip(a[:5], b[:5], strict=True)}) >= 3
    assert rows_of(page, "constraints-table")
    labelled = page_of("p.safetensors", "--data", "wine.csv", "--label", "kind")
    assert rows_of(labelled, "constraints-table") and "so fewer stand out" not in labelled


@pytest.mark.parametrize("notes", [3, {"constraints": []}, {"constraints": {"count": -1}}])
def test_damaged_notes_are_one_line(fitted, run, notes):
    metric = mahalo.load(fitted)
    about = metric.about | {"provenance": metric.about["provenance"] | {"notes": notes}}
    dataclasses.replace(metric, about=about).save("bad.safetensors")
    code, out, err = run("report", "bad.safetensors", "--data", "wine.csv", "--out", "page.html")
    assert (code, out, err.count("\n")) == (2, "", 1) and "damaged" in err and "fit it again" in err
    assert not Path("page.html").exists()


def test_the_file_stays_small_and_plain(fitted):
    assert fitted.stat().st_size < 60_000
    assert json.loads(json.dumps(mahalo.load(fitted).about, allow_nan=False))


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_columns_have_the_units_of_the_fit_where_labels_of_other_rows_are_doubted(fitted, run, page_of, kernel):
    """A column of large noise: as it comes it decides alone who is near whom."""
    columns = wine({}) | {"noise": (1e6 * np.random.default_rng(0).standard_normal(178)).tolist()}
    known, new = ({name: values[k::2] for name, values in columns.items()} for k in (0, 1))
    wrong = {5: "c2", 30: "c0", 50: "c0", 80: "c1"}
    new["kind"] = [wrong.get(i, kind) for i, kind in enumerate(new["kind"])]
    write_csv(Path("known.csv"), known)
    write_csv(Path("new.csv"), new)
    options = ["--label", "kind", "--id", "bottle", "--gamma", "1", "--out", "k.safetensors", "--kernel"]
    code, _, err = run("fit", "known.csv", *options, kernel)
    assert code == 0, err
    first = [row[0] for row in rows_of(page_of("k.safetensors", "--data", "new.csv"), "doubtful-rows")[:4]]
    assert set(first) == {f"b{2 * i + 1}" for i in wrong}
