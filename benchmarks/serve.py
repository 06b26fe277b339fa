"""The service: eight clients at a time over 100,000 vectors, requests that are refused among them, and a kill."""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import json
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mahalo import MetricLearner
from mahalo.search import Index, build_index

from .report import Check, Report, Table
from .settings import ROOT, Settings

__all__ = ["run"]

N_REQUESTS, N_QUERIES, N_CLIENTS, N_FEATURES, K = 1_000, 10, 8, 384, 10
_EVERY = 25  # one request in so many is followed by one that is refused
_SECONDS = 60.0  # for one answer
_REFUSED = {
    "malformed": b'{"queries": [[1, 2',
    "nan": b'{"queries": [[NaN]]}',
    "nested": b"[" * 100_000,
    "narrow": b'{"queries": [[1, 2, 3]]}',
    "oversized": b" " * 9_000_000,
}


def run(settings: Settings) -> Report:
    n, n_requests = (10_000, 200) if settings.quick else (100_000, N_REQUESTS)
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work)
        index, queries, seconds = _build(folder, n, n_requests, settings.seed)
        before = _digests(folder)
        with _server(folder) as (_, client):
            load = _load(client, queries)
        with _server(folder) as (process, client):
            killed = _kill_under_load(process, client, queries)
        with _server(folder) as (_, client):
            again = [client.ask(_body(one)) for one in queries[:20]]
        whole = _digests(folder) == before
    expected = [index.kneighbors(one, K).ids.tolist() for one in queries[:100]]
    right = float(
        np.mean([json.loads(answer)["ids"] == ids for answer, ids in zip(load.answers, expected, strict=False)])
    )
    resumed = float(np.mean([body == first for (_, body), first in zip(again, load.answers, strict=False)]))
    p50, p99 = (1e3 * float(np.quantile(load.seconds, share)) for share in (0.5, 0.99))
    rows = (
        (f"{len(queries):,} requests of {N_QUERIES} queries, {N_CLIENTS} clients: p50", f"{p50:.1f} ms"),
        ("p99", f"{p99:.1f} ms"),
        ("slowest", f"{1e3 * max(load.seconds):.1f} ms"),
        ("queries a second", f"{len(queries) * N_QUERIES / load.wall:,.0f}"),
        ("refused among them", f"{load.n_bad:,}"),
        (f"index of {n:,} × {N_FEATURES} by faiss, seconds to build", f"{seconds:.0f}"),
    )
    checks = (
        Check("requests answered with an error, or not at all", float(load.n_errors), 0.0, at_least=False),
        Check("answers that are the index's", right, 1.0),
        Check("malformed and oversized requests that are refused", load.share_refused, 1.0),
        Check("killed while it answered", float(killed), 1.0),
        Check("files unchanged after the kill", float(whole), 1.0),
        Check("answers after the restart that are those before", resumed, 1.0),
    )
    notes = ("clients and server share the machine; a request is timed from its first byte to the end of its answer",)
    return Report("serve", checks, (Table("serve", ("what", "value"), rows),), notes, {"p50_ms": p50, "p99_ms": p99})


# -- the server --------------------------------------------------------------------------------------------------------


def _build(folder: Path, n: int, n_requests: int, seed: int) -> tuple[Index, list[np.ndarray], float]:
    """Write a metric and an index; return the index, the queries of each request, and the seconds of its building."""
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((200, N_FEATURES))
    y = rng.integers(0, len(centres), n + n_requests * N_QUERIES)
    X = (centres[y] + rng.standard_normal((len(y), N_FEATURES))).astype(np.float32)
    metric = MetricLearner(prior="diagonal", gamma=0.1, pairs_per_class=5).fit(X[:600], y[:600]).metric_
    metric.save(folder / "metric.safetensors")
    began = time.perf_counter()
    index = build_index(metric, X[:n], "faiss")
    seconds = time.perf_counter() - began
    index.save(folder / "index.safetensors")
    return index, np.split(X[n:], n_requests), seconds


@dataclass(frozen=True)
class _Client:
    """Address and token of a server."""

    port: int
    token: str

    def ask(self, body: bytes) -> tuple[int, bytes]:
        """Return status and body of an answer to a search."""
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=_SECONDS)) as connection:
            headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
            connection.request("POST", "/search", body, headers)
            answer = connection.getresponse()
            return answer.status, answer.read()


@contextlib.contextmanager
def _server(folder: Path) -> Iterator[tuple[subprocess.Popen[str], _Client]]:
    """Start the command in a process of its own."""
    token = secrets.token_urlsafe()
    paths = [str(folder / name) for name in ("metric.safetensors", "index.safetensors")]
    command = [sys.executable, "-m", "mahalo.cli", "serve", paths[0], "--index", paths[1], "--port", "0"]
    environment = {**os.environ, "MAHALO_TOKEN": token}
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            printed = process.stdout.readline()  # empty if the process has ended
            yield process, _Client(int(printed.split(",")[-2].rsplit(":", 1)[1]), token)
        finally:
            process.terminate()


def _digests(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}


# -- the load ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Load:
    """Seconds and bodies of all answers, errors, and how requests that are none were taken."""

    seconds: list[float]
    answers: list[bytes]
    n_errors: int
    n_bad: int
    share_refused: float
    wall: float


def _load(client: _Client, queries: list[np.ndarray]) -> _Load:
    bodies = [_body(one) for one in queries]
    bad = [list(_REFUSED.values())[k % len(_REFUSED)] for k in range(len(bodies) // _EVERY)]

    def ask(number: int) -> tuple[float, int, bytes, int | None]:
        refused = client.ask(bad[number // _EVERY])[0] if number % _EVERY == 0 else None
        began = time.perf_counter()
        try:
            status, answer = client.ask(bodies[number])
        except OSError:
            status, answer = 0, b"{}"
        return time.perf_counter() - began, status, answer, refused

    began = time.perf_counter()
    with ThreadPoolExecutor(N_CLIENTS) as clients:
        found = list(clients.map(ask, range(len(bodies))))
    wall = time.perf_counter() - began
    statuses = [refused for *_, refused in found if refused is not None]
    return _Load(
        seconds=[seconds for seconds, *_ in found],
        answers=[answer for _, _, answer, _ in found],
        n_errors=sum(status != 200 for _, status, _, _ in found),
        n_bad=len(statuses),
        share_refused=float(np.mean([400 <= status < 500 for status in statuses])),
        wall=wall,
    )


def _kill_under_load(process: subprocess.Popen[str], client: _Client, queries: list[np.ndarray]) -> bool:
    """Kill a server while it answers; return whether it ended by that."""

    def ask(one: np.ndarray) -> None:
        with contextlib.suppress(OSError, http.client.HTTPException):
            client.ask(_body(one))

    with ThreadPoolExecutor(N_CLIENTS) as clients:
        asking = [clients.submit(ask, one) for one in queries[: 20 * N_CLIENTS]]
        asking[N_CLIENTS].result()
        process.kill()
    return process.wait(_SECONDS) == -signal.SIGKILL


def _body(queries: np.ndarray) -> bytes:
    return json.dumps({"queries": queries.astype(np.float64).tolist(), "k": K}).encode()
