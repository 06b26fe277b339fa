"""Tables of the studio: what is learned from, what is shown, and that exported models fit the table."""

from __future__ import annotations

import csv
import dataclasses

import numpy as np
import pytest
from people import planted, reply

import mahalo
from mahalo.explain import Provenance
from mahalo.studio.export import RowNames, export_answers
from mahalo.studio.loading import load_studio
from mahalo.tables.options import RowOptions

pytest.importorskip("pyarrow", reason="tables need pyarrow: pip install 'mahalo[tables]'")


@pytest.fixture
def table(tmp_path):
    X, y = planted(80, n_features=4)
    X[:, 3] *= 1000.0
    path = tmp_path / "rows.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["name", "kind", "a", "b", "c", "d", "note"])
        for k, (x, c) in enumerate(zip(X, y, strict=True)):
            writer.writerow([f"row {k}", "" if k == 3 else f"class {c}", *x, "<b>note</b>"])
    return path, X, y


def test_columns_are_scaled_and_the_exported_metric_is_of_the_table(table, tmp_path):
    path, X, y = table
    options = RowOptions(data=[str(path)], label="kind", id="name", drop=["note"])
    loaded = load_studio(options, log=tmp_path / "log.jsonl", annotator="ann")
    session, items = loaded.session, loaded.table.items
    np.testing.assert_allclose(session.X.std(axis=0), 1.0)
    assert list(items.columns) == ["a", "b", "c", "d", "note"] and items.labels[3] == "" and items.id_of(2) == "row 2"
    assert loaded.table.names == ("a", "b", "c", "d") and loaded.table.encode is None
    for _ in range(12):
        question = session.question()
        session.answer(question, reply(question, y))
    rows = RowNames(items.ids, loaded.table.names, None, "rows.csv")
    folder = tmp_path / "home"
    export_answers(folder, session.X, session.answers(), session.final(), rows, loaded.table.finish)
    metric = mahalo.load(folder / "metric.safetensors")
    expected = session.final().metric.distances(session.X[:5], session.X)
    np.testing.assert_allclose(metric.distances(X[:5], X), expected, rtol=1e-5, atol=1e-6)
    again = load_studio(options, log=tmp_path / "log.jsonl", model=folder / "metric.safetensors")
    np.testing.assert_allclose(
        again.session.learning.ordinary.distances(session.X[:5], session.X), expected, rtol=1e-5, atol=1e-6
    )


def test_missing_numbers_are_filled_and_the_exported_metric_fills_them(table, tmp_path):
    path, X, y = table
    path.write_text(path.read_text().replace(f"class {y[7]},{X[7, 0]}", f"class {y[7]},"))
    options = RowOptions(data=[str(path)], label="kind", id="name", drop=["note"], impute="median")
    loaded = load_studio(options, log=None)
    constraints = mahalo.Constraints.from_pairs([[0, 1]], [[0, 2]])
    metric = loaded.table.finish(mahalo.MetricLearner().fit(loaded.session.X, constraints=constraints).metric_)
    fill = Provenance.of(metric).table.impute
    gap = np.where(np.arange(4) == 0, np.nan, X[7])
    assert fill.fill(gap[None])[0, 0] == pytest.approx(np.median(np.delete(X[:, 0], 7)))
    with pytest.raises(ValueError, match="give --impute mean"):
        load_studio(dataclasses.replace(options, impute=None), log=None)


def test_a_model_of_other_columns_is_refused(table, tmp_path):
    path, X, _ = table
    mahalo.MetricLearner().fit(X[:, :2], np.arange(80) % 2).metric_.save(tmp_path / "other.safetensors")
    options = RowOptions(data=[str(path)], label="kind", id="name", drop=["note"])
    with pytest.raises(ValueError, match="is a metric of 2 columns, the table has 4"):
        load_studio(options, log=None, model=tmp_path / "other.safetensors")


def test_a_model_is_matched_to_the_table_by_the_names_of_columns(table, tmp_path):
    path, _, y = table
    options = RowOptions(data=[str(path)], label="kind", id="name", drop=["note"])
    session = load_studio(options, log=None).session
    for _ in range(12):
        question = session.question()
        session.answer(question, reply(question, y))
    loaded = load_studio(options, log=None)
    loaded.table.finish(session.final().metric).save(tmp_path / "m.safetensors")
    lines = list(csv.reader(path.open(newline="")))
    for name, header in {"turned": "name,kind,d,c,b,a,note", "other": "name,kind,a,b,c,e,note"}.items():
        place = [lines[0].index(column if column != "e" else "d") for column in header.split(",")]
        with (tmp_path / f"{name}.csv").open("w", newline="") as file:
            csv.writer(file).writerows([header.split(","), *([line[k] for k in place] for line in lines[1:])])
    turned = dataclasses.replace(options, data=[str(tmp_path / "turned.csv")])
    again = load_studio(turned, log=None, model=tmp_path / "m.safetensors").session
    expected = session.final().metric.distances(session.X[:5], session.X)
    np.testing.assert_allclose(again.metric_.distances(again.X[:5], again.X), expected, rtol=1e-5, atol=1e-6)
    other = dataclasses.replace(options, data=[str(tmp_path / "other.csv")])
    with pytest.raises(ValueError, match="was fitted on 'd', which the rows lack; they have 'e' instead"):
        load_studio(other, log=None, model=tmp_path / "m.safetensors")


def test_arrays_need_no_labels_and_stay_as_they_are(tmp_path):
    X, _ = planted(30)
    np.save(tmp_path / "rows.npy", X.astype(np.float32))
    loaded = load_studio(RowOptions(data=[str(tmp_path / "rows.npy")]), log=None)
    assert np.array_equal(loaded.session.X, X.astype(np.float32)) and loaded.table.items.labels is None
    assert loaded.table.items.item(4).fields == ()


def test_texts_are_encoded_and_typed_ones_too(tmp_path):
    pytest.importorskip("wordllama", reason="texts are encoded by wordllama: pip install 'mahalo[text]'")
    path = tmp_path / "texts.csv"
    path.write_text("question\n" + "\n".join(f"how do I reset my {what}" for what in ("pin", "card", "phone", "app")))
    loaded = load_studio(RowOptions(data=[str(path)], text=["question"]), log=None)
    assert loaded.table.items.item(0).fields[0].text == "how do I reset my pin"
    point = loaded.table.encode("reset the pin")
    assert loaded.session.index.nearest(loaded.session.metric_, point, 2).after[0] == 0
    loaded.table.finish(loaded.session.metric_).save(tmp_path / "texts.safetensors")
    load_studio(RowOptions(data=[str(path)], text=["question"]), log=None, model=tmp_path / "texts.safetensors")
    np.save(tmp_path / "rows.npy", loaded.session.X)
    with pytest.raises(ValueError, match="was fitted on texts of 'question', and rows are numbers; pass the table"):
        load_studio(RowOptions(data=[str(tmp_path / "rows.npy")]), log=None, model=tmp_path / "texts.safetensors")
