"""The thread that learns: what went wrong stays visible until it goes right."""

from __future__ import annotations

import time

import numpy as np

from mahalo.studio import Session
from mahalo.studio import worker as module
from mahalo.studio.worker import Worker


def _wait(done, seconds=60):
    end = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < end, "the thread did not come to an end"
        time.sleep(0.02)


def test_a_failure_is_shown_until_answers_are_learned_from_again(monkeypatch):
    monkeypatch.setattr(module, "_POLL_SECONDS", 0.02)
    session, events, n_looks = Session(np.random.default_rng(0).normal(size=(30, 2))), [], []
    refresh, learn = session.log.refresh, session.learn

    def failing():
        raise ValueError("out of luck")

    monkeypatch.setattr(session, "learn", failing)
    monkeypatch.setattr(session.log, "refresh", lambda: n_looks.append(1) or refresh())
    worker = Worker(session, events.append)
    worker.start()
    try:
        _wait(lambda: "failure" in events)
        seen = len(n_looks)
        _wait(lambda: len(n_looks) > seen + 5)
        assert worker.error == "ValueError: out of luck" and events.count("failure") == 1
        monkeypatch.setattr(session, "learn", learn)
        session.answer(session.question(), "same")
        _wait(lambda: worker.error is None and events[-1] == "metric")
    finally:
        worker.stop()
