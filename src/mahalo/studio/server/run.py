"""Start of the server: a free port on loopback, the address with its token, and the browser."""

from __future__ import annotations

import contextlib
import errno
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

_HOST, _LAST_PORT = "127.0.0.1", 65_535


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

    listening = _bind(port)
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


def _bind(port: int) -> socket.socket:
    """Return a socket bound to a port of loopback."""
    if not 0 <= port <= _LAST_PORT:
        raise ValueError(f"a port is a number from 0 (any that is free) to {_LAST_PORT}; got {port}.")
    listening = socket.socket()
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((_HOST, port))
    except OSError as error:
        listening.close()
        reason = "is taken" if error.errno == errno.EADDRINUSE else f"cannot be used: {error.strerror}"
        raise OSError(error.errno, f"port {port} {reason}; pass --port 0 for any that is free") from None
    return listening
