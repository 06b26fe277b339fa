"""A studio on simulated rows, for tests of the server and of the page."""

from __future__ import annotations

import contextlib
import threading
import time

from people import planted

from mahalo.studio import Session
from mahalo.studio.items import Items
from mahalo.studio.server.app import make_app
from mahalo.studio.server.security import Tokens
from mahalo.studio.server.studio import Studio
from mahalo.studio.studio_table import StudioTable

HOSTILE = "<script>document.title='run'</script>"


def make_studio(folder, n=120, log="answers.jsonl", kinds=("pair",), labels=True, annotator="", X=None, y=None):
    """A studio about planted rows with hostile cells."""
    if X is None:
        X, y = planted(n)
    n = len(X)
    columns = {
        "text": [HOSTILE if k == 0 else "\x00\x1b[31m\u202e" if k == 1 else f"text of row {k}" for k in range(n)],
        "long": ["x" * 1_000_000 if k == 2 else "short" for k in range(n)],
        "value": [float(x[0]) for x in X],
    }
    ids = [f"=row{k}" for k in range(n)]
    names = [f"class {c}" for c in y] if labels else None
    session = Session(X, log=None if log is None else folder / log, kinds=kinds, annotator=annotator)
    column_names = [f"column {k}" for k in range(X.shape[1])]
    return Studio(session, StudioTable(Items(n, ids, columns, names, folder), column_names), folder / "home"), y


@contextlib.contextmanager
def served(studio):
    """Serve a studio on a free port; yield the address with its token."""
    import socket

    import uvicorn

    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    port = listening.getsockname()[1]
    tokens = Tokens(port)
    app = make_app(studio, tokens, {f"127.0.0.1:{port}"})
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=1))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.02)
    try:
        yield f"http://127.0.0.1:{port}/open?token={tokens.token}"
    finally:
        server.should_exit = True
        thread.join(timeout=20)
        listening.close()
