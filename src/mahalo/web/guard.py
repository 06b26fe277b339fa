"""Guard: who may ask a server, and with how much; and the headers of every answer."""

from __future__ import annotations

import hmac
from collections.abc import Callable, Collection, Mapping

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .refusal import Refusal


class Guard:
    """Middleware that refuses requests before they are read, bounds bodies, and adds headers to every answer.

    Parameters
    ----------
    app : ASGI application
    refuse : callable
        Takes the scope of a request and returns the answer of a refusal, or None.
    headers : mapping of str to str
        Headers of every answer.
    max_body : int
        Bytes after which reading a body raises `Refusal`, whatever was announced.
    """

    def __init__(
        self, app: ASGIApp, refuse: Callable[[Scope], Response | None], headers: Mapping[str, str], max_body: int
    ) -> None:
        self._app, self._refuse, self._headers, self._max_body = app, refuse, headers, max_body

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer or refuse one request."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close"})  # before it is accepted: 403
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in self._headers.items():
                    headers[name] = value
            await send(message)

        app = self._refuse(scope) or self._app
        await app(scope, _limited(receive, self._max_body), send_with_headers)


def host_refusal(headers: Headers, hosts: Collection[str], remedy: str) -> Refusal | None:
    """Return the refusal of a request for another host: a page elsewhere whose name was made to lead here.

    `hosts` are in lower case.
    """
    host = headers.get("host", "")
    if host.lower() in hosts:
        return None
    return Refusal(421, f"the Host {host[:200]!r}", " or ".join(sorted(hosts)), remedy)


def body_refusal(headers: Headers, max_body: int) -> Refusal | None:
    """Return the refusal of a request whose body is announced to be too large, or to be anything but JSON."""
    media_type = headers.get("content-type", "").split(";")[0].strip().lower()
    if media_type != "application/json":
        remedy = "Send the header Content-Type: application/json"
        return Refusal(415, f"the Content-Type {media_type[:200]!r}", "application/json", remedy)
    length = headers.get("content-length", "0")
    if not (length.isascii() and length.isdigit() and len(length) < 20) or int(length) > max_body:
        return _too_large(length[:20], max_body)
    return None


def _too_large(n_bytes: str, max_body: int) -> Refusal:
    return Refusal(413, f"a body of {n_bytes} bytes", f"at most {max_body:,}", "Send it in several requests")


def secrets_equal(given: str, secret: str) -> bool:
    """Return whether two secrets are equal, in a time that does not depend on how much of them is."""
    return hmac.compare_digest(given.encode("utf-8", "surrogateescape"), secret.encode())


def _limited(receive: Receive, max_body: int) -> Receive:
    """Return `receive` that raises after too many bytes, whatever was announced."""
    n_bytes = 0

    async def limited() -> Message:
        nonlocal n_bytes
        message = await receive()
        n_bytes += len(message.get("body", b""))
        if n_bytes > max_body:
            raise _too_large(f"{n_bytes} or more", max_body)
        return message

    return limited
