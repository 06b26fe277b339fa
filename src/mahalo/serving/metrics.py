"""Counts and times of requests, as Prometheus reads them."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection

from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["Measured", "Metrics"]

_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)  # seconds
_OTHER = "other"  # paths that are no route, which a client may invent at will


class Metrics:
    """Counts of requests by route and status, their times, and how many are being answered.

    It is used from the event loop alone.

    Parameters
    ----------
    routes : collection of str
    n_rows : int
        Rows in the index.
    """

    def __init__(self, routes: Collection[str], n_rows: int) -> None:
        self._routes, self._n_rows = frozenset(routes), n_rows
        self._requests: Counter[tuple[str, int]] = Counter()
        self._buckets: Counter[tuple[str, float]] = Counter()
        self._seconds: dict[str, float] = defaultdict(float)
        self.in_flight = 0

    def route_of(self, path: str) -> str:
        """Return the route of a path."""
        return path if path in self._routes else _OTHER

    def observe(self, route: str, status: int, seconds: float) -> None:
        """Count an answered request."""
        self._requests[route, status] += 1
        self._seconds[route] += seconds
        for bucket in _BUCKETS:
            self._buckets[route, bucket] += seconds <= bucket

    def render(self) -> str:
        """Return the text format of Prometheus, version 0.0.4."""
        lines = _head("mahalo_requests_total", "counter", "Requests answered, by route and status.")
        for (route, status), n in sorted(self._requests.items()):
            lines.append(f'mahalo_requests_total{{route="{route}",status="{status}"}} {n}')
        lines += _head("mahalo_request_seconds", "histogram", "Seconds from the head of a request to its answer.")
        for route in sorted(self._seconds):
            n = sum(count for (one, _), count in self._requests.items() if one == route)
            found = [*((f"{bucket:g}", self._buckets[route, bucket]) for bucket in _BUCKETS), ("+Inf", n)]
            lines += [f'mahalo_request_seconds_bucket{{route="{route}",le="{end}"}} {count}' for end, count in found]
            lines.append(f'mahalo_request_seconds_sum{{route="{route}"}} {self._seconds[route]:.6f}')
            lines.append(f'mahalo_request_seconds_count{{route="{route}"}} {n}')
        lines += _head("mahalo_requests_in_flight", "gauge", "Requests being answered, this one among them.")
        lines.append(f"mahalo_requests_in_flight {self.in_flight}")
        lines += _head("mahalo_index_rows", "gauge", "Rows in the index.")
        lines.append(f"mahalo_index_rows {self._n_rows}")
        return "\n".join(lines) + "\n"


def _head(name: str, kind: str, text: str) -> list[str]:
    return [f"# HELP {name} {text}", f"# TYPE {name} {kind}"]


class Measured:
    """Middleware that measures every request and writes a line of it to a log.

    Parameters
    ----------
    app : ASGI application
    metrics : Metrics
    write : callable, optional
        Called with the line of each request.
    """

    def __init__(self, app: ASGIApp, metrics: Metrics, write: Callable[[str], None] | None = None) -> None:
        self._app, self._metrics, self._write = app, metrics, write

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on a request and measure it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        status, began = 500, time.perf_counter()  # of a request whose answer fails

        async def send_and_note(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        self._metrics.in_flight += 1
        try:
            await self._app(scope, receive, send_and_note)
        finally:
            self._metrics.in_flight -= 1
            seconds, route = time.perf_counter() - began, self._metrics.route_of(scope["path"])
            self._metrics.observe(route, status, seconds)
            if self._write is not None:
                client = (scope.get("client") or ("-",))[0]
                self._write(f"{client} {scope['method']} {route} {status} {1e3 * seconds:.1f} ms")
