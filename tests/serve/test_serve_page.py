"""What docs/serve.md shows is what the server answers."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from services import TOKEN

from mahalo.serving import limits
from mahalo.serving.app import make_app
from mahalo.serving.loading import load_service
from mahalo.serving.run import Address
from mahalo.tables.options import RowOptions

PAGE = (Path(__file__).parents[2] / "docs" / "serve.md").read_text(encoding="utf-8")


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, flags=re.M | re.S)


@pytest.fixture
def port(tmp_path, monkeypatch):
    """The port of a server of the model and the index that the page makes."""
    import uvicorn

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MAHALO_TOKEN", TOKEN)
    for block in blocks("python"):
        exec(compile(block, "serve.md", "exec"), {})
    service = load_service(Path("wine.safetensors"), RowOptions(data=["bottles.safetensors"]))
    address = Address.bind("127.0.0.1", 0, TOKEN)
    app = make_app(service, TOKEN, address.hosts)
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=1))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [address.listening]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.02)
    yield address.url.rsplit(":", 1)[1]
    server.should_exit = True
    thread.join(timeout=20)
    address.listening.close()


def test_the_requests_of_the_page_are_answered(port):
    [curl], [client] = ([block.replace("8770", port) for block in blocks(one)] for one in ("bash", "py"))
    shown = subprocess.run(["bash", "-c", curl], capture_output=True, text=True, timeout=60)
    if shown.returncode != 127:  # no curl on this machine
        found = json.loads(shown.stdout)
        assert [len(one) for one in found["ids"]] == [3] and found["ids"][0][0].startswith("bottle ")
    ran = subprocess.run([sys.executable, "-c", client], capture_output=True, text=True, timeout=60, env={**os.environ})
    assert (ran.returncode, ran.stderr) == (0, "")


def test_the_limits_of_the_page_are_those_of_the_code():
    rows = dict(re.findall(r"^\| ([^|]+?) \| ([\d,]+)", PAGE, flags=re.M))
    numbers = [int(text.replace(",", "")) for text in rows.values()]
    expected = [limits.MAX_ROWS, limits.MAX_K, limits.MAX_ANSWER, limits.MAX_WAITING]
    assert numbers == [limits.MAX_BODY >> 20, *expected]
