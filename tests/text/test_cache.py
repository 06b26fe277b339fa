"""Cache of vectors: nothing is encoded twice, and a cache that fails is reported once and left."""

from __future__ import annotations

import sqlite3
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from mahalo.text import cache_folder, load_encoder

TEXTS = ["lost card", "exchange rate", "top up failed"]


def one_warning(caught) -> str:
    assert len(caught) == 1
    return str(caught[0].message)


def test_the_second_encoder_encodes_nothing(letters):
    E = load_encoder(letters, name="letters").encode(TEXTS)
    again = load_encoder(letters, name="letters")
    letters.seen.clear()
    np.testing.assert_array_equal(again.encode(TEXTS[::-1]), E[::-1])
    assert not letters.seen
    again.encode([*TEXTS, "new"])
    assert letters.seen == ["new"]


@pytest.mark.parametrize("other", [{"name": "other"}, {"name": "letters", "version": "2"}])
def test_another_encoder_has_other_vectors(letters, other):
    first = load_encoder(letters, name="letters", version="1")
    first.encode(TEXTS)
    second = load_encoder(letters, **other)
    letters.seen.clear()
    second.encode(TEXTS)
    assert letters.seen == TEXTS and second.cache_path != first.cache_path


def test_texts_are_not_stored(letter_encoder):
    letter_encoder.encode(["secret words"])
    assert b"secret" not in letter_encoder.cache_path.read_bytes()


def test_folder_by_argument_environment_and_default(letters, tmp_path, cache_dir, monkeypatch):
    assert load_encoder(letters, name="x", cache=tmp_path / "own").cache_path.parent == tmp_path / "own"
    assert load_encoder(letters, name="x").cache_path.parent == cache_dir
    assert load_encoder(letters, name="x", cache=False).cache_path is None
    monkeypatch.delenv("MAHALO_CACHE_DIR")
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder() == tmp_path / "xdg" / "mahalo" / "text"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == Path("~/.cache/mahalo/text").expanduser()


def test_a_damaged_file_is_reported_once_and_left_alone(letter_encoder, letters):
    expected = letter_encoder.encode(TEXTS)
    path = letter_encoder.cache_path
    path.write_bytes(b"not a database " * 100)
    damaged = load_encoder(letters, name="letters", version="1")
    with pytest.warns(UserWarning) as caught:
        np.testing.assert_array_equal(damaged.encode(TEXTS), expected)
        damaged.encode([*TEXTS, "more"])
    message = one_warning(caught)
    assert str(path) in message and "cannot be read" in message and "Delete it" in message
    assert path.read_bytes().startswith(b"not a database")


def test_a_truncated_file_is_reported(letter_encoder, letters):
    texts = [f"{'abc' * (k % 7)} {k}" for k in range(200)]
    expected = letter_encoder.encode([f"x{text}" for text in texts])
    path = letter_encoder.cache_path
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.warns(UserWarning) as caught:
        E = load_encoder(letters, name="letters", version="1").encode([f"x{text}" for text in texts])
    assert "cannot be" in one_warning(caught)
    np.testing.assert_array_equal(E, expected)


def test_a_damaged_vector_is_encoded_again(letter_encoder, letters):
    expected = letter_encoder.encode(TEXTS)
    with sqlite3.connect(letter_encoder.cache_path) as connection:
        key, vector = connection.execute("SELECT key, vector FROM vectors LIMIT 1").fetchone()
        changed = bytes([vector[0] ^ 1]) + vector[1:]
        connection.execute("UPDATE vectors SET vector = ? WHERE key = ?", (changed, key))
    connection.close()
    letters.seen.clear()
    with pytest.warns(UserWarning) as caught:
        np.testing.assert_array_equal(letter_encoder.encode(TEXTS), expected)
    assert "1 vectors in it are damaged" in one_warning(caught) and len(letters.seen) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(letter_encoder.encode(TEXTS), expected)


def test_a_folder_that_cannot_be_written_is_reported_once(letters, tmp_path):
    (tmp_path / "file").write_text("")
    encoder = load_encoder(letters, name="letters", cache=tmp_path / "file" / "inside")
    with pytest.warns(UserWarning) as caught:
        assert encoder.encode(TEXTS).any(axis=1).all()
        encoder.encode(TEXTS)
    assert "cannot be written" in one_warning(caught) and "cache=" in one_warning(caught)


def test_an_interrupted_write_stores_nothing(letter_encoder, letters):
    letter_encoder.encode(TEXTS[:1])
    before = letter_encoder.cache_path.read_bytes()
    rows = iter([1, 2])

    def fail(texts):
        next(rows)
        raise KeyboardInterrupt

    broken = load_encoder(
        lambda texts: letters(texts) if texts == ["text"] else fail(texts), name="letters", version="1"
    )
    with pytest.raises(KeyboardInterrupt):
        broken.encode(TEXTS)
    assert letter_encoder.cache_path.read_bytes() == before


def test_encoders_that_write_at_the_same_time_agree(letters):
    texts = [f"{'abcdefg'[k % 7] * (1 + k % 5)} {k}" for k in range(300)]
    expected = load_encoder(letters, cache=False).encode(texts)

    def encode(start: int) -> np.ndarray:
        some = texts[start : start + 200]
        return load_encoder(letters, name="letters").encode(some) - expected[start : start + 200]

    with warnings.catch_warnings(), ThreadPoolExecutor(4) as pool:
        warnings.simplefilter("error")
        assert not any(difference.any() for difference in pool.map(encode, [0, 50, 100, 0, 50, 100]))
    letters.seen.clear()
    load_encoder(letters, name="letters").encode(texts)
    assert letters.seen == ["text"]  # the call that finds the dimension
