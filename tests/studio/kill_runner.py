"""A process that answers questions by the server's views and prints what was acknowledged, until it is killed."""

from __future__ import annotations

import sys
from pathlib import Path

from people import planted, reply

from mahalo.studio import Session

if __name__ == "__main__":
    folder, n = Path(sys.argv[1]), int(sys.argv[2])
    X, y = planted(150)
    session = Session(X, log=folder / "answers.jsonl")
    while session.answers().n_entries < n:
        question = session.question()
        entry = session.answer(question, reply(question, y))
        print(entry.id, flush=True)
    print("done", flush=True)
