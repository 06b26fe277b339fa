"""Titles of two subjects in a table, and an encoder of their words that needs no package."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from pyarrow import csv

WORDS = ("boat", "river", "sail", "oar", "bread", "oven", "flour", "yeast", "old", "new", "good", "with", "07")
SUBJECTS = {"water": WORDS[:4], "kitchen": WORDS[4:8]}
FIT_TEXTS = ("--text", "title", "--label", "subject", "--id", "code", "--gamma", "1", "--out", "m.safetensors")


def sentences(n: int = 48, seed: int = 0) -> dict[str, list[str]]:
    """Titles of two words of their subject and two of none; codes with zeros in front."""
    rng = np.random.default_rng(seed)
    subjects = [("water", "kitchen")[k % 2] for k in range(n)]
    titles = [" ".join([*rng.choice(SUBJECTS[one], 2), *rng.choice(WORDS[8:12], 2)]) for one in subjects]
    return {
        "code": [f"{k:03}" for k in range(n)],
        "title": titles,
        "subject": subjects,
        "size": [f"{k}" for k in range(n)],
    }


class WordCounts:
    """Encoder function: counts of some words; remembers the texts it was called with."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def __call__(self, texts: list[str]) -> np.ndarray:
        self.seen += texts
        return np.array([[text.lower().split().count(word) for word in WORDS] for text in texts], dtype=float)


def write_sentences(columns: dict[str, list], path: str = "t.csv") -> None:
    csv.write_csv(pa.table(columns), path)
