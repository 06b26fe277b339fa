"""Sockets that servers listen on, and their run until the process is interrupted."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import socket
import threading
from collections.abc import Iterator

from starlette.types import ASGIApp

_LAST_PORT = 65_535


def bind_socket(host: str, port: int) -> socket.socket:
    """Return a socket bound to an address of this machine; port 0: any that is free."""
    if not 0 <= port <= _LAST_PORT:
        raise ValueError(f"a port is a number from 0 (any that is free) to {_LAST_PORT}; got {port}.")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except OSError as error:
        raise OSError(error.errno, f"{host!r} is no address of this machine; pass --host 127.0.0.1") from None
    listening = socket.socket(family, kind, protocol)
    if os.name == "posix":  # elsewhere this lets a second server listen on the port
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind(address)
    except OSError as error:
        listening.close()
        reason = "is taken" if error.errno == errno.EADDRINUSE else f"of {host} cannot be used: {error.strerror}"
        raise OSError(error.errno, f"port {port} {reason}; pass --port 0 for any that is free") from None
    return listening


def address_of(host: str, port: int) -> str:
    """Return host and port as they stand in an address, an IPv6 host in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def run_app(app: ASGIApp, listening: socket.socket, grace: float) -> None:
    """Serve an application until Ctrl-C or SIGTERM, then finish what is being answered within `grace` seconds."""
    import uvicorn

    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,  # anyone can send X-Forwarded-For
        timeout_graceful_shutdown=round(grace),
    )
    with contextlib.suppress(KeyboardInterrupt), _sigterm_as_interrupt():
        uvicorn.Server(config).run(sockets=[listening])


@contextlib.contextmanager
def _sigterm_as_interrupt() -> Iterator[None]:
    """Raise KeyboardInterrupt on SIGTERM, which uvicorn passes on after it has stopped."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)
