"""Killed at random moments: every acknowledged answer is in the log once, and the model is that of an unbroken run."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from people import answered, planted

from mahalo.studio import Session

N_KILLS, N_ANSWERS = 20, 120


@pytest.mark.slow
def test_killed_twenty_times_nothing_is_lost_or_doubled(tmp_path):
    rng = np.random.default_rng(0)
    acknowledged, n_kills = [], 0
    here = Path(__file__).parent
    path = os.pathsep.join([str(here), *sys.path])
    command = [sys.executable, str(here / "kill_runner.py"), str(tmp_path)]
    while n_kills < N_KILLS:
        n = N_ANSWERS * (n_kills + 1) // N_KILLS + 20  # there is always something left to answer
        run = subprocess.Popen(
            [*command, str(n)], stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": path}
        )
        first = run.stdout.readline()
        time.sleep(float(rng.uniform(0.0, 0.3)))
        run.kill()
        rest = run.stdout.read()
        run.wait()
        n_kills += 1
        printed = (first + rest).split("\n")[:-1]  # the last line may be half of one
        acknowledged += [line for line in printed if line != "done"]
    finished = subprocess.run(
        [*command, str(N_ANSWERS + 30)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": path},
    )
    acknowledged += finished.stdout.split()[:-1]
    X, y = planted(150)
    session = Session(X, log=tmp_path / "answers.jsonl")
    ids = [entry.id for entry in session.log.entries]
    assert len(ids) == len(set(ids)) == N_ANSWERS + 30
    assert set(acknowledged) <= set(ids) and len(acknowledged) == len(set(acknowledged))
    assert [id for id in ids if id in set(acknowledged)] == acknowledged
    unbroken = answered(Session(X), y, N_ANSWERS + 30)
    assert [e.rows for e in unbroken.log.entries] == [e.rows for e in session.log.entries]
    assert np.array_equal(unbroken.metric_.matrix, session.metric_.matrix)
    assert np.array_equal(unbroken.final().metric.matrix, session.final().metric.matrix)
