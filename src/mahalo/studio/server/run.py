"""Start of the server: a free port on loopback, the address with its token, and the browser."""

from __future__ import annotations

import webbrowser
from collections.abc import Callable
from pathlib import Path

from ...web import bind_socket, run_app
from ..session import Session
from ..studio_table import StudioTable
from .app import make_app
from .security import Tokens
from .studio import Studio

_HOST = "127.0.0.1"


def serve(
    session: Session,
    table: StudioTable,
    out: Path,
    *,
    port: int = 8765,
    browser: bool = True,
    show: Callable[[str], None] = print,
) -> None:
    """Serve the page of a session until the process is interrupted.

    Parameters
    ----------
    session : Session
    table : StudioTable
    out : Path
        Folder of exports.
    port : int, default=8765
        On loopback alone; 0: any that is free.
    browser : bool, default=True
        Open the page in the user's browser.
    show : callable, default=print
        Called with the address.
    """
    listening = bind_socket(_HOST, port)
    number = listening.getsockname()[1]
    tokens = Tokens(number)
    hosts = {f"{name}:{number}" for name in (_HOST, "localhost")}
    app = make_app(Studio(session, table, out), tokens, hosts)
    address = f"http://{_HOST}:{number}/open?token={tokens.token}"
    listening.listen()  # whoever reads the address may ask at once
    show(address)
    if browser:
        webbrowser.open(address)
    run_app(app, listening, grace=2.0)
