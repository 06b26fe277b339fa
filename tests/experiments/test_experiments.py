"""Experiments: the data they load, the protocol they follow, and what they find on data made to be understood."""

from __future__ import annotations

import lzma
import tarfile
from io import BytesIO
from types import SimpleNamespace
from urllib.error import URLError

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import datasets
from sklearn.decomposition import TruncatedSVD
from sklearn.metrics import average_precision_score
from sklearn.metrics.pairwise import cosine_similarity

from experiments import data, embeddings, protocol, text
from experiments.data import Embeddings, Texts
from experiments.outcome import Measurement
from mahalo import MetricLearner


def silent(stage, done, total):
    assert 0 <= done <= total


# -- data ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def empty_home(tmp_path, monkeypatch):
    """Nothing in $MAHALO_DATA, nothing in the cache."""
    monkeypatch.setenv("MAHALO_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


@pytest.fixture
def real_data(data_dir, monkeypatch):
    monkeypatch.setenv("MAHALO_DATA", str(data_dir))

    def need(name):
        if not (data_dir / name).is_dir():
            pytest.skip(f"no {name} in {data_dir}")

    return need


@pytest.mark.parametrize("name", ["classic3", "banking77"])
def test_a_missing_set_says_how_to_get_it(empty_home, name):
    with pytest.raises(FileNotFoundError, match=name) as raised:
        getattr(data, f"load_{name}")()
    message = str(raised.value)
    assert str(empty_home / "data") in message and str(empty_home / "cache") in message
    assert "Get " in message or "Embed " in message


def test_a_table_nobody_has_says_where_to_look(empty_home):
    with pytest.raises(FileNotFoundError, match=r"archive\.ics\.uci\.edu"):
        data.load_table("soybean-small")


@pytest.mark.parametrize(
    ("fetcher", "name", "load"),
    [
        ("fetch_openml", "ionosphere", lambda: data.load_table("ionosphere")),
        ("fetch_20newsgroups", "20newsgroups", data.load_newsgroups),
    ],
)
def test_a_set_that_cannot_be_downloaded_says_where_to_put_it(empty_home, monkeypatch, fetcher, name, load):
    def offline(**_):
        raise URLError("no route to host")

    monkeypatch.setattr(datasets, fetcher, offline)
    with pytest.raises(FileNotFoundError, match=name) as raised:
        load()
    message = str(raised.value)
    assert "neither" in message and str(empty_home / "data" / name) in message and "$MAHALO_DATA" in message
    assert "no route to host" in message and isinstance(raised.value.__cause__, URLError)


def test_a_missing_set_with_one_place_to_look(empty_home, monkeypatch):
    monkeypatch.delenv("MAHALO_DATA")
    with pytest.raises(FileNotFoundError, match=r"there is no .*, and \$MAHALO_DATA is not set\.") as raised:
        data.load_classic3()
    assert str(empty_home / "cache") in str(raised.value) and "neither" not in str(raised.value)


def test_bundled_tables_need_no_network_and_are_kept(empty_home, iris):
    table = data.load_table("iris")
    np.testing.assert_array_equal(table.X, iris[0])
    np.testing.assert_array_equal(table.y, iris[1])
    assert table.class_names == ("setosa", "versicolor", "virginica")
    assert (empty_home / "cache" / "mahalo" / "iris" / "iris.npz").is_file()


def test_the_data_folder_comes_before_the_cache(empty_home):
    data.load_table("iris")
    (empty_home / "data" / "iris").mkdir(parents=True)
    np.savez(empty_home / "data" / "iris" / "iris.npz", X=np.eye(2), y=np.array([3, 7]))
    table = data.load_table("iris")
    assert table.X.shape == (2, 2) and table.y.tolist() == [0, 1] and table.class_names == ("3", "7")


def test_openml_tables_become_numbers(empty_home, monkeypatch):
    """Categories are numbered, missing values are NaN and leave with `complete`."""
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": pd.Categorical(["no", "yes", None])})
    asked = []

    def fetch(data_id, as_frame):
        asked.append(data_id)
        return SimpleNamespace(data=frame, target=pd.Series(["x", "y", "x"]))

    monkeypatch.setattr(datasets, "fetch_openml", fetch)
    table = data.load_table("ionosphere")
    assert asked == [59]
    np.testing.assert_array_equal(table.X, [[1, 0], [2, 1], [3, np.nan]])
    assert table.complete().X.tolist() == [[1, 0], [2, 1]]
    assert data.load_table("ionosphere").y.tolist() == [0, 1, 0] and asked == [59]


def test_a_table_without_labels_is_named(empty_home):
    (empty_home / "data" / "odd").mkdir(parents=True)
    np.savez(empty_home / "data" / "odd" / "odd.npz", X=np.eye(2))
    with pytest.raises(ValueError, match="lacks y"):
        data.load_table("odd")


def test_classic3_is_read_from_json_lines(empty_home):
    (empty_home / "data" / "classic3").mkdir(parents=True)
    lines = '{"text": "a wing", "collection": "cran"}\n{"text": "a cell", "collection": "med"}\n'
    (empty_home / "data" / "classic3" / "classic3.jsonl.xz").write_bytes(lzma.compress(lines.encode()))
    found = data.load_classic3()
    assert found.texts == ("a wing", "a cell") and found.y.tolist() == [0, 1] and found.class_names == ("cran", "med")


def test_newsgroups_lose_the_headers_that_name_the_group(empty_home):
    (empty_home / "data" / "20newsgroups").mkdir(parents=True)
    post = "Newsgroups: sci.space\nSubject: Re: orbits\nPath: sci.space!x\n\nThe body: sound.\n\nMore."
    with tarfile.open(empty_home / "data" / "20newsgroups" / "20news.tar.xz", "w:xz") as archive:
        for name in ("20news-19997/sci.space/1", "20news-bydate-train/sci.space/1"):
            entry = tarfile.TarInfo(name)
            entry.size = len(post)
            archive.addfile(entry, BytesIO(post.encode()))
    found = data.load_newsgroups()
    assert len(found.texts) == 1 and found.class_names == ("sci.space",)
    assert "orbits" in found.texts[0] and found.texts[0].endswith("The body: sound.\n\nMore.")
    assert "sci.space" not in found.texts[0]


@pytest.mark.parametrize(
    ("name", "n", "n_classes"),
    [("classic3", 3891, 3), pytest.param("20newsgroups", 19_997, 20, marks=pytest.mark.slow)],
)
def test_real_texts_have_the_published_counts(real_data, name, n, n_classes):
    real_data(name)
    found = data.load_classic3() if name == "classic3" else data.load_newsgroups()
    assert len(found.texts) == len(found.y) == n
    assert len(found.class_names) == n_classes == found.y.max() + 1


def test_real_embeddings_have_the_published_counts(real_data):
    real_data("banking77")
    found = data.load_banking77()
    assert found.X.shape == (13_083, 384) and found.is_train.sum() == 10_003 and len(np.unique(found.y)) == 77
    np.testing.assert_allclose(np.linalg.norm(found.X, axis=1), 1.0)


@pytest.mark.parametrize("name", ["iris", "ionosphere", "balance-scale", "digits389", "soybean-large"])
def test_real_tables_load(real_data, name):
    real_data(name)
    table = data.load_table(name).complete()
    assert np.isfinite(table.X).all() and len(table.class_names) == table.y.max() + 1


# -- protocol --------------------------------------------------------------------------------------------------------


def test_every_row_is_held_out_once_a_repeat(iris):
    splits = protocol.halves(iris[1], n_repeats=3, seed=0)
    assert len(splits) == 6
    for repeat in range(3):
        (train, test), (other_train, other_test) = splits[2 * repeat : 2 * repeat + 2]
        np.testing.assert_array_equal(train, other_test)
        np.testing.assert_array_equal(test, other_train)
        np.testing.assert_array_equal(np.sort(np.concatenate([train, test])), np.arange(150))
        assert np.bincount(iris[1][train]).tolist() == [25, 25, 25]


def test_interval_by_hand():
    """Mean 2, standard deviation 1, t of two degrees of freedom 4.303: 2 ± 4.303/√3."""
    mean, half_width = protocol.mean_interval([1.0, 2.0, 3.0])
    assert mean == 2.0 and half_width == pytest.approx(4.302653 / np.sqrt(3), rel=1e-6)
    assert protocol.mean_interval([0.25]) == (0.25, None)


def test_above_needs_an_interval_above_zero():
    """Differences 1, 2, 3: 2 ± 2.48 does not reach zero only for a mean larger than that."""
    assert not protocol.above("a above b", [2.0, 4.0, 6.0], [1.0, 2.0, 3.0]).holds
    assert protocol.above("a above b", [4.0, 5.0, 6.0], [1.0]).holds
    assert protocol.above("a above b", [0.2], [0.1]).holds
    verdict = protocol.above("a above b", [0.1], [0.2])
    assert not verdict.holds and verdict.detail == "0.100 against 0.200, difference -0.100"


def test_votes_by_hand():
    """Seen from 0, neighbours at 1 and 2 say b and the one at 3 says a; seen from 3, the nearest says a."""
    train, labels = np.array([[1.0], [2.0], [3.0], [9.0]]), np.array(["b", "b", "a", "a"])
    assert protocol.knn_error(train, labels, np.zeros((1, 1)), ["b"], k=3) == 0.0
    assert protocol.knn_error(train, labels, np.zeros((1, 1)), ["a"], k=3) == 1.0
    assert protocol.vote_error(lambda part: np.abs(train.T)[part], labels, ["b"], k=3) == 0.0
    assert protocol.vote_error(lambda part: np.abs(train.T - 3)[part], labels, ["b"], k=1) == 1.0


def test_a_tie_goes_to_the_nearer_neighbours_whatever_their_names():
    train = np.array([[1.0], [2.0], [3.0], [4.0]])
    for labels in (["b", "b", "a", "a"], ["a", "a", "b", "b"]):
        assert protocol.knn_error(train, labels, np.zeros((1, 1)), labels[:1]) == 0.0
        assert protocol.vote_error(lambda part: train.T[part], labels, labels[:1]) == 0.0


def test_votes_under_a_metric_are_those_after_its_transform(iris, monkeypatch):
    X, y = iris
    train, test = protocol.halves(y, 1, 0)[0]
    monkeypatch.setattr(protocol, "_BLOCK", 1000)  # several blocks
    metric = MetricLearner(gamma=1.0).fit(X[train], y[train]).metric_
    Z = metric.transform(X)
    transformed = protocol.knn_error(Z[train], y[train], Z[test], y[test])
    assert protocol.metric_error(metric, X[train], y[train], X[test], y[test]) == pytest.approx(transformed, abs=0.014)


def test_the_papers_learner():
    learner = protocol.paper_learner(3, prior="diagonal")
    assert learner.pairs_per_class == 100 and learner.percentiles == (1, 99) and learner.strategy == "random"
    assert tuple(learner.gammas) == (0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)
    assert learner.random_state == 3 and learner.prior == "diagonal"


def test_tally_keeps_order_and_finds_published_figures():
    tally = protocol.Tally()
    for value in (0.1, 0.3):
        tally.add("wine", "LogDet", "error", value)
        tally.add("wine", "LogDet", "error at k", value, x=5)
    plain, at_five = tally.measurements({("wine", "LogDet", "error"): 0.25, ("wine", "LogDet", "error at k", 5): 0.5})
    assert (plain.value, plain.n, plain.x, plain.published) == (0.2, 2, None, 0.25)
    assert (at_five.x, at_five.published) == (5, 0.5)
    assert tally.values("wine", "LogDet", "error") == [0.1, 0.3]


def test_a_measurement_is_never_nan():
    with pytest.raises(ValueError, match="value of error of LogDet on wine"):
        Measurement("wine", "LogDet", "error", float("nan"))


# -- text ------------------------------------------------------------------------------------------------------------

TOPICS = (
    "orbit rocket launch satellite moon",
    "goal puck skate goalie hockey",
    "engine brake wheel gear driver",
    "virus doctor patient fever clinic",
)


def made_up_texts(n_documents: int = 160, seed: int = 0) -> Texts:
    """One word of a topic among ten words that anything may contain."""
    rng = np.random.default_rng(seed)
    y = np.arange(n_documents) % len(TOPICS)
    noise = [f"{a}{b}{c}" for a in "bdfgk" for b in "aeiou" for c in "lmnprt"]
    texts = tuple(
        " ".join([*rng.choice(TOPICS[c].split(), 1), *rng.choice(noise, 10), "the", "and"]).title() for c in y
    )
    return Texts("made up", texts, y, ("space", "hockey", "cars", "medicine"), "made up")


def test_document_vectors_by_hand():
    """Stop words go, stems meet, the word in fewest documents is left out, and so is the document it leaves empty."""
    X, kept = text.document_vectors(["The cats and cat", "a dog and cats", "dogs", "zebra"], n_words=2)
    assert sp.issparse(X) and X.shape == (3, 2) and kept.tolist() == [0, 1, 2]
    np.testing.assert_allclose(X.toarray(), [[1, 0], [np.sqrt(0.5), np.sqrt(0.5)], [0, 1]])


def test_text_study_on_made_up_topics():
    plan = text.Plan(made_up_texts(), n_repeats=1, sizes=(2, 4, 12), large=4)
    outcome = text.study((plan,), seed=0, progress=silent)
    found = {(m.method, m.x): m for m in outcome.measurements if m.measure == "accuracy"}
    assert set(found) == {(text.EUCLIDEAN, None), (text.WITHIN, None)} | {
        (method, k) for method in (text.FULL, text.PART, text.PROJECTION, text.LSA) for k in (2, 4, 12)
    }
    assert all(0 <= m.value <= 1 and m.n == 2 for m in found.values())
    for better in ((text.PART, 4), (text.WITHIN, None)):
        assert found[better].value > found[text.EUCLIDEAN, None].value + 0.05
    assert {m.x for m in outcome.measurements if m.measure == "seconds"} == {2, 4, 12}
    assert len(outcome.verdicts) == 10


def test_lsa_is_judged_by_angles():
    texts = made_up_texts()
    outcome = text.study((text.Plan(texts, n_repeats=1, sizes=(4,), large=4),), seed=0, progress=silent)
    X, _ = text.document_vectors(texts.texts)
    accuracies = []
    for h, (train, test) in enumerate(protocol.halves(texts.y, 1, 0)):
        Z = TruncatedSVD(4, random_state=h).fit(X[train]).transform(X)
        cosines = cosine_similarity(Z[test], Z[train])
        accuracies.append(1 - protocol.vote_error(lambda part, c=cosines: -c[part], texts.y[train], texts.y[test]))
    (found,) = (m for m in outcome.measurements if (m.method, m.measure) == (text.LSA, "accuracy"))
    assert found.value == pytest.approx(np.mean(accuracies))


def test_studies_repeat_under_a_seed():
    plan = text.Plan(made_up_texts(), n_repeats=1, sizes=(4,), large=4)
    once, again = (text.study((plan,), seed=5, progress=silent) for _ in range(2))
    for one, other in zip(once.measurements, again.measurements, strict=True):
        assert one == other or one.measure == "seconds"


def test_products_kept_by_the_judge_give_the_accuracy_of_the_metric_itself():
    texts = made_up_texts()
    X, _ = text.document_vectors(texts.texts)
    ((train, test), _) = protocol.halves(texts.y, 1, 0)
    metric = MetricLearner(basis=8, gamma=10.0).fit(X[train], texts.y[train]).metric_
    error = protocol.metric_error(metric, X[train], texts.y[train], X[test], texts.y[test])
    assert text._Judge(X, texts.y, train, test).accuracy(metric) == pytest.approx(1 - error, abs=0.026)


# -- embeddings ------------------------------------------------------------------------------------------------------


def made_up_embeddings(seed: int = 0) -> Embeddings:
    """Five classes in 12 dimensions, of which two tell them apart and the loudest do not."""
    rng = np.random.default_rng(seed)
    y = np.arange(300) % 5
    X = rng.normal(size=(300, 12)) * np.linspace(0.5, 2.0, 12)
    X[:, 0] = np.cos(2 * np.pi * y / 5) + 0.15 * rng.normal(size=300)
    X[:, 1] = np.sin(2 * np.pi * y / 5) + 0.15 * rng.normal(size=300)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return Embeddings("made up", X, y, np.arange(300) < 200, "made up")


def test_retrieval_agrees_with_plain_arithmetic(rng):
    index, queries = rng.normal(size=(60, 3)), rng.normal(size=(20, 3))
    y_index, y_queries = rng.integers(4, size=60), rng.integers(4, size=20)
    distance = np.linalg.norm(queries[:, None] - index[None], axis=2)
    right = y_queries[:, None] == y_index[None]
    order = np.argsort(distance, axis=1)
    ranked = np.take_along_axis(right, order, axis=1)
    found = embeddings.retrieval_scores(index, y_index, queries, y_queries)
    assert found.p1.mean() == pytest.approx(ranked[:, 0].mean())
    assert found.p10.mean() == pytest.approx(ranked[:, :10].mean())
    precision = [average_precision_score(r, -d) for r, d in zip(right, distance, strict=True)]
    np.testing.assert_allclose(found.ap, precision)


def test_retrieval_among_equal_rows_is_no_better_than_perfect():
    index = np.repeat(np.eye(2), 3, axis=0)
    found = embeddings.retrieval_scores(index, np.repeat([0, 1], 3), np.eye(2), np.array([0, 1]))
    assert found.p1.tolist() == found.ap.tolist() == [1.0, 1.0] and found.p10.tolist() == [0.3, 0.3]
    with pytest.raises(ValueError, match="no query"):
        embeddings.retrieval_scores(index, np.repeat([0, 1], 3), np.eye(2), np.array([5, 6]))


def test_embeddings_study_on_made_up_vectors():
    outcome = embeddings.study(made_up_embeddings(), shots=(6,), n_repeats=2, seed=0, progress=silent)
    found = {(m.method, m.x): m for m in outcome.measurements if m.measure == "MAP"}
    assert {x for _, x in found} == {None, 6, 40}
    assert {method for method, _ in found} == {
        embeddings.FROZEN, embeddings.RANDOM, embeddings.NEIGHBOURS, embeddings.LDA, embeddings.NCA
    }  # fmt: skip
    assert found[embeddings.RANDOM, 6].n == 2 and found[embeddings.RANDOM, 40].n == 1
    assert found[embeddings.RANDOM, 40].value > found[embeddings.FROZEN, None].value + 0.1
