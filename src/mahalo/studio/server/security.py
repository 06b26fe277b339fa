"""Guard: who may ask the server, from which page, and with how much; and the headers of every answer."""

from __future__ import annotations

import hmac
import secrets
import threading

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["BodyTooLarge", "Guard", "Tokens"]

_MAX_BODY = 65_536
_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Tokens:
    """The token of the address, exchanged once, and the cookie that it is exchanged for.

    Parameters
    ----------
    port : int
        Port of the server. It is part of the cookie's name, because browsers send cookies to all ports of a host: two
        servers would overwrite each other's.
    """

    def __init__(self, port: int) -> None:
        self.cookie_name = f"mahalo_studio_{port}"
        self.token = secrets.token_urlsafe(32)
        self.cookie = secrets.token_urlsafe(32)
        self._spent = False
        self._lock = threading.Lock()

    def exchange(self, token: str) -> bool:
        """Return whether this is the token and it is presented for the first time."""
        with self._lock:
            if not _equal(token, self.token) or self._spent:
                return False
            self._spent = True
            return True

    def knows(self, headers: Headers) -> bool:
        """Return whether a request has the cookie."""
        return _equal(cookie_parser(headers.get("cookie", "")).get(self.cookie_name, ""), self.cookie)


class Guard:
    """Middleware that refuses requests with another Host or Origin, without the cookie, or with a body too large.

    Parameters
    ----------
    app : ASGI application
    tokens : Tokens
    hosts : set of str
        Values of Host that are answered, such as "127.0.0.1:8765".
    """

    def __init__(self, app: ASGIApp, tokens: Tokens, hosts: set[str]) -> None:
        self._app, self._tokens, self._hosts = app, tokens, hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer or refuse one request."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":  # no websockets
            return
        refused = self._refusal(scope)

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers[name] = value
            await send(message)

        if refused is not None:
            await refused(scope, receive, send_with_headers)
            return
        await self._app(scope, _limited(receive), send_with_headers)

    def _refusal(self, scope: Scope) -> PlainTextResponse | None:
        headers, method = Headers(scope=scope), scope["method"]
        if headers.get("host", "") not in self._hosts:
            return PlainTextResponse("This server answers on loopback only.", 421)
        origin = headers.get("origin")
        if origin is not None and origin not in {f"http://{host}" for host in self._hosts}:
            return PlainTextResponse("Requests from other pages are refused.", 403)
        if headers.get("sec-fetch-site") in ("cross-site", "same-site") and headers.get("sec-fetch-mode") != "navigate":
            return PlainTextResponse("Requests from other pages are refused.", 403)
        if method not in ("GET", "HEAD", "POST"):
            return PlainTextResponse("GET or POST is wanted.", 405)
        if scope["path"] != "/open" and not self._tokens.knows(headers):
            return PlainTextResponse("Open the address that `mahalo studio` has printed.", 403)
        if method == "POST":
            if origin is None:
                return PlainTextResponse("A request that changes something needs an Origin.", 403)
            if headers.get("content-type", "").split(";")[0].strip().lower() != "application/json":
                return PlainTextResponse("JSON is wanted.", 415)
            length = headers.get("content-length", "0")
            if not length.isdigit() or int(length) > _MAX_BODY:
                return PlainTextResponse(f"At most {_MAX_BODY:,} bytes are wanted.", 413)
        return None


class BodyTooLarge(Exception):
    """More bytes were sent than announced or allowed."""


def _limited(receive: Receive) -> Receive:
    """Return `receive` that raises after too many bytes, whatever was announced."""
    n_bytes = 0

    async def limited() -> Message:
        nonlocal n_bytes
        message = await receive()
        n_bytes += len(message.get("body", b""))
        if n_bytes > _MAX_BODY:
            raise BodyTooLarge
        return message

    return limited


def _equal(a: str, b: str) -> bool:
    return hmac.compare_digest(a.encode("utf-8", "surrogateescape"), b.encode())
