"""Ten thousand damaged files of every kind: each is refused with a ValueError, and nothing in it is run."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.datasets import load_wine

import mahalo
from mahalo import MetricLearner, OnlineMetricLearner
from mahalo.embeddings import EmbeddingAdapter
from mahalo.pairs import PairClassifier
from mahalo.persistence import _digest
from mahalo.search import build_index, load_index

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
def test_hostile_numbers_with_a_right_checksum_are_refused_or_harmless(things, tmp_path, name, n):
    """Whoever writes a file can write its checksum too: numbers must be checked one by one before they are used."""
    (thing, load), path, rng = things[name], tmp_path / name, np.random.default_rng(0)
    thing.save(path)
    data = path.read_bytes()
    for _ in range(n):
        path.write_bytes(forged(data, rng))
        try:
            loaded = load(path)
        except ValueError:
            continue
        _use(loaded, np.zeros((2, 13)))


def forged(data: bytes, rng: np.random.Generator) -> bytes:
    """Some numbers of one array, or one entry of the header, changed, and the checksum made to fit."""
    from safetensors.numpy import load, save

    length = int.from_bytes(data[:8], "little")
    header = json.loads(json.loads(data[8 : 8 + length])["__metadata__"]["mahalo"])
    header.pop("sha256")
    arrays = {name: array.copy() for name, array in load(data).items()}
    if rng.random() < 0.8:
        name = sorted(arrays)[rng.integers(len(arrays))]
        raw = arrays[name].reshape(-1).view(np.uint8)
        if len(raw):
            places = rng.integers(0, len(raw), rng.integers(1, 5))
            raw[places] = rng.choice([0, 1, 3, 127, 128, 255], len(places))
    else:
        name = sorted(header)[rng.integers(len(header))]
        header[name] = [None, -1, 1e308, "x", [], {}, True][rng.integers(7)]
    header["sha256"] = _digest(header, arrays)
    return save(arrays, metadata={"mahalo": json.dumps(header)})


def _use(loaded, X) -> None:
    """Whatever was accepted can be asked without harm; it may say that numbers are too large."""
    with np.errstate(all="ignore"):
        try:
            if hasattr(loaded, "kneighbors"):
                loaded.kneighbors(X, 3)
            elif hasattr(loaded, "predict_proba"):
                loaded.predict_proba(X, [[0, 1]])
            elif hasattr(loaded, "partial_fit"):
                loaded.partial_fit(X, [0, 1]).transform(X)
            else:
                loaded.transform(X)
        except (ValueError, np.linalg.LinAlgError):
            pass
