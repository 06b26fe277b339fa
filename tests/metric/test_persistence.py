"""Metrics as files: the same bits back, or a clear error; nothing in a file is ever run."""

from __future__ import annotations

import errno
import json
import os
import pickle
import zipfile

import numpy as np
import pytest
from builders import labelled_data
from safetensors.numpy import save as to_bytes
from safetensors.numpy import save_file

import mahalo
from mahalo import Constraints, MetricLearner, persistence


def fitted(rng, kind):
    X, y = labelled_data(rng, n=12, d=3)
    wide = rng.standard_normal((12, 30))
    few = Constraints.from_pairs([[0, 1]], [[2, 3]], upper=0.5, lower=90.0)
    return {
        "full": lambda: MetricLearner().fit(X, y),
        "diagonal": lambda: MetricLearner(prior="diagonal").fit(X, y),
        "covariance": lambda: MetricLearner(prior="covariance").fit(X, y),
        "span": lambda: MetricLearner().fit(wide, constraints=few),
        "shrunk span": lambda: MetricLearner(prior="covariance", n_components=2).fit(wide, constraints=few),
        "components": lambda: MetricLearner(n_components=2).fit(X, y),
    }[kind]().metric_


KINDS = ["full", "diagonal", "covariance", "span", "shrunk span", "components"]


@pytest.fixture
def saved(rng, tmp_path):
    path = tmp_path / "metric.safetensors"
    fitted(rng, "diagonal").save(path)
    return path


def same(a, b):
    return (a is None and b is None) or (np.array_equal(a, b) and a.dtype == b.dtype)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("as_path", [str, lambda p: p])
def test_round_trip_keeps_every_bit(rng, tmp_path, kind, as_path):
    metric, path = fitted(rng, kind), as_path(tmp_path / "metric.safetensors")
    metric.save(path)
    loaded = mahalo.load(path)
    assert same(loaded.F, metric.F)
    assert same(loaded.rotation, metric.rotation)
    assert same(loaded.coordinates.basis, metric.coordinates.basis)
    assert same(loaded.coordinates.prior.root, metric.coordinates.prior.root)
    assert loaded.coordinates.prior.shrinkage == metric.coordinates.prior.shrinkage
    X = rng.standard_normal((5, metric.n_features))
    np.testing.assert_array_equal(loaded.distances(X), metric.distances(X))
    np.testing.assert_array_equal(loaded.transform(X), metric.transform(X))


def test_saving_twice_writes_the_same_file(rng, tmp_path):
    metric = fitted(rng, "shrunk span")
    metric.save(tmp_path / "a")
    metric.save(tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_header_is_plain_json(saved):
    data = saved.read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(json.loads(data[8 : 8 + length])["__metadata__"]["mahalo"])
    assert header["format"] == "mahalo-metric"
    assert header["n_features"] == 3


# -- damage ----------------------------------------------------------------------------------------------------


def test_truncated_at_every_length(saved, tmp_path):
    data, broken = saved.read_bytes(), tmp_path / "broken"
    for length in range(len(data)):
        broken.write_bytes(data[:length])
        with pytest.raises(ValueError, match=r"not a whole safetensors file.*damaged, truncated or of another"):
            mahalo.load(broken)
    broken.write_bytes(data)
    mahalo.load(broken)


def test_every_flipped_bit_is_noticed(saved, tmp_path):
    data, broken = saved.read_bytes(), tmp_path / "broken"
    for position in range(len(data)):
        bit = 1 << (position * 5 + 3) % 8  # one bit of each byte, all eight in turn
        broken.write_bytes(data[:position] + bytes([data[position] ^ bit]) + data[position + 1 :])
        with pytest.raises(ValueError, match=r"broken.*(save|Save|Upgrade|does not say)"):
            mahalo.load(broken)


def test_bytes_at_the_end_are_noticed(saved):
    saved.write_bytes(saved.read_bytes() + b"\0" * 8)
    with pytest.raises(ValueError, match="not a whole safetensors file"):
        mahalo.load(saved)


class Bomb:
    """Unpickling this writes a file."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return os.mkdir, (self.path,)


def test_foreign_files_are_refused_and_not_run(tmp_path):
    target = tmp_path / "exploded"
    files = {
        "empty": b"",
        "text": b"metric: yes\n" * 10,
        "json": json.dumps({"format": "mahalo-metric"}).encode(),
        "pickle": pickle.dumps(Bomb(target)),
        "pickle 0": pickle.dumps(Bomb(target), protocol=0),
        "huge header": (2**63).to_bytes(8, "little") + b"{}",
        "deep header": (200_000).to_bytes(8, "little") + b"[" * 200_000,
    }
    np.save(tmp_path / "array.npy", np.array([Bomb(target)], dtype=object), allow_pickle=True)
    files["npy"] = (tmp_path / "array.npy").read_bytes()
    with zipfile.ZipFile(tmp_path / "archive.zip", "w") as archive:
        archive.writestr("data.pkl", files["pickle"])
    files["zip"] = (tmp_path / "archive.zip").read_bytes()
    for name, content in files.items():
        path = tmp_path / f"{name}.safetensors"
        path.write_bytes(content)
        with pytest.raises(ValueError, match="not a whole safetensors file"):
            mahalo.load(path)
    assert not target.exists()
    pickle.loads(files["pickle"])  # the bomb works
    assert target.exists()


def test_other_safetensors_files(tmp_path):
    path = tmp_path / "weights.safetensors"
    arrays = {"core": np.eye(3)}
    for metadata in (
        None,
        {"format": "pt"},
        {"mahalo": "not json"},
        {"mahalo": "[1, 2]"},
        {"mahalo": "null"},
        {"mahalo": '{"format": "mahalo-index", "version": 1}'},
        {"mahalo": "[" * 100_000},
    ):
        save_file(arrays, path, metadata=metadata)
        with pytest.raises(ValueError, match="is a safetensors file, but its header does not say 'mahalo-metric'"):
            mahalo.load(path)


def write(path, header, arrays):
    """A file with our mark and a right fingerprint, whatever is in it."""
    arrays = {name: np.require(a, requirements="C") for name, a in arrays.items()}
    header = header | {"sha256": persistence._digest(header, arrays)}
    path.write_bytes(to_bytes(arrays, metadata={"mahalo": json.dumps(header)}))


GOOD = {"format": "mahalo-metric", "version": 1, "kernel": "linear", "eta": 1.0, "n_features": 3, "shrinkage": 0.0}
GOOD |= {"residual": True}
EYE = {"core": np.eye(3)}


@pytest.mark.parametrize(
    ("header", "arrays", "message"),
    [
        ({"version": 3}, EYE, r"format version 3; this mahalo reads version 2.*Upgrade mahalo"),
        ({"version": None}, EYE, r"format version None"),
        ({"n_features": "3"}, EYE, r"is damaged: n_features is '3'"),
        ({"n_features": 0}, EYE, r"n_features is 0"),
        ({"n_features": 10**9}, EYE, r"'core' of shape \(3, 3\) does not belong in a metric of 1000000000"),
        ({"shrinkage": "none"}, EYE, r"shrinkage is 'none'"),
        ({}, {}, r"core matrix is missing"),
        ({}, {"core": np.eye(2)}, r"'core' of shape \(2, 2\) does not belong in a metric of 3 features"),
        ({}, {"core": np.eye(3, dtype=np.float32)}, r"'core' has numbers that are not finite float64"),
        ({}, {"core": np.diag([1, 1, np.nan])}, r"'core' has numbers that are not finite"),
        ({}, {"core": np.triu(np.ones((3, 3)))}, r"core matrix is not symmetric"),
        ({}, {"core": -np.eye(3)}, r"core matrix has negative eigenvalues"),
        ({}, {"core": np.diag([1.0, 1.0, -1e-3])}, r"core matrix has negative eigenvalues"),
        ({}, {"core": np.full((3, 3), 2.0) - np.eye(3) * 1.5}, r"core matrix has negative eigenvalues"),
        ({"eta": -1.0}, EYE, r"eta=-1.0"),
        ({}, EYE | {"rotation": np.diag([1.0, 1.0, 2.0])}, r"columns of 'rotation' are not orthonormal"),
        ({}, {"core": np.eye(2), "basis": np.eye(3)[:, [0, 0]]}, r"columns of 'basis' are not orthonormal"),
        ({}, EYE | {"basis": np.eye(3)[:, :2]}, r"'core' of shape \(3, 3\) does not belong"),
        ({}, {"core": np.eye(2), "basis": np.eye(4)[:, :2]}, r"'basis' of shape \(4, 2\) does not belong"),
        ({}, EYE | {"prior_root": np.ones(4)}, r"'prior_root' of shape \(4,\) does not belong"),
        ({}, EYE | {"directions": np.ones((2, 4))}, r"'directions' of shape \(2, 4\) does not belong"),
        ({}, EYE | {"extra": np.ones(3)}, r"'extra' of shape \(3,\) does not belong"),
        ({}, EYE | {"basis": np.array(1.0)}, r"an array has no dimensions"),
        ({}, EYE | {"directions": np.array(1.0)}, r"an array has no dimensions"),
    ],
)
def test_well_formed_nonsense(tmp_path, header, arrays, message):
    path = tmp_path / "metric.safetensors"
    write(path, GOOD, EYE)
    np.testing.assert_array_equal(mahalo.load(path).matrix, np.eye(3))
    write(path, GOOD | header, arrays)
    with pytest.raises(ValueError, match=message):
        mahalo.load(path)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_what_the_file_holds_is_not_taken_from_outside(rng, tmp_path, kernel):
    X, y = labelled_data(rng)
    MetricLearner(kernel=kernel).fit(X, y).metric_.save(tmp_path / "m")
    with pytest.raises(ValueError, match=f"kernel= is for metrics learned with a callable; this one has .*'{kernel}'"):
        mahalo.load(tmp_path / "m", kernel=np.dot)
    with pytest.raises(ValueError, match="points= is for support points that are not vectors"):
        mahalo.load(tmp_path / "m", points=X)


def test_no_file(tmp_path):
    for path in (tmp_path / "missing.safetensors", tmp_path):
        with pytest.raises(FileNotFoundError, match="no file at"):
            mahalo.load(path)


# -- whole or not at all ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_failing_write_leaves_the_old_file(rng, saved, monkeypatch, step):
    before = saved.read_bytes()

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr(persistence.os, step, fail)
    with pytest.raises(OSError, match="disk full"):
        fitted(rng, "full").save(saved)
    assert saved.read_bytes() == before
    assert [p.name for p in saved.parent.iterdir()] == [saved.name]


def test_file_appears_only_when_it_is_whole(rng, saved, monkeypatch):
    """At the moment of the move, the new file is complete and the old one still in place."""
    before, replace = saved.read_bytes(), os.replace
    seen = []

    def watched(source, target):
        seen.append((saved.read_bytes() == before, mahalo.load(source)))
        replace(source, target)

    monkeypatch.setattr(persistence.os, "replace", watched)
    metric = fitted(rng, "full")
    metric.save(saved)
    assert seen[0][0]
    np.testing.assert_array_equal(seen[0][1].F, metric.F)
    np.testing.assert_array_equal(mahalo.load(saved).F, metric.F)


@pytest.mark.parametrize("step", ["fsync", "replace"])
@pytest.mark.parametrize("number", [errno.EACCES, errno.ENOSPC, errno.EROFS])
def test_a_failing_write_names_the_file_asked_for(rng, tmp_path, monkeypatch, step, number):
    def fail(*names):
        raise OSError(number, os.strerror(number), *names[:1])

    monkeypatch.setattr(persistence.os, step, fail)
    path = tmp_path / "metric.safetensors"
    with pytest.raises(OSError) as caught:
        fitted(rng, "full").save(path)
    assert str(caught.value) == f"[Errno {number}] could not save: {os.strerror(number)}: {str(path)!r}"
    assert caught.value.errno == number and isinstance(caught.value, PermissionError) == (number == errno.EACCES)
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="needs a folder that is closed to us")
def test_a_closed_folder_names_the_file_asked_for(rng, tmp_path):
    (tmp_path / "closed").mkdir(mode=0)
    path = tmp_path / "closed" / "metric.safetensors"
    with pytest.raises(PermissionError, match=r"could not save.*closed/metric.safetensors'$"):
        fitted(rng, "full").save(path)


def test_no_such_folder(rng, tmp_path):
    metric, folder = fitted(rng, "full"), tmp_path / "no such folder"
    with pytest.raises(FileNotFoundError) as caught:
        metric.save(folder / "metric.safetensors")
    assert str(caught.value) == f"no folder {str(folder)!r} to save 'metric.safetensors' in: make it first."
    with pytest.raises(IsADirectoryError, match=r"is a folder; name a file in it\.$"):
        metric.save(tmp_path)
    assert not list(tmp_path.iterdir())
