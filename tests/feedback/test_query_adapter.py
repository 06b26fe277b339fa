from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from mahalo.feedback import QueryAdapter


def rotated_searches(seed=0, n_queries=120, n_documents=60, d=8):
    """Queries in a space of their own, turned against that of the documents: a matrix repairs them all."""
    rng = np.random.default_rng(seed)
    documents = rng.normal(size=(n_documents, d))
    documents /= np.linalg.norm(documents, axis=1, keepdims=True)
    turn = np.linalg.qr(np.eye(d) + 0.7 * rng.normal(size=(d, d)))[0]
    wanted = np.arange(n_queries) % n_documents
    queries = (documents[wanted] + 0.15 * rng.normal(size=(n_queries, d))) @ turn
    return queries, documents, [(k, int(w)) for k, w in enumerate(wanted)]


@pytest.fixture(scope="module")
def searches():
    return rotated_searches()


@pytest.fixture(scope="module")
def fitted(searches):
    return QueryAdapter(random_state=0).fit(*searches)


def test_learns_where_there_is_something_to_learn(searches, fitted):
    assert np.isfinite(fitted.lam_) and fitted.certificate_.converged
    for row in fitted.before_after_.rows.values():
        assert row.verdict() == "better"
    assert list(fitted.before_after_.rows) == ["documents with feedback", "documents without"]
    assert set(fitted.before_after_.with_feedback.after) == {"nDCG@10", "MRR", "recall@10"}
    assert "Queries are adapted" in fitted.before_after_.sentence
    new, documents, wanted = rotated_searches(n_queries=180)
    new, wanted = new[120:], wanted[120:]
    before, after = (
        ((mapped @ documents.T).argmax(axis=1) == [d for _, d in wanted]).mean()
        for mapped in (new, fitted.transform(new))
    )
    assert before < 0.5 < after


def test_frozen_vectors_win_where_judgements_are_noise(rng):
    queries, documents = rng.normal(size=(60, 6)), rng.normal(size=(40, 6))
    relevance = [(q, int(d)) for q in range(60) for d in rng.choice(40, 2, replace=False)]
    adapter = QueryAdapter().fit(queries, documents, relevance)
    assert adapter.lam_ == adapter.temperature_ == np.inf
    assert adapter.certificate_ is None
    np.testing.assert_array_equal(adapter.matrix_, np.eye(6))
    assert adapter.before_after_.sentence.startswith(
        "Frozen vectors stay: for no candidate the intervals exclude a loss"
    )
    np.testing.assert_array_equal(adapter.transform(queries), queries)


def test_no_gain_can_be_measured_without_common_documents(rng):
    queries, documents = rng.normal(size=(20, 5)), rng.normal(size=(20, 5))
    adapter = QueryAdapter().fit(queries, documents, [(k, k) for k in range(20)])
    assert adapter.before_after_.with_feedback is None
    assert "no gain could be measured" in adapter.before_after_.sentence
    assert adapter.lam_ == np.inf


def test_no_harm_can_be_excluded_if_all_queries_share_their_documents(rng):
    queries, documents = rng.normal(size=(20, 5)), rng.normal(size=(20, 5))
    adapter = QueryAdapter().fit(queries, documents, [(k, 0) for k in range(20)])
    assert adapter.before_after_.without_feedback is None and adapter.lam_ == np.inf
    assert "all queries share their documents" in adapter.before_after_.sentence


def test_a_gain_is_printed_once(fitted):
    """The sentence of the choice holds no figures beside those of the tables, which are judged by other folds."""
    assert "+" not in fitted.before_after_.decision and "λ = " in fitted.before_after_.decision


def test_a_lam_that_is_set_is_used_and_judged(rng):
    queries, documents = rng.normal(size=(30, 5)), rng.normal(size=(20, 5))
    relevance = [(k, int(rng.integers(20))) for k in range(30)]
    adapter = QueryAdapter(lam=0.5).fit(queries, documents, relevance)
    assert adapter.lam_ == 0.5 and adapter.temperature_ in (0.03, 0.1)
    assert "as set" in adapter.before_after_.sentence
    assert adapter.before_after_.without_feedback.n_queries == 30
    assert not np.allclose(adapter.matrix_, np.eye(5))


def test_temperature_is_chosen_too(searches):
    adapter = QueryAdapter(lam=0.1, temperature=None).fit(*searches)
    assert sorted(adapter.cv_results_["temperature"]) == [0.03, 0.1]
    assert adapter.temperature_ in (0.03, 0.1)


def test_scale_of_the_vectors_does_not_matter(searches):
    queries, documents, relevance = searches
    plain = QueryAdapter(lam=0.1, tol=1e-9).fit(queries, documents, relevance)
    scaled = QueryAdapter(lam=0.1, tol=1e-9).fit(100 * queries, 10 * documents, relevance)
    np.testing.assert_allclose(scaled.matrix_, plain.matrix_, atol=1e-4)


def test_fits_repeat(searches, fitted):
    again = clone(fitted).fit(*searches)
    np.testing.assert_array_equal(again.matrix_, fitted.matrix_)
    assert again.before_after_ == fitted.before_after_
    other = QueryAdapter(lam=0.1, random_state=1).fit(*searches).matrix_
    assert not np.array_equal(other, QueryAdapter(lam=0.1, random_state=2).fit(*searches).matrix_)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_precision_follows_the_queries(searches, dtype):
    queries, documents, relevance = searches
    adapter = QueryAdapter(lam=0.1).fit(queries.astype(dtype), documents.astype(dtype), relevance)
    assert adapter.matrix_.dtype == np.float64
    out = adapter.transform(queries.astype(dtype))
    assert out.dtype == (np.float64 if dtype is np.float64 else np.float32)
    reference = QueryAdapter(lam=0.1).fit(queries, documents, relevance).transform(queries)
    np.testing.assert_allclose(out, reference, atol=0.05)


def test_names_and_tables_are_read(searches):
    queries, documents, relevance = searches
    q_names, d_names = [f"q{k}" for k in range(120)], [f"d{k}" for k in range(60)]
    plain = QueryAdapter(lam=0.1).fit(queries, documents, relevance)
    table = pd.DataFrame([(q_names[q], d_names[d], 1.0) for q, d in relevance], columns=["query", "document", "grade"])
    named = QueryAdapter(lam=0.1).fit(queries, documents, table, query_index=q_names, document_index=d_names)
    np.testing.assert_array_equal(named.matrix_, plain.matrix_)
    mixed = [(q, d_names[d]) for q, d in relevance]
    np.testing.assert_array_equal(
        QueryAdapter(lam=0.1).fit(queries, documents, mixed, document_index=d_names).matrix_, plain.matrix_
    )


def test_grades_count_only_if_wanted(searches):
    queries, documents, relevance = searches
    graded = [(q, d, 1 + q % 3) for q, d in relevance]
    plain = QueryAdapter(lam=0.1).fit(queries, documents, relevance).matrix_
    np.testing.assert_array_equal(QueryAdapter(lam=0.1).fit(queries, documents, graded).matrix_, plain)
    by_grade = QueryAdapter(lam=0.1, weights="grade").fit(queries, documents, graded).matrix_
    assert not np.allclose(by_grade, plain, atol=1e-4)


def test_every_query_counts_the_same_however_many_documents_it_has(searches):
    queries, documents, relevance = searches
    more = [*relevance, *((0, d) for d in range(1, 30))]
    by_query, by_pair = (QueryAdapter(lam=0.1, weights=w).fit(queries, documents, more) for w in ("query", "pair"))
    assert not np.allclose(by_query.matrix_, by_pair.matrix_, atol=1e-4)


def test_judgements_said_twice_count_once(searches):
    queries, documents, relevance = searches
    twice = QueryAdapter(lam=0.1).fit(queries, documents, [*relevance, *relevance[:7]])
    np.testing.assert_array_equal(twice.matrix_, QueryAdapter(lam=0.1).fit(queries, documents, relevance).matrix_)


def test_wide_vectors_lose_nothing(searches, rng):
    queries, documents, relevance = searches
    turn = np.linalg.qr(rng.normal(size=(200, 8)))[0].T
    narrow = QueryAdapter(lam=0.1, tol=1e-9).fit(queries, documents, relevance)
    wide = QueryAdapter(lam=0.1, tol=1e-9).fit(queries @ turn, documents @ turn, relevance)
    assert wide.certificate_.converged and not wide.certificate_.restricted
    np.testing.assert_allclose(wide.transform(queries @ turn) @ turn.T, narrow.transform(queries), atol=1e-4)


def test_fewer_components_are_certified_as_such(searches):
    adapter = QueryAdapter(lam=0.1, n_components=3).fit(*searches)
    assert adapter.certificate_.restricted and adapter.certificate_.converged
    assert np.linalg.matrix_rank(adapter.matrix_ - np.eye(8), tol=1e-8) <= 3


def test_one_query_needs_a_lam(searches):
    queries, documents, _ = searches
    with pytest.raises(ValueError, match="at least two with relevant documents; got one"):
        QueryAdapter().fit(queries, documents, [(0, 0)])
    adapter = QueryAdapter(lam=0.1, temperature=0.05).fit(queries, documents, [(0, 0)])
    assert adapter.before_after_ is None and adapter.certificate_.converged


def test_early_stop_warns_with_the_bound(searches):
    with pytest.warns(ConvergenceWarning, match=r"at most .* above the optimum .* Increase max_iter"):
        adapter = QueryAdapter(lam=0.001, max_iter=1).fit(*searches)
    assert not adapter.certificate_.converged


def test_progress_is_reported(searches):
    lines = []
    QueryAdapter(lam=0.1, verbose=lines.append).fit(*searches)
    assert any("fold 1 of 10" in line for line in lines)


# -- files ---------------------------------------------------------------------------------------------------


def test_saved_adapters_transform_as_before(searches, fitted, tmp_path):
    fitted.save(tmp_path / "a.safetensors")
    again = QueryAdapter.load(tmp_path / "a.safetensors")
    np.testing.assert_array_equal(again.transform(searches[0]), fitted.transform(searches[0]))
    assert again.certificate_ == fitted.certificate_ and again.before_after_ == fitted.before_after_
    assert (again.lam_, again.temperature_) == (fitted.lam_, fitted.temperature_)
    again.save(tmp_path / "b.safetensors")
    assert (tmp_path / "a.safetensors").read_bytes() == (tmp_path / "b.safetensors").read_bytes()


def test_saved_frozen_vectors_stay_frozen(rng, tmp_path):
    X = rng.normal(size=(20, 5))
    QueryAdapter().fit(X, X[::-1], [(k, k) for k in range(20)]).save(tmp_path / "a.safetensors")
    again = QueryAdapter.load(tmp_path / "a.safetensors")
    assert again.lam_ == np.inf and again.certificate_ is None
    np.testing.assert_array_equal(again.matrix_, np.eye(5))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"matrix": np.eye(3)[:, :2]}, "'matrix' has the shape"),
        ({"matrix": np.full((2, 2), np.nan)}, "is not finite"),
        ({"lam": -1.0}, "lam is -1.0"),
        ({"settings": {}}, "header is not whole"),
        ({"evaluation": {"rows": 3}}, "damaged"),
        ({"certificate": {"bound": 1.0}}, "damaged"),
    ],
)
def test_damaged_files_are_refused(fitted, tmp_path, change, message):
    from mahalo.persistence import FEEDBACK

    path = tmp_path / "a.safetensors"
    fitted.save(path)
    contents = FEEDBACK.read(path)
    fields, arrays = dict(contents.fields), dict(contents.arrays)
    for name, value in change.items():
        (arrays if name == "matrix" else fields)[name] = value
    FEEDBACK.contents(fields, arrays).write(path)
    with pytest.raises(ValueError, match=message):
        QueryAdapter.load(path)


def test_files_of_other_kinds_are_refused(tmp_path, rng):
    from mahalo import MetricLearner

    X = rng.normal(size=(30, 3))
    MetricLearner().fit(X, np.arange(30) % 2).metric_.save(tmp_path / "m.safetensors")
    with pytest.raises(ValueError, match="does not say 'mahalo-feedback' but 'mahalo-metric'"):
        QueryAdapter.load(tmp_path / "m.safetensors")


def test_unfitted_adapters_say_so(tmp_path):
    with pytest.raises(NotFittedError):
        QueryAdapter().transform(np.eye(3))
    with pytest.raises(NotFittedError):
        QueryAdapter().save(tmp_path / "a.safetensors")


# -- bad input -----------------------------------------------------------------------------------------------

X = np.random.default_rng(0).normal(size=(6, 3))
NAMES = list("abcdef")


@pytest.mark.parametrize(
    ("relevance", "options", "message"),
    [
        ([(0, 9)], {}, "names document 9, but documents has 6 rows, counted from 0"),
        ([(9, 0)], {}, "names query 9, but queries has 6 rows"),
        ([(0, -1)], {}, "must be row indices ≥ 0"),
        ([("a", "z")], {"query_index": NAMES, "document_index": NAMES}, r"not in index: 'z'. document_index= lists"),
        ([("z", "a")], {"query_index": NAMES, "document_index": NAMES}, r"not in index: 'z'. query_index= lists"),
        ([("a", 0)], {"query_index": NAMES[:5]}, "query_index must name the 6 rows of queries; got 5 names"),
        ([(0, "a")], {"document_index": ["a", "a", *"bcde"]}, "document_index must name every row once; 'a' occur"),
        ([("a", "b")], {}, "integer row indices"),
        ([(0, 1, 2, 3)], {}, r"\(query, document, grade\) rows; got \(0, 1, 2, 3\)"),
        ([(0, 1, 1), (0, 1, 2)], {}, r"relevance \(0, 1, 2\): this query and document have another grade already"),
        ([(0, 1, np.nan)], {}, "grades must be finite"),
        ([(0, 1, "good")], {}, "grades must be numbers"),
        ([], {}, "no query has a relevant document"),
        ([(0, 1, 0), (1, 2, -1)], {}, "no query has a relevant document: none of the 2 grades is above 0"),
        ([(0, d) for d in range(6)], {}, "query row 0: all 6 documents are relevant to it, so that no negatives"),
    ],
)
def test_bad_judgements(relevance, options, message):
    with pytest.raises(ValueError, match=message):
        QueryAdapter(lam=1.0).fit(X, X, relevance, **options)


def test_queries_without_a_relevant_document_are_named():
    with pytest.warns(UserWarning, match="1 query has no relevant document .* the first is 'c'"):
        QueryAdapter(lam=1.0).fit(X, X, [("a", 1, 1), ("b", 2, 2), ("c", 3, 0)], query_index=NAMES)


@pytest.mark.parametrize(
    ("queries", "documents", "message"),
    [
        (X[:, :2], X, "queries have 2 columns and documents 3; encode both with the same encoder"),
        (X[0], X, "queries must have two dimensions"),
        (np.where(X[2, 1] == X, np.nan, X), X, "queries contains NaN"),
        (X, np.full_like(X, np.inf), "documents contains infinity"),
        (np.zeros_like(X), X, "rows other than zero"),
    ],
)
def test_bad_rows(queries, documents, message):
    with pytest.raises(ValueError, match=message):
        QueryAdapter(lam=1.0).fit(queries, documents, [(0, 1), (1, 2)])


def test_transform_wants_the_columns_of_the_fit():
    adapter = QueryAdapter(lam=1.0).fit(X, X, [(0, 1), (1, 2)])
    with pytest.raises(ValueError, match="2 columns, but the adapter was fitted to 3"):
        adapter.transform(X[:, :2])


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"lam": 0.0}, "lam, or None to choose it by held-out searches, must be a positive number; got 0.0"),
        ({"lam": True}, "must be a positive number; got True"),
        ({"temperature": -1}, "temperature, or None .* must be a positive number; got -1"),
        ({"n_negatives": 0}, "n_negatives must be a positive integer"),
        ({"max_iter": 1.5}, "max_iter must be a positive integer"),
        ({"n_components": 0}, "n_components must be a positive integer or None"),
        ({"n_folds": 1}, "n_folds must be at least 2"),
        ({"tol": 0}, "tol must be a positive number; got 0"),
        ({"max_loss": -0.1}, "max_loss, or 0, must be a positive number; got -0.1"),
        ({"weights": "all"}, "weights must be 'query', 'pair' or 'grade'"),
    ],
)
def test_bad_parameters(parameters, message):
    with pytest.raises(ValueError, match=message):
        QueryAdapter(**parameters).fit(X, X, [(0, 1), (1, 2)])
