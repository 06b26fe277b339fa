"""Ten thousand damaged files of every kind: each is refused with a ValueError, and nothing in it is run."""

from __future__ import annotations

import contextlib
import json

import numpy as np
import pytest
from safetensors.numpy import load as from_bytes
from safetensors.numpy import save as to_bytes
from sklearn.datasets import load_wine

import mahalo
from mahalo import MetricLearner, OnlineMetricLearner
from mahalo.embeddings import EmbeddingAdapter
from mahalo.pairs import PairClassifier
from mahalo.persistence import _digest
from mahalo.search import Index, build_index, load_index

N_MUTATIONS = 10_000


def kinds():
    X, y = load_wine(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    learner = MetricLearner(basis=2).fit(X, y)
    return {
        "model": (learner.metric_, mahalo.load),
        "adapter": (EmbeddingAdapter(gammas=[0.1], residual=0.2, prior="within").fit(X, y), EmbeddingAdapter.load),
        "exact": (build_index(learner, X[:40], ids=[f"w{k}" for k in range(40)]), load_index),
        "faiss": (build_index(learner, X[:40], "faiss", connectivity=4), load_index),
        "usearch": (build_index(learner, X[:40], "usearch", connectivity=4), load_index),
        "classifier": (PairClassifier(MetricLearner(basis=2)).fit(X, y), PairClassifier.load),
        "stream": (OnlineMetricLearner(basis=2, n_rows_kept=20).partial_fit(X, y), OnlineMetricLearner.load),
    }


def mutated(data: bytes, rng: np.random.Generator) -> bytes:
    """Bits flipped, bytes overwritten, pieces cut out, doubled or swapped; sometimes all of it noise."""
    out = bytearray(data)
    a, b = sorted(rng.integers(0, len(data), 2).tolist())
    how = rng.integers(7)
    if how == 0:
        for place in rng.integers(0, len(data), rng.integers(1, 9)):
            out[place] ^= 1 << int(rng.integers(8))
    elif how == 1:
        out[a : a + 8] = rng.bytes(len(out[a : a + 8]))
    elif how == 2:
        out[a : a + 8] = b"\xff" * len(out[a : a + 8])
    elif how == 3:
        del out[a : b + 1]
    elif how == 4:
        out[b:b] = out[a : min(b, a + 64) + 1]
    elif how == 5:
        out[a : a + 16], out[b : b + 16] = out[b : b + 16], out[a : a + 16]
    else:
        out[: int(rng.integers(8, 200))] = rng.bytes(64)
    return bytes(out)


@pytest.fixture(scope="module")
def things():
    return kinds()


KINDS = ("model", "adapter", "exact", "faiss", "usearch", "classifier", "stream")
SOME_OR_ALL = [300, pytest.param(N_MUTATIONS, marks=pytest.mark.slow)]


@pytest.mark.parametrize("n", SOME_OR_ALL)
@pytest.mark.parametrize("name", KINDS)
def test_damage_is_refused(things, tmp_path, name, n):
    (thing, load), path, rng = things[name], tmp_path / name, np.random.default_rng(0)
    thing.save(path)
    data = path.read_bytes()
    load(path)
    for _ in range(n):
        damaged = mutated(data, rng)
        if damaged != data:
            path.write_bytes(damaged)
            with pytest.raises(ValueError, match=name):
                load(path)


@pytest.mark.parametrize("n", SOME_OR_ALL)
@pytest.mark.parametrize("name", KINDS)
def test_hostile_numbers_with_a_right_checksum_are_refused_or_answered_rightly(things, tmp_path, name, n):
    """Whoever writes a file can write its checksum too: what loads must answer by the formulas on its numbers."""
    (thing, load), path, rng = things[name], tmp_path / name, np.random.default_rng(0)
    thing.save(path)
    data = path.read_bytes()
    n_answered = 0
    for _ in range(n):
        header, arrays = forged(data, rng)
        path.write_bytes(as_file(header, arrays))
        try:
            loaded = load(path)
        except ValueError:
            continue
        n_answered += check_answers(loaded, header, arrays, rng.standard_normal((4, 13)))
    assert n_answered


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("wrong", ["negated", "indefinite"])
def test_cores_of_no_metric_are_refused(things, tmp_path, name, wrong):
    (thing, load), path = things[name], tmp_path / name
    thing.save(path)
    header, arrays = contents(path.read_bytes())
    core = next(key for key in arrays if key.removeprefix("metric.") == "core")
    values, vectors = np.linalg.eigh(arrays[core])
    values = -values if wrong == "negated" else np.r_[-1e-3 * values[-1], values[1:]]
    arrays[core] = (vectors * values) @ vectors.T
    if name == "stream":
        rank = len(arrays[core])
        arrays["F"][:rank, :rank] = arrays[core]
    path.write_bytes(as_file(header, arrays))
    with pytest.raises(ValueError, match=r"negative eigenvalues"):
        load(path)


def test_a_probability_that_grows_with_distance_is_refused(things, tmp_path):
    (thing, load), path = things["classifier"], tmp_path / "classifier"
    thing.save(path)
    header, arrays = contents(path.read_bytes())
    path.write_bytes(as_file(header | {"slope": -header["slope"]}, arrays))
    with pytest.raises(ValueError, match=r"calibration does not fall with distance"):
        load(path)


def contents(data: bytes) -> tuple[dict, dict[str, np.ndarray]]:
    length = int.from_bytes(data[:8], "little")
    header = json.loads(json.loads(data[8 : 8 + length])["__metadata__"]["mahalo"])
    header.pop("sha256")
    return header, {name: array.copy() for name, array in from_bytes(data).items()}


def as_file(header: dict, arrays: dict[str, np.ndarray]) -> bytes:
    """The bytes of a file with a right checksum."""
    return to_bytes(arrays, metadata={"mahalo": json.dumps(header | {"sha256": _digest(header, arrays)})})


def forged(data: bytes, rng: np.random.Generator) -> tuple[dict, dict[str, np.ndarray]]:
    """Some numbers of one array, or one entry of the header or of its metric's, changed."""
    header, arrays = contents(data)
    how = rng.random()
    if how < 0.8:
        name = sorted(arrays)[rng.integers(len(arrays))]
        raw = arrays[name].reshape(-1).view(np.uint8)
        if how < 0.1 and arrays[name].dtype.kind == "f":
            arrays[name] *= rng.choice([-1.0, 0.5, 1e-3, 1e3])
        elif len(raw):
            places = rng.integers(0, len(raw), rng.integers(1, 5))
            raw[places] = rng.choice([0, 1, 3, 127, 128, 255], len(places))
    else:
        of = header["metric"] if how > 0.9 and "metric" in header else header
        name = sorted(of)[rng.integers(len(of))]
        of[name] = [None, -1, -1.0, 1e308, "x", [], {}, True][rng.integers(8)]
    return header, arrays


def check_answers(loaded, header, arrays, X) -> bool:
    """Compare what a loaded file answers with the formulas; return whether there was something to compare."""
    parts = {name.removeprefix("metric."): array for name, array in arrays.items()}
    metric = next(
        m for m in (getattr(loaded, "metric", None), getattr(loaded, "metric_", None), loaded) if m is not None
    )
    with np.errstate(all="ignore"):
        expected, size = sq_distances(header.get("metric", header), parts, X)
        if not np.isfinite(expected).all() or not 0.0 < size < 1e12:
            return False  # numbers too large or too small to be compared
        close = {"rtol": 1e-6, "atol": 1e-6 * size}
        np.testing.assert_allclose(metric.distances(X, squared=True), expected, **close)
        T = metric.transform(X)
        np.testing.assert_allclose(((T[:, None] - T) ** 2).sum(axis=2), expected, **close)
        if isinstance(loaded, Index):
            check_neighbors(loaded, arrays, metric.transform(X), X)
        elif hasattr(loaded, "predict_proba"):
            probability = loaded.predict_proba(X, np.array([[0, 1], [1, 2], [2, 3]]))[:, 1]
            near_to_far = probability[np.argsort(expected[[0, 1, 2], [1, 2, 3]])]
            assert ((probability >= 0) & (probability <= 1)).all() and (np.diff(near_to_far) <= 1e-6).all()
        elif hasattr(loaded, "partial_fit"):
            with contextlib.suppress(ValueError):  # of steps that leave float64
                loaded.partial_fit(X, [0, 0, 1, 1])
            assert np.isfinite(loaded.transform(X)).all()
    return True


def sq_distances(header, arrays, X) -> tuple[np.ndarray, float]:
    """d² by W = R [ρη (I − QQᵀ) + QFQᵀ] Rᵀ, W0 = RRᵀ, and the size of its largest term."""
    d, Q, F = X.shape[1], arrays.get("basis"), arrays["core"]
    root = arrays.get("prior_root", np.ones(d))
    R = root if root.ndim == 2 else np.diag(root)
    if "prior_gain" in arrays:
        R = R @ (np.eye(d) + arrays["prior_directions"] * arrays["prior_gain"] @ arrays["prior_directions"].T)
    Q = np.eye(d) if Q is None else Q
    inside = header["residual"] * header["eta"] * (np.eye(d) - Q @ Q.T) + Q @ F @ Q.T
    Z = X @ R
    K = Z @ inside @ Z.T
    if header["normalize"]:
        length = np.sqrt(np.diag(K))
        return 2.0 - 2.0 * K / np.outer(length, length) if length.min() > 1e-6 else np.full_like(K, np.nan), 1.0
    return np.diag(K)[:, None] + np.diag(K) - 2.0 * K, float(np.abs(inside).max() * (Z**2).sum(axis=1).max())


def check_neighbors(index, arrays, T, X) -> None:
    distances, ids = index.kneighbors(X, 3)
    assert np.isin(ids, index.ids).all() and np.array_equal(distances, np.sort(distances, axis=1))
    if index.backend == "exact" and np.abs(arrays["0.vectors"]).max() < 1e6:
        D = np.linalg.norm(T[:, None] - arrays["0.vectors"], axis=2)
        np.testing.assert_allclose(distances, np.sort(D, axis=1)[:, :3], rtol=1e-6, atol=1e-6 * D.max())
