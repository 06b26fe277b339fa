from __future__ import annotations

import numpy as np
import pytest

from mahalo.text import load_encoder


@pytest.fixture(autouse=True)
def cache_dir(tmp_path, monkeypatch):
    """A cache of text vectors that begins empty with each test."""
    folder = tmp_path / "vectors"
    monkeypatch.setenv("MAHALO_CACHE_DIR", str(folder))
    return folder


class LetterCounts:
    """Encoder function: counts of the letters a to z; remembers the texts it was called with."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def __call__(self, texts):
        self.seen += texts
        return np.array([[text.lower().count(chr(97 + k)) for k in range(26)] for text in texts], dtype=float)


@pytest.fixture
def letters():
    return LetterCounts()


@pytest.fixture
def letter_encoder(letters):
    return load_encoder(letters, name="letters", version="1")


@pytest.fixture(scope="session")
def wordllama():
    pytest.importorskip("wordllama")
    return load_encoder(cache=False)
