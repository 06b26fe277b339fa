"""Start of the server: a free port on loopback, the address with its token, and the browser."""

from __future__ import annotations

import contextlib
import socket
import webbrowser
from collections.abc import Callable
from pathlib import Path

from ..session import Session
from ..studio_table import StudioTable
from .app import make_app
from .security import Tokens
from .studio import Studio

__all__ = ["serve"]

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
    import uvicorn

    listening = socket.socket()
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((_HOST, port))
    except OSError as error:
        listening.close()
        raise OSError(error.errno, f"port {port} is taken; pass --port 0 for any that is free") from None
    number = listening.getsockname()[1]
    tokens = Tokens(number)
    hosts = {f"{name}:{number}" for name in (_HOST, "localhost")}
    app = make_app(Studio(session, table, out), tokens, hosts)
    address = f"http://{_HOST}:{number}/open?token={tokens.token}"
    show(address)
    if browser:
        webbrowser.open(address)
    config = uvicorn.Config(
        app, log_level="warning", access_log=False, server_header=False, timeout_graceful_shutdown=2
    )
    with contextlib.suppress(KeyboardInterrupt):  # Ctrl-C is how it ends
        uvicorn.Server(config).run(sockets=[listening])
