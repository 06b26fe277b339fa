"""The application: routes, who may ask, and how requests are answered in threads."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Scope
from threadpoolctl import threadpool_limits

from ..tables.formatting import one_line
from ..web import Guard, Refusal, body_refusal, host_refusal, parse_object, secrets_equal
from .limits import MAX_BODY, MAX_WAITING, READ_SECONDS
from .metrics import Measured, Metrics
from .openapi import openapi
from .service import SearchService

__all__ = ["make_app"]

_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
}
_READ = ("/health", "/metrics", "/openapi.json")
_ASK = ("/search", "/distance", "/same")

Answer = Callable[[Mapping[str, object]], dict[str, object]]


def make_app(
    service: SearchService, token: str, hosts: Collection[str], write: Callable[[str], None] | None = None
) -> Starlette:
    """Return the application of a service.

    Parameters
    ----------
    service : SearchService
    token : str
        Secret that every request has in its header Authorization.
    hosts : collection of str
        Values of Host that are answered.
    write : callable, optional
        Called with a line about each request.
    """
    metrics, workers = Metrics((*_READ, *_ASK), len(service.index)), _Workers()
    document = json.dumps(openapi(service)).encode()

    async def health(request: Request) -> Response:
        return _json(service.describe())

    async def counts(request: Request) -> Response:
        return Response(metrics.render(), media_type="text/plain; version=0.0.4")

    async def description(request: Request) -> Response:
        return Response(document, media_type="application/json")

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        yield
        workers.stop()

    asked = (service.search, service.distances, service.answer_pairs)
    app = Starlette(
        routes=[
            *(Route(path, get) for path, get in zip(_READ, (health, counts, description), strict=True)),
            *(Route(path, workers.post(ask), methods=["POST"]) for path, ask in zip(_ASK, asked, strict=True)),
        ],
        middleware=[
            Middleware(Measured, metrics=metrics, write=write),
            Middleware(Guard, refuse=partial(_refuse, token, hosts), headers=_HEADERS, max_body=MAX_BODY),
        ],
        exception_handlers={
            Refusal: _refused,
            HTTPException: _no_route,
            ClientDisconnect: _gone,
            Exception: _failed,
        },
        lifespan=lifespan,
    )
    app.router.redirect_slashes = False  # behind TLS a client would follow to http, with its token
    return app


class _Workers:
    """Threads that answer, as many as cores: numpy and the graphs leave the interpreter free while they compute.

    OpenMP, which the graphs use, is kept from starting as many again below each: they would wait for each other.
    """

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(max(2, os.cpu_count() or 1), initializer=_use_one_thread)
        self._n_waiting = 0

    def post(self, answer: Answer) -> Callable[[Request], object]:
        """Return an endpoint that reads a body and answers it in a thread."""

        async def endpoint(request: Request) -> Response:
            if self._n_waiting >= MAX_WAITING:
                raise Refusal(503, f"more than {MAX_WAITING} requests at a time", "fewer", "Try again in a second")
            self._n_waiting += 1
            try:
                body = await _read(request)
                made = await asyncio.get_running_loop().run_in_executor(self._threads, _work, answer, body)
            finally:
                self._n_waiting -= 1
            return Response(made, media_type="application/json")

        return endpoint

    def stop(self) -> None:
        """Wait for the answers under way; drop those that have not begun."""
        self._threads.shutdown(cancel_futures=True)


def _use_one_thread() -> None:
    threadpool_limits(1, user_api="openmp")  # of the thread that calls


async def _read(request: Request) -> bytes:
    try:
        async with asyncio.timeout(READ_SECONDS):
            return await request.body()
    except TimeoutError:
        raise Refusal(
            408, "a body that does not end", f"all of it within {READ_SECONDS:g} s", "Send it again"
        ) from None


def _work(answer: Answer, body: bytes) -> bytes:
    """Parse, answer and encode, in a thread."""
    asked = parse_object(body)
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            return json.dumps(answer(asked), allow_nan=False).encode()
    except ValueError as error:  # the library's own checks
        raise Refusal(422, one_line(error), "rows as the model takes them", "See GET /openapi.json") from None


def _refuse(token: str, hosts: Collection[str], scope: Scope) -> Response | None:
    """Return the answer to a request for another host, without the token, or with a body that is not read."""
    headers = Headers(scope=scope)
    refusal = host_refusal(headers, hosts, "Use one of these, or start the server with --allow-host HOST")
    scheme, _, given = headers.get("authorization", "").partition(" ")
    if refusal is None and not (scheme.lower() == "bearer" and secrets_equal(given.strip(), token)):
        remedy = "Send the header Authorization: Bearer TOKEN with the token of the server's start"
        refusal = Refusal(401, "no token, or another one", "the token of this server", remedy)
    if refusal is None and scope["method"] == "POST":
        refusal = body_refusal(headers, MAX_BODY)
    return None if refusal is None else _answer(refusal)


def _answer(refusal: Refusal) -> Response:
    response = _json({"got": refusal.got, "wanted": refusal.wanted, "remedy": refusal.remedy}, refusal.status)
    if refusal.status == 401:
        response.headers["WWW-Authenticate"] = "Bearer"
    if refusal.status == 503:
        response.headers["Retry-After"] = "1"
    return response


def _json(content: Mapping[str, object], status: int = 200) -> Response:
    # ASCII: a message may show a letter of a request that has no encoding.
    return Response(json.dumps(content).encode(), status, media_type="application/json")


def _refused(request: Request, refusal: Exception) -> Response:
    assert isinstance(refusal, Refusal)
    return _answer(refusal)


def _no_route(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    got = f"{request.method} {request.url.path[:200]}"
    wanted = " or ".join([*(f"GET {path}" for path in _READ), *(f"POST {path}" for path in _ASK)])
    response = _answer(Refusal(error.status_code, got, wanted, "GET /openapi.json describes every request"))
    response.headers.update(error.headers or {})
    return response


def _gone(request: Request, error: Exception) -> Response:
    return _answer(Refusal(400, "a connection that was closed within a body", "the whole body", "Send it again"))


def _failed(request: Request, error: Exception) -> Response:
    remedy = "The server's standard error has the trace; please report it"
    response = _answer(Refusal(500, f"an error of the server, {type(error).__name__}", "an answer", remedy))
    response.headers.update(_HEADERS)  # Starlette sends it from outside the guard
    return response
