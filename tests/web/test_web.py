"""Parts that servers share: the socket, and the run until the process is asked to stop."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import pytest

pytest.importorskip("starlette", reason="pages are served by starlette: pip install 'mahalo[studio]'")

from mahalo.web import Guard, Refusal, address_of, bind_socket, parse_object

SERVER = """
import asyncio
from mahalo.web import bind_socket, run_app

async def app(scope, receive, send):
    if scope["type"] != "http":
        return
    print("asked", flush=True)
    await asyncio.sleep(0.5)
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"whole"})

socket = bind_socket("127.0.0.1", 0)
socket.listen()
print(socket.getsockname()[1], flush=True)
run_app(app, socket, grace=30.0)
print("stopped", flush=True)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_server_that_is_asked_to_stop_finishes_its_answers(number):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", SERVER]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment) as run:
        port = int(run.stdout.readline())
        asking = urllib.request.Request(f"http://127.0.0.1:{port}/")
        with ThreadPoolExecutor(1) as threads:
            answer = threads.submit(lambda: urllib.request.urlopen(asking, timeout=60).read())
            assert run.stdout.readline() == "asked\n"
            run.send_signal(number)
            assert answer.result() == b"whole"
        out, err = run.communicate(timeout=60)
        assert (run.returncode, out, err) == (0, "stopped\n", "")


def test_sockets_are_bound_or_it_is_said_why_not():
    with bind_socket("127.0.0.1", 0) as first:
        first.listen()
        with pytest.raises(OSError, match="is taken; pass --port 0"):
            bind_socket("127.0.0.1", first.getsockname()[1])
    with pytest.raises(OSError, match="no address of this machine"):
        bind_socket("no such host", 0)
    for port in (-1, 65_536):
        with pytest.raises(ValueError, match=f"got {port}"):
            bind_socket("127.0.0.1", port)
    assert address_of("::1", 80) == "[::1]:80" and address_of("localhost", 8770) == "localhost:8770"


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[1]", b"null", b"\xff", b'{"a": NaN}', b'{"a": -Infinity}', b"[" * 100_000, b"9" * 5_000]
)
def test_bodies_that_are_no_json_object(body):
    with pytest.raises(Refusal) as refused:
        parse_object(body)
    assert refused.value.status == 400 and "\n" not in str(refused.value)
    assert parse_object(b'{"a": [1, 2.5]}') == {"a": [1, 2.5]}


def test_websockets_are_refused_before_they_are_accepted():
    """By ASGI: a connection that is closed before it is accepted gets 403."""
    sent = []

    async def receive():
        return {"type": "websocket.connect"}

    async def send(message):
        sent.append(message)

    async def app(scope, receive, send):
        raise AssertionError("asked")

    asyncio.run(Guard(app, lambda scope: None, {}, 10)({"type": "websocket", "headers": []}, receive, send))
    assert sent == [{"type": "websocket.close"}]
