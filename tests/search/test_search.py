"""Indexes return the neighbours that the metric's distances give."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits
from sklearn.neighbors import NearestNeighbors

from mahalo import MetricLearner
from mahalo.embeddings import EmbeddingAdapter
from mahalo.metric import Scaling, absorb_scaling
from mahalo.search import Index, build_index, load_index

GRAPHS = ("faiss", "usearch")
FORMS = {
    "full": {},
    "normalised": {"normalize": True},
    "low rank": {"basis": 5},
    "low rank, dense prior": {"basis": 5, "prior": "within", "residual": 0.4},
    "basis alone": {"basis": 5, "residual": False},
    "leading": {"n_components": 6, "prior": "covariance"},
    "rbf": {"kernel": "rbf"},
    "rbf, normalised": {"kernel": "poly", "normalize": True},
    "rbf, basis": {"kernel": "rbf", "basis": 8, "residual": False},
}


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:700] / 16.0, y[:700]


def learned(digits, **options):
    X, y = digits
    return MetricLearner(random_state=0, **options).fit(X[:150], y[:150]).metric_


def nearest(metric, Q, X, k):
    """Return the k nearest rows by sorting all distances: the expected result of an index."""
    D = metric.distances(Q, X)
    order = np.argsort(D, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(D, order, axis=1), order


# -- exact ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_exact_search_agrees_with_sorted_distances(digits, form, sparse):
    metric, (X, _) = learned(digits, **form), digits
    stored, queries = (sp.csr_array(X[200:]), sp.csr_array(X[:200])) if sparse else (X[200:], X[:200])
    found = build_index(metric, stored).kneighbors(queries, 7)
    distances, order = nearest(metric, X[:200], X[200:], 7)
    np.testing.assert_allclose(found.distances, distances, atol=2e-7)
    assert np.array_equal(found.ids, order)


@pytest.mark.parametrize(("algorithm", "atol"), [("kd_tree", 1e-12), ("brute", 1e-5)])
def test_exact_ties_with_scikit_learn(digits, algorithm, atol):
    metric, (X, _) = learned(digits, prior="covariance"), digits
    T = metric.transform(X)
    found = build_index(metric, X).kneighbors(X, 10)
    distances, order = NearestNeighbors(n_neighbors=10, algorithm=algorithm).fit(T).kneighbors(T)
    np.testing.assert_allclose(found.distances, distances, atol=atol)
    assert np.array_equal(found.ids, order)


def test_ties_are_in_order_of_addition():
    rng = np.random.default_rng(0)
    base = rng.integers(0, 2, (40, 6)).astype(float)
    metric = MetricLearner().fit(np.unique(base, axis=0), np.arange(len(np.unique(base, axis=0))) % 2).metric_
    X = np.tile(base, (10, 1))
    found = build_index(metric, X).kneighbors(base, 5)
    for position, ids in enumerate(found.ids):
        same = np.flatnonzero((base[position] == X).all(axis=1))
        assert ids.tolist() == same[:5].tolist()
    np.testing.assert_array_equal(found.distances, 0.0)


def test_far_from_the_origin_in_single_precision(digits):
    X, y = digits
    metric = MetricLearner().fit(X[:150], y[:150]).metric_
    far = (X + 1000.0).astype(np.float32)
    found = build_index(metric, far[200:]).kneighbors(far[:50], 5)
    queries, stored = (metric.transform(rows.astype(np.float64)) for rows in (far[:50], far[200:]))
    D = np.sqrt(((queries[:, None] - stored[None]) ** 2).sum(axis=2))
    np.testing.assert_allclose(found.distances, np.sort(D, axis=1)[:, :5], rtol=1e-10)


@pytest.mark.parametrize("offset", [10.0, 1e4])
@pytest.mark.parametrize("form", ["full", "low rank, dense prior", "basis alone", "leading", "rbf"])
def test_near_rows_in_single_precision(form, offset):
    """Rounded to single, vectors of rows so near to each other would keep one digit of their distance, or none."""
    rng = np.random.default_rng(0)
    X = (offset + rng.standard_normal((40, 20))).astype(np.float32)
    near = (X + 1e-5 * offset * rng.standard_normal(X.shape)).astype(np.float32)
    metric = MetricLearner(**FORMS[form]).fit(X.astype(np.float64), np.arange(40) % 3).metric_
    index = build_index(metric, X[:30])
    index.add(X[30:])
    found = index.kneighbors(near, 1)
    assert np.array_equal(found.ids[:, 0], np.arange(40))
    exact = metric.pair_distances(near.astype(np.float64), X.astype(np.float64))
    np.testing.assert_allclose(found.distances[:, 0], exact, rtol=1e-6)


@pytest.mark.parametrize("backend", GRAPHS)
def test_graphs_far_from_the_origin(digits, backend):
    pytest.importorskip(backend)
    metric, (X, _) = learned(digits), digits
    far = (X + 1e4).astype(np.float32)
    found = build_index(metric, far[200:], backend).kneighbors(far[:50], 5)
    exact, order = nearest(metric, far[:50], far[200:], 5)
    assert np.mean(found.ids == order) > 0.95
    np.testing.assert_allclose(found.distances[found.ids == order], exact[found.ids == order], rtol=1e-5)


@pytest.mark.parametrize("form", ["full", "low rank", "rbf"])
def test_radius(digits, form):
    metric, (X, _) = learned(digits, **FORMS[form]), digits
    D = metric.distances(X[:40], X[200:])
    radius = float(np.quantile(D, 0.02))
    stored = sp.csr_array(X[200:]) if form == "low rank" else X[200:]
    distances, ids = build_index(metric, stored).radius_neighbors(X[:40], radius)
    for row, (d, i) in enumerate(zip(distances, ids, strict=True)):
        assert set(i.tolist()) == set(np.flatnonzero(D[row] <= radius).tolist())
        assert (np.diff(d) >= 0).all()


def test_wide_sparse_rows_stay_sparse(monkeypatch):
    rng = np.random.default_rng(0)
    X = sp.random_array((300, 40_000), density=1e-3, format="csr", random_state=rng)
    metric = MetricLearner(basis=4).fit(X, rng.integers(0, 3, 300)).metric_

    def refuse(self, *args, **kwargs):
        assert self.shape[1] < 40_000, "sparse rows were made dense"
        return plain(self, *args, **kwargs)

    plain = sp.csr_array.toarray
    monkeypatch.setattr(sp.csr_array, "toarray", refuse)
    found = build_index(metric, X).kneighbors(X[:20], 6)
    assert np.array_equal(found.ids, nearest(metric, X[:20], X, 6)[1])


def test_objects_under_a_callable_kernel():
    words = ["tree", "trees", "three", "car", "cart", "carts", "sea", "seas", "season", "tea"] * 2

    def kernel(A, B):
        return np.array([[len(set(a) & set(b)) + (a == b) for b in B] for a in A], dtype=float)

    metric = MetricLearner(kernel=kernel, psd="shift").fit(words, [w[0] for w in words]).metric_
    index = build_index(metric, words)
    assert index.kneighbors(["cars"], 3).ids.shape == (1, 3)
    with pytest.raises(ValueError, match="cannot be saved"):
        index.save("nowhere.safetensors")


def test_a_precomputed_kernel_with_a_residual_says_what_to_do(digits):
    X, y = digits
    metric = MetricLearner(kernel="precomputed").fit(X[:60] @ X[:60].T, y[:60]).metric_
    with pytest.raises(ValueError, match="cross="):
        build_index(metric, X[:10] @ X[:60].T)


# -- learners, ids, adding -----------------------------------------------------------------------------------------


def test_learners_and_adapters_are_metrics_too(digits):
    X, y = digits
    adapter = EmbeddingAdapter(gammas=[0.1], prior="within", residual=0.2).fit(X[:300], y[:300])
    found = build_index(adapter, X).kneighbors(X[:30], 4)
    assert np.array_equal(found.ids, build_index(adapter.metric_, X).kneighbors(X[:30], 4).ids)
    with pytest.raises(ValueError, match="fitted"):
        build_index(MetricLearner(), X)


@pytest.mark.parametrize("backend", ["exact", *GRAPHS])
def test_rows_added_are_found_by_their_ids(digits, backend):
    metric, (X, _) = learned(digits), digits
    names = [f"row {k}" for k in range(len(X))]
    index = build_index(metric, X[:400], backend, ids=names[:400])
    index.add(X[400:], ids=names[400:])
    assert len(index) == len(X)
    found = index.kneighbors(X, 1).ids.ravel() == names
    assert found.all() if backend == "exact" else found.mean() >= 0.99


def test_invalid_ids_are_refused(digits):
    metric, (X, _) = learned(digits), digits
    with pytest.raises(ValueError, match="unique; 3 occurs"):
        build_index(metric, X[:3], ids=[3, 4, 3])
    with pytest.raises(ValueError, match="integers or strings"):
        build_index(metric, X[:2], ids=[0.5, 1.0])
    with pytest.raises(ValueError, match="one entry for each of the 2 rows"):
        build_index(metric, X[:2], ids=[1, 2, 3])
    index = build_index(metric, X[:2], ids=["a", "b"])
    with pytest.raises(ValueError, match="ids of this index are strings; pass"):
        index.add(X[2:3])
    with pytest.raises(ValueError, match="are strings; got integers"):
        index.add(X[2:3], ids=[1])
    with pytest.raises(ValueError, match="occurs more than once"):
        index.add(X[2:3], ids=["a"])


def test_bad_arguments_say_so(digits):
    metric, (X, _) = learned(digits), digits
    with pytest.raises(ValueError, match="backend must be"):
        build_index(metric, X, "annoy")
    with pytest.raises(ValueError, match="takes no options"):
        build_index(metric, X, connectivity=8)
    with pytest.raises(ValueError, match="connectivity must lie between"):
        build_index(metric, X, "faiss", connectivity=1)
    with pytest.raises(ValueError, match="positive integer"):
        build_index(metric, X).kneighbors(X, 0)
    with pytest.raises(ValueError, match="approximate"):
        build_index(metric, X, "usearch").radius_neighbors(X, 1.0)
    with pytest.raises(ValueError, match="at least one row"):
        build_index(metric, X[:0])


def test_more_neighbours_than_rows(digits):
    metric, (X, _) = learned(digits), digits
    for backend in ("exact", *GRAPHS):
        assert build_index(metric, X[:5], backend).kneighbors(X[:2], 9).ids.shape == (2, 5)


# -- approximate ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["full", "normalised", "low rank", "rbf, basis"])
@pytest.mark.parametrize("backend", GRAPHS)
def test_graphs_find_nearly_all_neighbours(digits, backend, form):
    metric, (X, _) = learned(digits, **FORMS[form]), digits
    exact = build_index(metric, X[100:]).kneighbors(X[:100], 10)
    found = build_index(metric, X[100:], backend).kneighbors(X[:100], 10)
    recall = np.mean([len(set(a) & set(b)) / 10 for a, b in zip(exact.ids, found.ids, strict=True)])
    assert recall >= 0.97
    np.testing.assert_allclose(found.distances[:, 0], exact.distances[:, 0], rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("backend", GRAPHS)
def test_graphs_measure_well_far_from_the_origin(digits, backend):
    X, y = digits
    far = X + 1e5
    metric = MetricLearner().fit(far[:150], y[:150]).metric_
    found, exact = (build_index(metric, far[200:], b).kneighbors(far[:20], 5) for b in (backend, "exact"))
    np.testing.assert_allclose(found.distances, exact.distances, rtol=1e-4)


@pytest.mark.parametrize("backend", GRAPHS)
def test_graphs_are_deterministic(backend, tmp_path):
    X = np.random.default_rng(0).standard_normal((4000, 8))
    metric = MetricLearner(random_state=0).fit(X[:40], np.arange(40) % 4).metric_
    for name in ("one", "two"):
        build_index(metric, X, backend).save(tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_parts_of_graphs_are_merged(digits):
    da = pytest.importorskip("dask.array")
    metric, (X, _) = learned(digits), digits
    exact = build_index(metric, X).kneighbors(X[:50], 5)
    for backend in GRAPHS:
        parts = build_index(metric, da.from_array(X + 0.0, chunks=(300, -1)), backend).kneighbors(X[:50], 5)
        np.testing.assert_allclose(parts.distances, exact.distances, atol=1e-3)


# -- parts ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["full", "normalised", "low rank", "rbf"])
def test_parts_of_a_dask_array_give_the_same_neighbours(digits, form):
    da = pytest.importorskip("dask.array")
    metric, (X, _) = learned(digits, **FORMS[form]), digits
    whole = build_index(metric, X)
    parts = build_index(metric, da.from_array(X, chunks=((300, 1, 250, 149), (40, 24))))
    assert len(parts.parts) == 4
    for index in (whole, parts):
        index.add(X[:20] + 0.01)
    a, b = whole.kneighbors(X[:50], 12), parts.kneighbors(X[:50], 12)
    assert np.array_equal(a.ids, b.ids)
    np.testing.assert_allclose(a.distances, b.distances, atol=1e-7)
    radius = float(np.median(a.distances))
    for p, q in zip(whole.radius_neighbors(X[:9], radius).ids, parts.radius_neighbors(X[:9], radius).ids, strict=True):
        assert np.array_equal(p, q)


@pytest.mark.parametrize("backend", ["exact", *GRAPHS])
def test_partitions_of_a_dask_dataframe_are_parts(digits, backend):
    dd, pd = pytest.importorskip("dask.dataframe"), pytest.importorskip("pandas")
    metric, (X, _) = learned(digits), digits
    frame = pd.DataFrame(X, columns=[f"pixel {j}" for j in range(X.shape[1])])
    parts = build_index(metric, dd.from_pandas(frame, npartitions=3), backend)
    assert len(parts.parts) == 3
    whole = build_index(metric, X).kneighbors(X[:20], 5)
    np.testing.assert_allclose(parts.kneighbors(X[:20], 5).distances, whole.distances, atol=1e-3)


def test_parts_smaller_than_k(digits):
    da = pytest.importorskip("dask.array")
    metric, (X, _) = learned(digits), digits
    parts = build_index(metric, da.from_array(X[:30], chunks=(3, -1)))
    assert np.array_equal(parts.kneighbors(X[:5], 11).ids, build_index(metric, X[:30]).kneighbors(X[:5], 11).ids)


# -- files ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("strings", [False, True], ids=["numbers", "strings"])
@pytest.mark.parametrize("backend", ["exact", *GRAPHS])
def test_saved_and_loaded_answers_the_same(digits, backend, strings, tmp_path):
    metric, (X, _) = learned(digits, normalize=True), digits
    ids = [f"ä{k}" for k in range(len(X))] if strings else None
    index = build_index(metric, X, backend, ids=ids)
    index.save(tmp_path / "index.safetensors")
    loaded = load_index(tmp_path / "index.safetensors")
    assert isinstance(loaded, Index) and loaded.backend == backend and repr(loaded) == repr(index)
    a, b = index.kneighbors(X[:80], 6), loaded.kneighbors(X[:80], 6)
    assert np.array_equal(a.ids, b.ids)
    np.testing.assert_array_equal(a.distances, b.distances)
    more = {"ids": ["new"]} if strings else {}
    loaded.add(X[:1] + 0.5, **more)
    assert loaded.kneighbors(X[:1] + 0.5, 1).ids[0, 0] == ("new" if strings else len(X))


@pytest.mark.parametrize("form", ["low rank", "rbf", "basis alone"])
def test_sparse_and_kernel_indexes_are_saved_too(digits, form, tmp_path):
    metric, (X, _) = learned(digits, **FORMS[form]), digits
    stored = X if form == "rbf" else sp.csr_array(X)
    index = build_index(metric, stored)
    index.save(tmp_path / "index.safetensors")
    a, b = index.kneighbors(X[:80], 6), load_index(tmp_path / "index.safetensors").kneighbors(X[:80], 6)
    assert np.array_equal(a.ids, b.ids)


@pytest.mark.parametrize("backend", GRAPHS)
def test_links_that_lead_nowhere_are_refused(digits, backend, tmp_path):
    """A hostile file whose checksum is right: its graph is not handed to the library."""
    from mahalo.persistence import INDEX

    metric, (X, _) = learned(digits), digits
    path = tmp_path / "index.safetensors"
    build_index(metric, X, backend).save(path)
    contents = INDEX.read(path)
    arrays = contents.arrays
    name = {"faiss": "0.links", "usearch": "0.graph"}[backend]
    if backend == "faiss":
        arrays[name][5] = 10**6
    else:
        tape = len(X) * 2 + 64 + 40
        arrays[name][tape + 14 : tape + 18] = np.array([10**6], dtype=np.uint32).view(np.uint8)
    contents.write(path)
    with pytest.raises(ValueError, match="links of its graph are out of range"):
        load_index(path)


def test_what_is_no_index_says_so(digits, tmp_path):
    metric, _ = learned(digits), digits
    metric.save(tmp_path / "metric.safetensors")
    with pytest.raises(ValueError, match="does not say 'mahalo-index'"):
        load_index(tmp_path / "metric.safetensors")
    (tmp_path / "text").write_text("hello")
    with pytest.raises(ValueError, match="not a whole safetensors file"):
        load_index(tmp_path / "text")


# -- distances of stored rows -----------------------------------------------------------------------------------


# Graphs store the transform, which for "low rank" and "rbf" leaves a part of new rows out.
STORED = [("exact", form, sparse) for form in ("full", "normalised", "low rank", "rbf", "leading") for sparse in (0, 1)]
STORED += [(backend, form, 0) for backend in GRAPHS for form in ("full", "normalised", "leading")]


@pytest.mark.parametrize(("backend", "form", "sparse"), STORED)
def test_distances_of_stored_rows_are_those_of_the_metric(digits, backend, form, sparse):
    da = pytest.importorskip("dask.array")
    if backend != "exact":
        pytest.importorskip(backend)
    metric, (X, _) = learned(digits, **FORMS[form]), digits
    stored = sp.csr_array(X[100:]) if sparse else da.from_array(X[100:], chunks=(200, -1))
    index = build_index(metric, stored, backend, ids=[f"row {k}" for k in range(100, 700)])
    rows = [650, 100, 350, 101, 650]  # of several parts, in no order, one twice
    found = index.space.distances(index.map(X[:20]), index.stored(f"row {k}" for k in rows))
    np.testing.assert_allclose(found, metric.distances(X[:20], X[rows]), atol=1e-6)
    index.add(X[:2], ids=["a", "b"])
    ends = index.stored(["b", "row 200"]), index.stored(["row 300", "a"])
    np.testing.assert_allclose(
        index.space.pair_distances(*ends), metric.pair_distances(X[[1, 200]], X[[300, 0]]), atol=1e-6
    )
    assert index.stored([]).shape[0] == 0
    with pytest.raises(ValueError, match="no row has the id 'row 1'"):
        index.stored(["a", "row 1"])


def test_distances_beyond_double_precision_are_not_zero(digits):
    X, _ = digits
    index = build_index(learned(digits), X)
    for size in (1e170, 1e308):
        with np.errstate(over="ignore", invalid="ignore"):
            distances = index.kneighbors(np.full((1, X.shape[1]), size), 3).distances
        assert not np.isfinite(distances).any()


@pytest.mark.parametrize("backend", ["exact", "faiss"])
def test_the_metric_is_decomposed_once_for_all_searches(digits, backend, monkeypatch):
    if backend != "exact":
        pytest.importorskip(backend)
    X, _ = digits
    metric = absorb_scaling(learned(digits), Scaling.of(X))
    index, found = build_index(metric, X, backend), []
    monkeypatch.setattr(np.linalg, "eigh", found.append)
    for row in X[:3]:
        index.kneighbors(row[None], 3)
    assert found == []
