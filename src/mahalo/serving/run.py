"""Start of the service: its address, its token, and its run until the process is interrupted."""

from __future__ import annotations

import contextlib
import ipaddress
import re
import secrets
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from threadpoolctl import threadpool_limits

from ..web import address_of, bind_socket, run_app
from .app import make_app
from .service import SearchService

__all__ = ["Address", "serve"]

_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(:[0-9]+)?")
_LEAST = 16  # characters of a token
_GRACE = 10.0  # seconds for the answers under way when the process is asked to stop


@dataclass(frozen=True, eq=False)
class Address:
    """Socket that is bound, the token of requests, and the values of Host that are answered.

    `is_generated` says that nobody knows the token yet.
    """

    listening: socket.socket
    url: str
    token: str
    is_generated: bool
    hosts: frozenset[str]

    @classmethod
    def bind(cls, host: str, port: int, token: str | None, allowed: Sequence[str] = ()) -> Address:
        """Bind a socket; raise ValueError without a good token, which is generated on loopback alone.

        Parameters
        ----------
        host, port : str, int
            Address to listen at; port 0: any that is free.
        token : str or None
        allowed : sequence of str
            Further values of Host that are answered, beside the address itself and loopback.
        """
        is_generated = token is None
        if token is None:
            if not _is_loopback(host):
                raise ValueError(
                    f"--host {host} is open to other machines, for which a token is not made up: set MAHALO_TOKEN, or "
                    "give --token."
                )
            token = secrets.token_urlsafe(32)
        _check_token(token)
        _check_hosts(allowed)
        listening = bind_socket(host, port)
        number = listening.getsockname()[1]
        own = {address_of(name, number) for name in (host, "127.0.0.1", "localhost", "::1")}
        own |= {one.removesuffix(":80") for one in own}  # clients leave the port of http out
        url = f"http://{address_of(host, number)}"
        return cls(listening, url, token, is_generated, frozenset(one.lower() for one in own | set(allowed)))


def _check_token(token: str) -> None:
    if len(token) < _LEAST or not (token.isascii() and token.isprintable()) or " " in token:
        raise ValueError(
            f"got a token of {len(token)} characters; wanted at least {_LEAST}, visible ASCII without spaces. Make one "
            "with: python -c 'import secrets; print(secrets.token_urlsafe())'"
        )


def _check_hosts(allowed: Sequence[str]) -> None:
    for one in allowed:
        if not _HOST.fullmatch(one):
            raise ValueError(
                f"--allow-host {one!r} is no value of Host; wanted a name, or NAME:PORT, as it stands in addresses."
            )


def _is_loopback(host: str) -> bool:
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost"


def serve(service: SearchService, address: Address, show: Callable[[str], None], log: Path | None = None) -> None:
    """Show the address, answer requests until Ctrl-C or SIGTERM, and add a line about each to the log."""
    address.listening.listen()  # whoever reads the address may ask at once
    show(f"serving {len(service.index):,} rows at {address.url}, Ctrl-C stops")
    if address.is_generated:
        show(f"token: {address.token}")
    with contextlib.ExitStack() as stack:
        stack.enter_context(threadpool_limits(1, user_api="blas"))  # each request has a thread already
        write = None
        if log is not None:
            file = stack.enter_context(open(log, "a", encoding="utf-8", buffering=1))

            def write(line: str) -> None:
                with contextlib.suppress(OSError):  # a full disk stops no answers
                    print(time.strftime("%Y-%m-%d %H:%M:%S"), line, file=file)

        run_app(make_app(service, address.token, address.hosts, write), address.listening, _GRACE)
