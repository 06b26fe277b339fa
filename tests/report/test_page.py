"""The page is whole, the same every time, and holds what people call things as text and nothing else."""

from __future__ import annotations

import dataclasses
import json
import re
import sys
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal
from scipy.spatial.distance import cdist
from scipy.stats import rankdata
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import roc_auc_score
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.preprocessing import StandardScaler

import mahalo
from mahalo import Constraints, MetricLearner, MetricLearnerCV
from mahalo.basis import BetweenBasis
from mahalo.drawing import as_json, maps
from mahalo.embeddings import EmbeddingAdapter
from mahalo.evaluation import BeforeAfter, auc_of_pairs
from mahalo.explain import Provenance, fingerprint, fit_notes
from mahalo.explain.provenance import DataRecord, TableRecord
from mahalo.report import page, write
from mahalo.report.assessment import evaluate_with_learner
from mahalo.report.formatting import number, percent
from mahalo.report.html import template_environment
from mahalo.rows import stratified_sample

HOSTILE = "</script><script>alert(1)</script>"
QUOTED = '"><img src=x onerror=alert(1)> & \u2028 =1+1'


class Outline(HTMLParser):
    """Tags and their attributes, ids, headings, and the text of every element of a kind."""

    VOID = frozenset(["meta", "link", "input", "br", "img", "rect"])

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict]] = []
        self.open: list[str] = []
        self.texts: list[tuple[str, str]] = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_startendtag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_data(self, data):
        if self.open and data.strip():
            self.texts.append((self.open[-1], data))

    def all(self, tag):
        return [attributes for name, attributes in self.tags if name == tag]


@pytest.fixture(scope="module")
def scaled(wine_table):
    X, y = wine_table
    return StandardScaler().fit_transform(X), y


@pytest.fixture(scope="module")
def wine_table():
    from sklearn.datasets import load_wine

    return load_wine(return_X_y=True)


@pytest.fixture(scope="module")
def chosen(scaled):
    return MetricLearnerCV(gammas=[0.1, 1.0], kernel="linear").fit(*scaled)


@pytest.fixture(scope="module")
def text(chosen, scaled, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "wine.html"
    assert chosen.report(*scaled, path) == path
    return path.read_text(encoding="utf-8")


@pytest.fixture(autouse=True)
def quick_maps(request, monkeypatch):
    """Maps by classical scaling where no test looks at them."""
    if "text" not in request.fixturenames:
        monkeypatch.setattr(maps, "neighbor_plane", lambda D: maps._principal_plane(np.where(np.isfinite(D), D, 0.0)))


def page_of(model, X, y, tmp_path, **options) -> str:
    return write(model, X, y, tmp_path / "page.html", **options).read_text(encoding="utf-8")


def data_of(text: str) -> dict:
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)[1])


def shown_sections(text: str) -> set[str]:
    """Sections that do not say that they are missing."""
    sections = re.findall(r'<section id="(\w+)".*?</section>', text, re.S)
    missing = {
        name
        for name in sections
        if 'class="missing"' in re.search(rf'<section id="{name}".*?</section>', text, re.S)[0]
    }
    return set(sections) - missing


# -- structure -----------------------------------------------------------------------------------------------------

EVERYTHING = {"summary", "results", "map", "distances", "features", "proof", "constraints", "labels", "hubs"}


def test_the_page_has_every_section_and_closes_what_it_opens(text):
    outline = Outline(text)
    assert not outline.open
    assert shown_sections(text) == EVERYTHING
    targets = {link["href"][1:] for link in outline.all("a") if link["href"].startswith("#")}
    ids = [attributes["id"] for _, attributes in outline.tags if "id" in attributes]
    assert targets <= set(ids) and len(ids) == len(set(ids))


def test_the_page_can_be_heard_as_well_as_seen(text):
    outline = Outline(text)
    assert outline.all("html")[0]["lang"] == "en"
    assert [len(outline.all(tag)) for tag in ("h1", "main", "footer", "nav")] == [1, 1, 1, 1]
    assert all(one["aria-label"] for one in outline.all("div") if one.get("role") in ("img", "region", "group"))
    assert len(outline.all("table")) == len(outline.all("caption")) >= 6
    assert all(one["scope"] == "col" for one in outline.all("th"))
    assert all("aria-labelledby" in one for one in outline.all("section"))


def test_every_chart_has_its_numbers(text):
    charts = {one["data-chart"] for one in Outline(text).all("div") if "data-chart" in one}
    assert charts == set(data_of(text)["charts"])
    assert {"measures", "histogramBefore", "histogramAfter", "spectrum", "gap", "scores", "hubs"} == charts


def test_nothing_is_loaded_and_only_our_script_may_run(text):
    outline = Outline(text)
    assert not re.search(r"(src|href)=\"(?!#|data:,)", text)
    policy = next(one["content"] for one in outline.all("meta") if one.get("http-equiv") == "Content-Security-Policy")
    assert "default-src 'none'" in policy and "unsafe" not in policy
    assert not [
        name for _, attributes in outline.tags for name in attributes if name.startswith("on") or name == "style"
    ]


def test_a_page_is_small_and_the_same_every_time(chosen, scaled, text, tmp_path):
    assert len(text.encode()) < 300_000
    assert page_of(chosen, *scaled, tmp_path) == text


def test_the_maps_show_every_row_within_the_square(text, scaled):
    drawn = data_of(text)["map"]
    assert drawn["rows"] == list(range(len(scaled[0])))
    for side in ("before", "after"):
        assert len(drawn[side]) == 2 * len(scaled[0]) and np.abs(drawn[side]).max() <= 1.0


def test_the_nearest_rows_of_every_row_are_listed_with_their_ranks(chosen, text, scaled):
    X, _ = scaled
    found, n = data_of(text)["map"]["neighbors"], len(X)
    lists = {name: np.reshape(values, (n, 10)) for name, values in found.items()}
    distances = {"before": cdist(X, X), "after": np.array(chosen.metric_.distances(X))}
    for D in distances.values():
        np.fill_diagonal(D, np.inf)
    ranks = {side: rankdata(D, method="min", axis=1) for side, D in distances.items()}
    for side, other in (("before", "after"), ("after", "before")):
        nearest = np.take_along_axis(distances[side], lists[side], axis=1)
        np.testing.assert_allclose(nearest, np.sort(distances[side], axis=1)[:, :10], rtol=1e-9)
        assert_array_equal(lists[f"rank_{other}"], np.take_along_axis(ranks[other], lists[side], axis=1))


def test_classes_have_colours_of_their_own_up_to_twelve(scaled, tmp_path):
    X, _ = scaled
    for n_classes, coloured in ((12, True), (13, False)):
        y = np.arange(len(X)) % n_classes
        text = page_of(MetricLearner().fit(X, y), X, y, tmp_path)
        assert data_of(text)["map"]["coloured"] is coloured
        assert ('id="find-class"' in text) is not coloured


def test_pairs_are_lines_on_the_map_where_there_are_no_labels(scaled, text, tmp_path):
    assert data_of(text)["map"]["pairs"] == []  # labels: classes are coloured instead
    X, y = scaled
    pairs = Constraints.from_labels(y, pairs_per_class=20, random_state=1)
    triplet = Constraints.from_triplets([[0, 1, 170]])
    drawn = data_of(page_of(MetricLearner().fit(X, constraints=pairs + triplet), X, None, tmp_path))["map"]
    lines = np.column_stack([np.reshape(drawn["pairs"], (-1, 2)), drawn["similar"]])
    expected = np.column_stack([pairs.pairs.index, pairs.pairs.sign > 0])
    assert_array_equal(lines, [*expected, (0, 1, 1), (0, 170, 0)])


def test_a_file_draws_the_pairs_with_the_largest_multipliers(scaled, tmp_path):
    X, y = scaled
    pairs = Constraints.from_labels(y, pairs_per_class=40, random_state=1)
    learner = MetricLearner().fit(X, constraints=pairs + Constraints.from_triplets([[0, 1, 170]]))
    noted = dataclasses.replace(Provenance.of(learner.metric_), notes=fit_notes(learner, X, None, pairs))
    text = page_of(noted.attach(learner.metric_), X, None, tmp_path)
    drawn, table = data_of(text)["map"], learner.influential(50)
    table = table[table["kind"] != "triplet"]
    assert_array_equal(np.reshape(drawn["pairs"], (-1, 2)), [list(rows) for rows in table["rows"]])
    assert_array_equal(drawn["similar"], table["kind"] == "similar")
    assert "Lines join the pairs with the largest multipliers" in text
    assert data_of(page_of(noted.attach(learner.metric_), X, y, tmp_path))["map"]["pairs"] == []


def test_rows_of_pairs_come_first_on_the_maps_of_many_rows(rng, tmp_path):
    X = rng.standard_normal((2_000, 4))
    ends = rng.permutation(2_000)[:40].reshape(-1, 2)
    pairs = Constraints.from_pairs(similar=ends[:10], dissimilar=ends[10:])
    text = page_of(MetricLearner().fit(X, constraints=pairs), X, None, tmp_path)
    drawn = data_of(text)["map"]
    rows = np.array(drawn["rows"])
    assert len(rows) == 1_500 and set(ends.ravel().tolist()) <= set(rows.tolist())
    assert_array_equal(rows[np.reshape(drawn["pairs"], (-1, 2))], ends)
    assert "drawn at random, those of pairs first" in text and len(text.encode()) < 700_000


# -- names as people give them ---------------------------------------------------------------------------------------


def test_hostile_names_labels_and_ids_are_text(scaled, tmp_path):
    X, y = scaled
    labels = np.array([HOSTILE, QUOTED, "plain"])[y]
    names = [HOSTILE, QUOTED, "<b>bold</b>", "&amp;", "\x00\x1b", *(f"feature {j}" for j in range(8))]
    ids = [f"{HOSTILE}{i}" for i in range(len(X))]
    learner = MetricLearner().fit(X, labels)
    text = page_of(learner, X, labels, tmp_path, names=names, ids=ids)
    outline = Outline(text)
    assert [one.get("type") for one in outline.all("script")] == [None, "application/json"]
    assert not outline.all("img") and not outline.all("b")
    cells = {words for tag, words in outline.texts if tag == "td"}
    assert {HOSTILE, "<b>bold</b>", "&amp;"} <= cells
    drawn = data_of(text)["map"]
    assert drawn["ids"] == ids and set(drawn["classes"]) == {HOSTILE, QUOTED, "plain"}


@pytest.mark.parametrize("name", [HOSTILE, QUOTED, "<!--", "\u2029", "é 漢 𝒳", "\ud800"])
def test_json_in_a_script_reads_back_and_ends_nowhere(name):
    text = as_json({"name": name})
    assert not set("<>&\u2028\u2029") & set(text)
    assert json.loads(text)["name"] == name.encode("utf-8", "replace").decode()


def test_text_is_escaped_for_attributes_too():
    template = template_environment().from_string('<p title="{{ text }}">{{ text }}</p>')
    outline = Outline(template.render(text=QUOTED))
    shown = QUOTED.replace("\u2028", "\N{REPLACEMENT CHARACTER}")
    assert outline.tags == [("p", {"title": shown})] and outline.texts == [("p", shown)]
    assert template.render(text="\x07").count("\N{REPLACEMENT CHARACTER}") == 2


def test_templates_mark_nothing_but_our_own_style_script_and_data_as_safe():
    folder = Path(page.__file__).parent / "templates"
    texts = {path.name: path.read_text("utf-8") for path in folder.glob("*.html")}
    safe = {name: re.findall(r"\{\{ (\w+) \| safe \}\}", text) for name, text in texts.items() if "safe" in text}
    assert safe == {"page.html": ["style", "script", "data"], "duplicates_page.html": ["style"]}
    assert sum(text.count("safe") for text in texts.values()) == 4
    assert not [name for name, text in texts.items() if "autoescape" in text]


def test_html_is_written_in_templates_only():
    for path in Path(page.__file__).parent.glob("*.py"):
        assert not re.search(r"<(?:/?[a-z]+[ >]|/)[^\n]*>", path.read_text("utf-8")), path


def test_a_missing_jinja2_says_what_to_install(chosen, scaled, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(ImportError, match=r"pip install 'mahalo\[report\]'"):
        write(chosen, *scaled, tmp_path / "page.html")
    assert not list(tmp_path.iterdir())


def test_numbers_read_well():
    texts = [number(v) for v in (0, 1234567.0, 1234.0, 0.12345, -0.5, 3e-7, float("inf"))]
    texts += [percent(0.98765), percent(-0.012)]
    expected = ["0", "1.2 × 10⁶", "1,234", "0.123", "−0.5", "3 × 10⁻⁷", "∞", "98.8 %", "−1.2 %"]
    assert texts == [text.replace(" ", "\N{NO-BREAK SPACE}") for text in expected]


# -- every kind of learner -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "learner",
    [
        MetricLearner(),
        MetricLearner(normalize=True),
        MetricLearner(n_components=2),
        MetricLearner(basis=4, residual=0.5),
        MetricLearner(gamma=np.inf, bounds=(1e6, 1e-6)),
        MetricLearner(strategy="triplets"),
        MetricLearner(loss="frobenius"),
        EmbeddingAdapter(gammas=[0.1]),
    ],
    ids=lambda learner: str(learner),
)
def test_every_linear_learner_has_a_whole_page(learner, scaled, tmp_path):
    X, y = scaled
    assert shown_sections(page_of(learner.fit(X, y), X, y, tmp_path)) == EVERYTHING


def test_a_kernel_metric_has_all_but_features(scaled, tmp_path):
    X, y = scaled
    learner = MetricLearner(kernel="rbf", kernel_params={"gamma": 0.05}).fit(X, y)
    assert shown_sections(page_of(learner, X, y, tmp_path)) == EVERYTHING - {"features"}


def test_objects_under_a_kernel_of_ones_own(tmp_path):
    words = ["aa", "aab", "aaa", "aba", "baa", "xx", "xy", "xxx", "xyx", "yxx"] * 2
    y = np.array([0] * 5 + [1] * 5 + [0] * 5 + [1] * 5)

    def kernel(A, B):
        count = lambda words: np.array([[w.count(c) for c in "abxy"] for w in words], dtype=float)  # noqa: E731
        return rbf_kernel(count(A), count(B))

    learner = MetricLearner(kernel=kernel).fit(words, y)
    text = page_of(learner, words, y, tmp_path, ids=words)
    assert shown_sections(text) >= EVERYTHING - {"features", "results", "distances", "summary"}
    assert data_of(text)["map"]["ids"] == words


def test_sparse_rows(scaled, tmp_path):
    X, y = scaled
    X = sp.csr_array(np.where(np.abs(X) > 0.5, X, 0.0))
    assert shown_sections(page_of(MetricLearner().fit(X, y), X, y, tmp_path)) == EVERYTHING


def test_pairs_alone_are_judged_as_pairs(scaled, tmp_path):
    X, y = scaled
    pairs = Constraints.from_labels(y, pairs_per_class=60, random_state=1)
    text = page_of(MetricLearner().fit(X, constraints=pairs), X, None, tmp_path)
    assert shown_sections(text) == EVERYTHING
    assert [row["name"] for row in data_of(text)["charts"]["measures"]["rows"]] == ["pair AUC"]
    assert 'id="doubtful-pairs"' in text and 'id="doubtful-rows"' not in text


def test_unlabelled_rows_are_shown_and_not_judged(scaled, tmp_path):
    X, y = scaled
    y = np.where(np.arange(len(y)) % 3 == 0, -1, y)
    text = page_of(MetricLearner().fit(X, y), X, y, tmp_path)
    assert shown_sections(text) == EVERYTHING
    assert data_of(text)["map"]["codes"].count(-1) == int((y < 0).sum())


def test_a_metric_from_a_file_says_what_it_does_not_know(scaled, tmp_path):
    X, y = scaled
    MetricLearner().fit(X, y).metric_.save(tmp_path / "wine.safetensors")
    text = page_of(mahalo.load(tmp_path / "wine.safetensors"), X, y, tmp_path)
    assert shown_sections(text) == EVERYTHING - {"constraints"}
    assert "too optimistic" in text and "was learned from these rows" in text
    nothing = dataclasses.replace(mahalo.load(tmp_path / "wine.safetensors"), about={})
    text = page_of(nothing, X, y, tmp_path)
    assert shown_sections(text) == EVERYTHING - {"proof", "constraints"}
    assert "too optimistic" in text and "was learned from these rows" not in text


def test_without_labels_weights_are_not_called_shares(scaled, tmp_path):
    X, y = scaled
    MetricLearner().fit(X, y).metric_.save(tmp_path / "wine.safetensors")
    metric = mahalo.load(tmp_path / "wine.safetensors")
    labelled, plain = page_of(metric, X, y, tmp_path), page_of(metric, X, None, tmp_path)
    for text, shares in ((labelled, True), (plain, False)):
        assert ("add up to 100 %" in text) is ("share of the squared distances of dissimilar pairs" in text) is shares
        assert ("Features, by weight" in text) is ("one standard deviation in this column alone" in text) is not shares


def test_how_near_ties_are_settled_is_told(scaled, chosen, tmp_path):
    assert "less than one row behind the best" in page_of(chosen, *scaled, tmp_path)


def test_a_file_with_notes_about_its_fit_has_more_to_tell(scaled, chosen, tmp_path):
    X, y = scaled
    noted = {
        "before": {"10-NN": 0.9, "MAP": 0.8},
        "after": {"10-NN": 0.95, "MAP": 0.7},
        "interval": {"10-NN": 0.01, "MAP": 0.2},
    }
    columns = tuple(f"column {j}" for j in range(13))
    metric = noted_metric(chosen, X, y, table=TableRecord(columns=columns), evaluation=measured(**noted))
    text = page_of(metric, X, y, tmp_path)
    assert shown_sections(text) == EVERYTHING - {"constraints"}
    assert "column 12" in text and "As stored with the metric at its fit" in text
    assert "The pairs are of training rows" in text
    rows = {row["name"]: (row["before"], row["after"]) for row in data_of(text)["charts"]["measures"]["rows"]}
    assert rows == {"10-NN accuracy": (0.9, 0.95), "MAP": (0.8, 0.7)}
    other = page_of(metric, X[::2], y[::2], tmp_path)
    assert "Each of these 89 rows is compared with the others" in other and "As stored" not in other
    assert "The pairs are of the rows of this report" in other


def measured(before, after, interval):
    """An evaluation of these measures, as older files hold it."""
    return BeforeAfter(before, after, interval, n_queries=0, primary=next(iter(before)))


def noted_metric(learner, X, y, **changed):
    """The metric of a learner, as a file with this provenance has it."""
    data = DataRecord(n_rows=len(X), fingerprint=fingerprint(X, y))
    return dataclasses.replace(Provenance.of(learner.metric_), **{"data": data, **changed}).attach(learner.metric_)


def noted_page(learner, X, y, tmp_path, **noted):
    """A page about rows of the fit, from a metric with this evaluation."""
    table = TableRecord(encoder="tiny <v2>")
    return page_of(noted_metric(learner, X, y, table=table, evaluation=measured(**noted)), X, y, tmp_path)


def test_noted_measures_keep_their_names_and_doubts(scaled, chosen, tmp_path):
    told = {
        "before": {"AUC": 0.8, "MAP": 0.7},
        "after": {"AUC": 0.9, "MAP": 0.8},
        "interval": {"AUC": 0.01, "MAP": None},
    }
    text = noted_page(chosen, *scaled, tmp_path, **told)
    rows = data_of(text)["charts"]["measures"]["rows"]
    assert [row["name"] for row in rows] == ["AUC", "MAP"]
    assert "Probability that a row of the same class is closer than one of another class." in text
    assert "0.900" in text and "+0.100 ± 0.010" in text and "± 0.000" not in text
    assert "no clear difference" in text
    assert "tiny &lt;v2&gt;" in text


def test_one_split_has_no_interval(scaled, tmp_path):
    X, y = scaled
    once = MetricLearnerCV(gammas=[0.1, 1.0], cv=StratifiedShuffleSplit(1, random_state=0)).fit(X, y)
    text = page_of(once, X, y, tmp_path)
    assert all(one.interval is None for one in Provenance.of(once.metric_).choice.candidates)
    assert "one split: no interval" in text and "± 95 %" not in text


def test_before_of_a_kernel_is_what_was_measured(scaled, tmp_path):
    X, y = scaled
    learner = MetricLearner(kernel="rbf").fit(X, y)
    told = {"before": {"MAP": 0.7}, "after": {"MAP": 0.8}, "interval": {"MAP": 0.01}}
    noted = noted_page(learner, X, y, tmp_path, **told)
    for text in (noted, page_of(learner, X, y, tmp_path)):
        assert "“Before” is the distance of the kernel (rbf)" in text


@pytest.mark.parametrize("noted", [True, False])
@pytest.mark.parametrize("change", ["rows", "labels"])
def test_as_many_other_rows_are_not_those_learned_from(scaled, chosen, tmp_path, noted, change):
    X, y = scaled
    told = {"before": {"MAP": 0.123}, "after": {"MAP": 0.987}, "interval": {"MAP": 0.01}}
    data = DataRecord(n_rows=len(X), fingerprint=fingerprint(X, y) if noted else None)
    metric = noted_metric(chosen, X, y, data=data, evaluation=measured(**told))
    other = (X + 0.5, y) if change == "rows" else (X, np.roll(y, 1))
    text = page_of(metric, *other, tmp_path)
    assert "As stored" not in text and "too optimistic" in text
    assert all(row["after"] != 0.987 for row in data_of(text)["charts"]["measures"]["rows"])
    assert ("was learned from these rows" in text) == (noted and change == "labels")


@pytest.mark.parametrize("given", ["pairs", "pairs and notes", "notes", "nothing"])
def test_metrics_learned_from_pairs_alone_are_judged_by_pairs(scaled, tmp_path, given):
    X, y = scaled
    pairs = Constraints.from_labels(y, pairs_per_class=30, random_state=0)
    learner = MetricLearner().fit(X, constraints=pairs)
    told = {"before": {"pair AUC": 0.123}, "after": {"pair AUC": 0.987}, "interval": {"pair AUC": 0.01}}
    metric = noted_metric(learner, X, None, evaluation=measured(**told) if "notes" in given else None)
    text = page_of(metric, X, None, tmp_path, constraints=pairs if "pairs" in given else None)
    charts = data_of(text)["charts"]
    assert ("measures" in charts) == (given != "nothing") and ("histogramAfter" in charts) == ("pairs" in given)
    if "notes" in given:
        assert charts["measures"]["rows"][0]["after"] == 0.987
    elif given == "pairs":
        ends, similar = pairs.pairs.index, pairs.pairs.sign > 0
        expected = roc_auc_score(similar, -learner.metric_.pair_distances(X[ends[:, 0]], X[ends[:, 1]]))
        assert charts["measures"]["rows"][0]["after"] == pytest.approx(expected)
    else:
        assert "pass labels of two classes or more, or pairs" in text


def test_a_solver_that_stopped_early_is_said_so(scaled, tmp_path):
    X, y = scaled
    with pytest.warns(ConvergenceWarning):
        learner = MetricLearner(gamma=100.0, max_iter=1).fit(X, y)
    text = page_of(learner, X, y, tmp_path)
    assert "The solver stopped early" in text and "The solution is proved optimal" not in text


def test_the_proof_says_over_which_basis_it_is(rng, tmp_path):
    X, y = rng.standard_normal((60, 4)), np.arange(60) % 3
    text = page_of(MetricLearner(prior="within", basis=BetweenBasis()).fit(X, y), X, y, tmp_path)
    assert "No metric over 2 directions has an objective better by more than" in text
    assert "No metric has an objective better" in page_of(MetricLearner().fit(X, y), X, y, tmp_path)


def test_a_start_that_was_kept_is_not_praised(rng, tmp_path):
    """Classes far apart: nothing is better than the prior itself."""
    y = np.repeat([0, 1], 60)
    X = rng.standard_normal((120, 2)) + 8.0 * y[:, None]
    learner = MetricLearnerCV(prior="identity", gammas=[1.0, 10.0], cv=3).fit(X, y)
    assert learner.gamma_ < 1e-3 and learner.best_score_ == 1.0
    text = page_of(learner, X, y, tmp_path)
    assert "The prior was chosen" in text and "The solution is proved optimal" not in text


def test_precomputed_kernels_are_refused(scaled, tmp_path):
    X, y = scaled
    learner = MetricLearner(kernel="precomputed").fit(X @ X.T, y)
    with pytest.raises(ValueError, match=r"precomputed.*callable"):
        write(learner, X @ X.T, y, tmp_path / "page.html")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"names": ["one"]}, "names must have one name for each of the 13 features; got 1"),
        ({"ids": ["one"]}, "ids must have one name for each of the 178 rows; got 1"),
        ({"y": [0, 1]}, "y must have one label for each of the 178 rows; got 2"),
        ({"X": np.zeros((178, 2))}, "X has 2 features, but this metric was learned on 13"),
        ({"model": object()}, "fitted MetricLearner or a Metric; got object"),
        ({"path": "nowhere/page.html"}, "no folder"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_bad_input_leaves_nothing_behind(change, message, chosen, scaled, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, y = scaled
    arguments = {"model": chosen, "X": X, "y": y, "path": "page.html"} | change
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        write(**arguments)
    assert not list(tmp_path.iterdir())


def test_names_come_from_the_columns(scaled, tmp_path):
    import pandas as pd

    X, y = scaled
    table = pd.DataFrame(X, columns=[f"column {j}" for j in range(13)])
    assert "column 12" in page_of(MetricLearner().fit(table, y), table, y, tmp_path)


# -- judged honestly -------------------------------------------------------------------------------------------------


def test_the_rows_learned_from_are_judged_by_refits_and_others_as_they_are(scaled, tmp_path):
    X, y = scaled
    half = np.arange(0, len(X), 2)
    rest = np.arange(1, len(X), 2)
    learner = MetricLearner().fit(X[half], y[half])
    assert len(half) == len(rest)
    assert "Evaluated on held-out rows" in page_of(learner, X[half], y[half], tmp_path)
    other = page_of(learner, X[rest], y[rest], tmp_path)
    assert "Each of these 89 rows is compared with the others" in other and "Evaluated on held-out" not in other
    assert "constraints" not in shown_sections(other)


def test_random_labels_are_not_made_to_look_learnable(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(120, 60)), rng.integers(3, size=120)
    learner = MetricLearner(gamma=100.0, pairs_per_class=500).fit(X, y)
    assert learner.score(X, y) > 0.7  # on the rows it was learned from
    rows = data_of(page_of(learner, X, y, tmp_path))["charts"]["measures"]["rows"]
    # Average precision rewards tight groups of training rows, whatever their labels mean.
    judged = [row for row in rows if row["name"] != "MAP"]
    assert len(judged) == 4 and all(abs(r["after"] - {"AUC": 0.5}.get(r["name"], 1 / 3)) < 0.12 for r in judged)


def test_pairs_that_agree_with_labels_are_still_what_is_learned_from(scaled, tmp_path):
    X, y = scaled
    few = Constraints.from_pairs(similar=[[0, 1], [70, 80]], dissimilar=[[0, 70], [1, 150]])
    text = page_of(MetricLearner().fit(X, constraints=few), X, y, tmp_path)
    assert "by 2 similar pairs and 2 dissimilar pairs" in text
    assert 'id="doubtful-pairs"' in text


def test_auc_and_its_interval_agree_with_plain_arithmetic_and_the_jackknife():
    rng = np.random.default_rng(0)
    x, codes = rng.normal(size=40), rng.integers(2, size=40)
    x = x + codes

    def auc(rows):
        i, j = (rows[k] for k in np.triu_indices(len(rows), 1))
        return roc_auc_score(codes[i] == codes[j], -np.abs(x[i] - x[j]))

    everyone = np.arange(40)
    i, j = np.triu_indices(40, 1)
    found, pull = auc_of_pairs(np.abs(x[i] - x[j]), np.column_stack([i, j]), codes[i] == codes[j], 40)
    assert found == pytest.approx(auc(everyone), abs=1e-12)
    left_out = np.array([auc(np.delete(everyone, k)) for k in everyone])
    jackknife = np.sqrt(39 / 40 * ((left_out - left_out.mean()) ** 2).sum())
    assert np.sqrt((pull**2).sum()) == pytest.approx(jackknife, rel=0.1)


def test_accuracy_on_held_out_rows_is_that_of_the_choice(chosen, scaled):
    """The folds are those that were chosen by, so a choice among one candidate has the score it was given."""
    X, y = scaled
    one = MetricLearnerCV(gammas=[1.0], prior="identity", strategy="random").fit(X, y)
    judged = evaluate_with_learner(one, X, y, y, None)
    assert min(abs(one.cv_results_["mean_score"] - judged.evaluation.after["10-NN"])) < 0.01


# -- large inputs ----------------------------------------------------------------------------------------------------


def test_samples_are_fixed_and_in_proportion():
    codes = np.repeat([0, 1, 2], [6000, 3000, 1000])
    some = stratified_sample(10_000, 1000, codes)
    assert np.array_equal(some, stratified_sample(10_000, 1000, codes)) and len(np.unique(some)) == 1000
    assert np.bincount(codes[some]).tolist() == pytest.approx([600, 300, 100], abs=1)


@pytest.mark.slow
def test_many_rows_and_classes_make_a_small_page(tmp_path):
    rng = np.random.default_rng(0)
    y = rng.integers(80, size=6000)
    X = rng.normal(size=(80, 30))[y] + rng.normal(size=(6000, 30))
    text = page_of(
        MetricLearner(pairs_per_class=30).fit(X, y), X, y, tmp_path, ids=[f"question number {i} " * 4 for i in y]
    )
    assert len(text.encode()) < 3_000_000
    assert "1,500 of the 6,000 rows" in text


def test_candidates_of_a_race_are_shown_as_far_as_they_were_scored(scaled, tmp_path):
    learner = MetricLearnerCV(scoring="map").fit(*scaled)
    assert np.isnan(learner.cv_results_["scores"]).any()
    text = page_of(learner, *scaled, tmp_path)
    assert "fell behind were scored on fewer folds" in text and ">nan" not in text
    curves = data_of(text)["charts"]["scores"]["curves"]
    assert sum(curve["chosen"] for curve in curves) == (not Provenance.of(learner.metric_).choice.prior_was_chosen)
