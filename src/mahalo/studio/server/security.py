"""Rules of the page: who may ask, from which page, and with how much; and the headers of every answer."""

from __future__ import annotations

import secrets
import threading

from starlette.datastructures import Headers
from starlette.requests import cookie_parser
from starlette.responses import PlainTextResponse
from starlette.types import Scope

from ...web import Refusal, body_refusal, host_refusal, secrets_equal

MAX_BODY = 65_536
HEADERS = {
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
            if not secrets_equal(token, self.token) or self._spent:
                return False
            self._spent = True
            return True

    def knows(self, headers: Headers) -> bool:
        """Return whether a request has the cookie."""
        return secrets_equal(cookie_parser(headers.get("cookie", "")).get(self.cookie_name, ""), self.cookie)


class PageRules:
    """Rules of the page: requests with another Host or Origin, without the cookie, or with a large body are refused.

    Parameters
    ----------
    tokens : Tokens
    hosts : set of str
        Values of Host that are answered, such as "127.0.0.1:8765".
    """

    def __init__(self, tokens: Tokens, hosts: set[str]) -> None:
        self._tokens, self._hosts = tokens, hosts

    def refuse(self, scope: Scope) -> PlainTextResponse | None:
        """Return the answer of a refusal, None for a request that is allowed."""
        headers, method = Headers(scope=scope), scope["method"]
        if (elsewhere := host_refusal(headers, self._hosts, "Open the printed address")) is not None:
            return _as_text(elsewhere)
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
            if (body := body_refusal(headers, MAX_BODY)) is not None:
                return _as_text(body)
        return None


def _as_text(refusal: Refusal) -> PlainTextResponse:
    return PlainTextResponse(str(refusal), refusal.status)
