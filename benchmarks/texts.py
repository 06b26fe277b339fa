"""Questions to a bank (banking77) as sentences: MAP from few labels with the default encoder, and the commands."""

from __future__ import annotations

import csv
import json
import lzma
import os
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from experiments.data import locate
from experiments.embeddings import retrieval_scores
from mahalo.embeddings import EmbeddingAdapter
from mahalo.text import load_encoder

from .report import Check, Report, Table
from .settings import Settings
from .tables import data_folder

__all__ = ["run"]

N_DRAWS = 5
MEASURES = ("P@1", "P@10", "MAP")
SEARCHES = 5  # runs of each search, in turns; the quickest counts
DISTINCT = 0.99  # of the texts are different ones: equal ones are encoded once
START = "search of two texts"  # all that starting takes: imports, model, encoder
FROZEN, LDA, OURS = "frozen", "LDA, shrunk", "EmbeddingAdapter"
MOST_FIT, MOST_SEARCH, MOST_ENCODING, MOST_MEMORY = 90.0, 1.0, 15.0, 2.0  # seconds, seconds, seconds, GB


@dataclass(frozen=True, eq=False)
class _Questions:
    """Texts, their intents, and which of them are training questions."""

    texts: list[str]
    intents: np.ndarray
    is_train: np.ndarray


@dataclass(frozen=True)
class _Command:
    """A command that was run: wall-clock and processor seconds, and the peak of its memory in GB."""

    name: str
    seconds: float
    processor_seconds: float
    gigabytes: float
    encoded: int  # texts that it added to the cache


def run(settings: Settings) -> Report:
    if (folder := data_folder()) is not None:
        os.environ.setdefault("MAHALO_DATA", str(folder))
    try:
        questions = _load()
    except FileNotFoundError as error:
        return Report("texts", checks=(), notes=(f"skipped: {error}",))
    began = time.process_time()
    E = load_encoder(cache=False).encode(questions.texts)
    encoding = time.process_time() - began
    draws = range(settings.seed, settings.seed + (1 if settings.quick else N_DRAWS))
    scores = {n: _mean_scores(E, questions, n, draws) for n in (5, 20)}
    commands = _run_commands(questions)
    return Report(
        name="texts",
        checks=(*_score_checks(scores), *_command_checks(commands, encoding, len(E))),
        tables=(_score_table(scores), _command_table(commands)),
        notes=(
            f"banking77: {int(questions.is_train.sum()):,} training questions as index, the other "
            f"{int((~questions.is_train).sum()):,} as queries; wordllama, {E.shape[1]} numbers; {len(draws)} draws of "
            "labelled questions",
            f"encoding all {len(E):,} texts, with loading and without a cache: {encoding:.1f} processor seconds",
        ),
        numbers={"scores": scores, "commands": [vars(one) for one in commands], "encoding": encoding},
    )


def _load() -> _Questions:
    path = locate(
        "banking77", "banking77.jsonl.xz", "Get the questions of PolyAI's banking77 and write them as JSON lines."
    )
    with lzma.open(path, "rt", encoding="utf8") as file:
        rows = [json.loads(line) for line in file]
    _, intents = np.unique([row["intent"] for row in rows], return_inverse=True)
    return _Questions([row["text"] for row in rows], intents, np.array([row["split"] == "train" for row in rows]))


# -- retrieval ---------------------------------------------------------------------------------------------------------


def _mean_scores(E: np.ndarray, questions: _Questions, n_labels: int, draws: range) -> dict[str, dict[str, float]]:
    """Return the means over draws of every method and measure, `n_labels` labelled questions an intent."""
    train = np.flatnonzero(questions.is_train)
    found: dict[str, list[np.ndarray]] = {FROZEN: [], LDA: [], OURS: []}
    for seed in draws:
        order = np.random.default_rng(seed).permutation(train)
        labelled = np.concatenate([order[questions.intents[order] == k][:n_labels] for k in range(77)])
        X, y = E[labelled], questions.intents[labelled]
        lda = LinearDiscriminantAnalysis(solver="eigen", shrinkage="auto").fit(X.astype(np.float64), y)
        adapter = EmbeddingAdapter(random_state=seed).fit(X, y)
        for name, mapped in ((FROZEN, E), (LDA, lda.transform(E.astype(np.float64))), (OURS, adapter.transform(E))):
            if name != FROZEN or not found[FROZEN]:
                found[name].append(_search(mapped.astype(np.float32), questions))
    return {name: dict(zip(MEASURES, np.mean(rows, axis=0).tolist(), strict=True)) for name, rows in found.items()}


def _search(mapped: np.ndarray, questions: _Questions) -> np.ndarray:
    train, y = questions.is_train, questions.intents
    scores = retrieval_scores(mapped[train], y[train], mapped[~train], y[~train])
    return np.array([scores.of(measure).mean() for measure in MEASURES])


def _score_checks(scores: dict[int, dict[str, dict[str, float]]]) -> list[Check]:
    few, many = scores[5], scores[20]
    return [
        Check("20 labels an intent: MAP above frozen by", many[OURS]["MAP"] - many[FROZEN]["MAP"], 0.15),
        Check("20 labels an intent: MAP above LDA by", many[OURS]["MAP"] - many[LDA]["MAP"], 0.07),
        Check("20 labels an intent: P@1 above frozen by", many[OURS]["P@1"] - many[FROZEN]["P@1"], -0.005),
        Check("5 labels an intent: MAP above frozen by", few[OURS]["MAP"] - few[FROZEN]["MAP"], 0.05),
    ]


def _score_table(scores: dict[int, dict[str, dict[str, float]]]) -> Table:
    rows = tuple(
        (name, *(" / ".join(f"{scores[n][name][measure]:.3f}" for measure in MEASURES) for n in sorted(scores)))
        for name in (FROZEN, LDA, OURS)
    )
    return Table("P@1 / P@10 / MAP", ("method", *(f"{n} labels an intent" for n in sorted(scores))), rows)


# -- commands ----------------------------------------------------------------------------------------------------------


def _run_commands(questions: _Questions) -> list[_Command]:
    """Fit twice and search, each in a process of its own, with a cache that is empty at first."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with (folder / "questions.csv").open("w", encoding="utf8", newline="") as file:
            rows = zip(questions.texts, questions.intents.tolist(), strict=True)
            csv.writer(file).writerows([("text", "intent"), *rows])
        fit = ("fit", "questions.csv", "--text", "text", "--label", "intent", "--force", "--out", "m.safetensors")
        question = "how do I reset my pin"
        (folder / "two.csv").write_text("text\nhow do I reset my pin\nwhere is my card\n", encoding="utf8")
        commands = [_measured("fit", fit, folder), _measured("fit again", fit, folder)]
        tables = {START: "two.csv", "search": "questions.csv"}
        rounds = [
            [_measured(name, ("search", "m.safetensors", "--index", tables[name], question), folder) for name in tables]
            for _ in range(SEARCHES)
        ]
        return commands + [min(runs, key=lambda one: one.seconds) for runs in zip(*rounds, strict=True)]


def _measured(name: str, arguments: tuple[str, ...], folder: Path) -> _Command:
    environment, cached = os.environ | {"MAHALO_CACHE_DIR": str(folder / "vectors")}, _n_cached(folder)
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    command = [sys.executable, "-m", "mahalo.cli", *arguments]
    subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True)
    seconds, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    largest = after.ru_maxrss * 1024 / 1e9  # of all commands so far
    return _Command(name, seconds, spent, largest, _n_cached(folder) - cached)


def _n_cached(folder: Path) -> int:
    """Return the number of vectors in the cache."""
    found = 0
    for path in (folder / "vectors").glob("*.sqlite"):
        with closing(sqlite3.connect(path)) as connection:
            found += connection.execute("SELECT count(*) FROM vectors").fetchone()[0]
    return found


def _command_checks(commands: list[_Command], encoding: float, n_texts: int) -> list[Check]:
    by_name = {one.name: one for one in commands}
    start, fit, search = by_name[START], by_name["fit"], by_name["search"]
    return [
        Check("fit of all texts: seconds", fit.seconds, MOST_FIT, at_least=False),
        Check("encoding all texts: processor seconds", encoding, MOST_ENCODING, at_least=False),
        Check("texts that the first fit encodes", fit.encoded, DISTINCT * n_texts),
        Check("texts that the second fit encodes", by_name["fit again"].encoded, 0, at_least=False),
        Check("peak memory of the commands: GB", max(one.gigabytes for one in commands), MOST_MEMORY, at_least=False),
        Check("search beyond its start: seconds", search.seconds - start.seconds, MOST_SEARCH, at_least=False),
    ]


def _command_table(commands: list[_Command]) -> Table:
    rows = tuple(
        (f"mahalo {one.name}", f"{one.seconds:.1f}", f"{one.processor_seconds:.1f}", f"{one.encoded:,}")
        for one in commands
    )
    names = ("command", "seconds", "processor seconds", "texts encoded")
    return Table("commands, each in a process of its own", names, rows)
