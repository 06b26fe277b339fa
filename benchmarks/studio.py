"""The studio: what a simulated person's answers bring, how long the page takes, and how much memory the server has."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from sklearn.metrics import roc_auc_score
from sklearn.metrics.pairwise import euclidean_distances

from experiments.data import load_banking77
from mahalo import Constraints, MetricLearner
from mahalo.active import AnswerClosure, next_pairs
from mahalo.metric import Metric
from mahalo.studio import Session

from .report import Check, Report, Table
from .settings import ROOT, Settings
from .tables import data_folder

if TYPE_CHECKING:
    from playwright.sync_api import Page

__all__ = ["run"]

N_QUESTIONS, N_ROUND, WRONG = 150, 10, 0.05
SEEDS = range(10, 14)  # none of which anything was chosen by
_NO_DATA = "NOT RUN: answers about banking77, for want of the data folder; set MAHALO_DATA to it and run again"
_NO_BROWSER = "NOT RUN: the page, for want of Chromium and playwright"


def run(settings: Settings) -> Report:
    checks: list[Check] = []
    rows: list[tuple[str, str]] = []
    notes = [
        f"people: {N_QUESTIONS} questions about the training rows of banking77, AUC over all pairs of test "
        f"rows, the mean of {len(SEEDS)} seeds; groups and random: MetricLearner on all that is implied",
        "page: time from a key press to the next question in Chromium, while the server learns",
    ]
    if (folder := data_folder()) is None:
        notes.append(_NO_DATA)
    else:
        os.environ.setdefault("MAHALO_DATA", str(folder))
        _people(SEEDS[:1] if settings.quick else SEEDS, checks, rows)
    if _chromium() is None:
        notes.append(_NO_BROWSER)
    else:
        with tempfile.TemporaryDirectory() as work:
            _page(Path(work), 2_000 if settings.quick else 10_000, checks, rows)
            _large(Path(work), 5_000 if settings.quick else 50_000, checks, rows)
            if folder is not None:
                _person_at_the_page(Path(work), checks, rows)
    return Report("studio", tuple(checks), (Table("studio", ("what", "value"), tuple(rows)),), tuple(notes))


# -- people ------------------------------------------------------------------------------------------------------------

_banking77 = cache(load_banking77)


def _people(seeds: Sequence[int], checks: list[Check], rows: list[tuple[str, str]]) -> None:
    found = np.array([_race(seed) for seed in seeds])
    ours, wrong, start, groups, drawn, share = found.mean(axis=0)
    rows += [
        ("people: rise in AUC by the studio's questions", f"{ours:.4f}"),
        (f"people: the same with {100 * WRONG:g} % wrong answers", f"{wrong:.4f}"),
        ("people: by the metric that learning starts from, alone", f"{start:.4f}"),
        ("people: by next_pairs(strategy='groups')", f"{groups:.4f}"),
        ("people: by random pairs", f"{drawn:.4f}"),
        ("people: share of wrong answers asked again or shown", f"{share:.2f}"),
    ]
    checks += [
        Check("people: above groups by", float(ours - groups), 0.0),
        Check("people: with wrong answers, above random pairs by", float(wrong - drawn), 0.0),
        Check("people: wrong answers asked again or shown", float(share), 0.5),
    ]


def _race(seed: int) -> tuple[float, ...]:
    """Rise in AUC: studio, with wrong answers, its start, groups, random; and the share of wrong answers found."""
    data = _banking77()
    X, y = data.X[data.is_train], data.y[data.is_train]
    ours, _ = simulate(X, y, seed, 0.0)
    wrong, share = simulate(X, y, seed, WRONG)
    start = Session(X, random_state=seed).learning.starts.stressed
    assert start is not None
    metrics = (ours, wrong, start.metric, by_groups(X, y, seed), by_chance(X, y, seed))
    return (*(rise(metric) for metric in metrics), share)


def simulate(X: np.ndarray, y: np.ndarray, seed: int, wrong: float, n: int = N_QUESTIONS) -> tuple[Metric, float]:
    """Answer questions, some wrongly; return the metric of all answers, and the share of wrong ones that were found."""
    session, rng = Session(X, random_state=seed), np.random.default_rng([seed, 1])
    flipped: set[tuple[int, ...]] = set()
    found: set[tuple[int, ...]] = set()
    for _ in range(n):
        question = session.question()
        i, j = question.rows
        if question.rows in flipped:
            found.add(question.rows)
        is_wrong = rng.random() < wrong
        if is_wrong:
            flipped.add(question.rows)
        session.answer(question, "same" if (y[i] == y[j]) != is_wrong else "different")
    state = session.state()
    found |= {doubt.answer.rows for doubt in state.doubtful}
    found |= {answer.rows for contradiction in state.contradictions for answer in contradiction.answers}
    return session.final().metric, len(found & flipped) / max(1, len(flipped))


def by_groups(X: np.ndarray, y: np.ndarray, seed: int) -> Metric:
    """Learn from pairs that `next_pairs` selects, ten at a time, after twenty random ones."""
    asked = _draw(len(X), 2 * N_ROUND, seed)
    while len(asked) < N_QUESTIONS:
        known = _answers(y, asked)
        pairs = next_pairs(_implied_learner(X, known), X, N_ROUND, strategy="groups", known=known, random_state=seed)
        asked = np.concatenate([asked, pairs])
    return _implied_learner(X, _answers(y, asked)).metric_


def by_chance(X: np.ndarray, y: np.ndarray, seed: int) -> Metric:
    """Learn from random pairs."""
    return _implied_learner(X, _answers(y, _draw(len(X), N_QUESTIONS, seed))).metric_


def rise(metric: Metric) -> float:
    """Return the AUC of all pairs of test rows by a metric, less that of the frozen vectors."""
    data = _banking77()
    X, y = data.X[~data.is_train].astype(np.float64), data.y[~data.is_train]
    i, j = np.triu_indices(len(y), 1)

    def auc(T: np.ndarray) -> float:
        return float(roc_auc_score(y[i] == y[j], -euclidean_distances(T, squared=True)[i, j]))

    return auc(metric.transform(X)) - auc(X)


def _draw(n: int, n_pairs: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng([seed, 2])
    i = rng.integers(0, n, n_pairs)
    return np.column_stack([i, (i + rng.integers(1, n, n_pairs)) % n])


def _answers(y: np.ndarray, pairs: np.ndarray) -> Constraints:
    return Constraints.from_pairs(pairs, same=y[pairs[:, 0]] == y[pairs[:, 1]], n_rows=len(y))


def _implied_learner(X: np.ndarray, known: Constraints) -> MetricLearner:
    return MetricLearner().fit(X, constraints=AnswerClosure.of(known, len(X)).constraints())


# -- the page ----------------------------------------------------------------------------------------------------------

_PRESS = """async (key) => {
    const box = document.getElementById("items"), old = box.dataset.id, start = performance.now();
    const done = new Promise((resolve) => {
        new MutationObserver((_, self) => { if (box.dataset.id !== old) { self.disconnect(); resolve(); } })
            .observe(box, { attributes: true });
    });
    document.body.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
    await done;
    return performance.now() - start;
}"""
_FRAMES = """async () => {
    const slider = document.getElementById("blend"), { frames } = window.studio;
    const first = frames.drawn, start = performance.now();
    for (let k = 0; performance.now() - start < 3000; k++) {
        slider.value = k % 2 ? 100 : 0;
        slider.dispatchEvent(new Event("input"));
        await new Promise((resolve) => setTimeout(resolve, 140));
    }
    return 1000 * (frames.drawn - first) / (performance.now() - start);
}"""


def _page(work: Path, n: int, checks: list[Check], rows: list[tuple[str, str]]) -> None:
    X, y = _simulated(n)
    with _studio(work, X, 0) as (page, _):
        seconds = np.array([_press(page, y) for _ in range(100)]) / 1000.0
        page.wait_for_function("() => document.getElementById('map-status').textContent.endsWith('rows')", timeout=3e5)
        frames = page.evaluate(_FRAMES)
    median, late = float(np.median(seconds)), float(np.quantile(seconds, 0.95))
    rows += [
        (f"page, {n:,} × 384: key press to next question, median and 95 %", f"{1e3 * median:.0f}, {1e3 * late:.0f} ms"),
        (f"page, {n:,} points: frames a second while they move", f"{frames:.0f}"),
    ]
    checks += [
        Check(f"page, {n:,} × 384: median seconds to the next question", median, 0.1, at_least=False),
        Check(f"page, {n:,} × 384: 95 % of questions within seconds", late, 0.3, at_least=False),
        Check(f"page, {n:,} points: frames a second", frames, 30.0),
    ]


def _large(work: Path, n: int, checks: list[Check], rows: list[tuple[str, str]]) -> None:
    X, y = _simulated(n)
    with _studio(work, X, 0) as (page, process):
        for _ in range(30):
            _press(page, y)
        page.wait_for_function("() => document.getElementById('map-status').textContent.endsWith('rows')", timeout=6e5)
        page.wait_for_function("() => document.getElementById('counts').dataset.consolidated === '30'", timeout=6e5)
        page.evaluate("async () => { await fetch('/api/neighbors?row=7'); }")
        frames, memory = page.evaluate(_FRAMES), _peak_gigabytes(process.pid)
    rows += [
        (f"page, {n:,} points: frames a second while they move", f"{frames:.0f}"),
        (f"server, {n:,} × 384: most memory", f"{memory:.2f} GB"),
    ]
    checks.append(Check(f"server, {n:,} × 384: gigabytes of memory", memory, 2.0, at_least=False))


def _person_at_the_page(work: Path, checks: list[Check], rows: list[tuple[str, str]]) -> None:
    """Answer through keys of the page, at the pace of a person who lets it learn."""
    data = _banking77()
    X, y = data.X[data.is_train], data.y[data.is_train]
    with _studio(work, X, 0) as (page, _):
        for k in range(N_QUESTIONS):
            if k % 5 == 0:
                wanted = f"() => document.getElementById('counts').dataset.consolidated === '{k}'"
                page.wait_for_function(wanted, timeout=3e5)
            _press(page, y)
    session = Session(np.load(work / "rows.npy"), log=work / "answers.jsonl")
    ours, groups = rise(session.final().metric), rise(by_groups(X, y, 0))
    rows.append(("person at the page: rise in AUC, and by groups in Python", f"{ours:.4f}, {groups:.4f}"))
    checks.append(Check("person at the page: above groups by", ours - groups, 0.0))


def _press(page: Page, y: np.ndarray) -> float:
    """Answer the question that is shown; return the milliseconds until the next."""
    i, j = map(int, str(page.locator("#items").get_attribute("data-rows")).split(","))
    return float(page.evaluate(_PRESS, "s" if y[i] == y[j] else "d"))


@contextlib.contextmanager
def _studio(work: Path, X: np.ndarray, seed: int) -> Iterator[tuple[Page, subprocess.Popen[str]]]:
    """Serve rows in a process of their own and open the page."""
    from playwright.sync_api import sync_playwright

    (work / "answers.jsonl").unlink(missing_ok=True)
    np.save(work / "rows.npy", X.astype(np.float32))
    command = [sys.executable, "-m", "benchmarks.studio_runner", str(work / "rows.npy"), str(work), str(seed)]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        with sync_playwright() as play:
            browser = play.chromium.launch(executable_path=_chromium(), args=["--no-sandbox", "--disable-gpu"])
            page = browser.new_page(viewport={"width": 1400, "height": 900})
            page.goto(address)
            page.wait_for_selector("body[data-ready]", timeout=3e5)
            yield page, process
            browser.close()
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(timeout=60)


def _chromium() -> str | None:
    with contextlib.suppress(ImportError):
        import playwright.sync_api  # noqa: F401

        return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    return None


def _peak_gigabytes(pid: int) -> float:
    """Return the most memory that a process has had, from Linux' /proc."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))) / 1e6


def _simulated(n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 20, n)
    X = rng.standard_normal((n, 384)) + 4.0 * np.eye(20, 384)[y]
    return X / np.linalg.norm(X, axis=1, keepdims=True), y
