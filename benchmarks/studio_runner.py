"""A studio in a process of its own: `python -m benchmarks.studio_runner rows.npy folder seed`."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import numpy as np

from mahalo.studio import Session
from mahalo.studio.items import Items
from mahalo.studio.server import serve
from mahalo.studio.studio_table import StudioTable

if __name__ == "__main__":
    rows, folder, seed = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
    X = np.load(rows)
    session = Session(X, log=folder / "answers.jsonl", random_state=seed)
    items = Items(len(X), None, {"text": [f"text of row {k}" for k in range(len(X))]})
    serve(session, StudioTable(items), folder / "home", port=0, browser=False, show=partial(print, flush=True))
