"""`mahalo serve`: started as a process, killed, started again; and its refusals."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request

import pytest
from services import TOKEN, tree_rows

from mahalo.cli.app import main

QUERIES = tree_rows(3, seed=1).tolist()


@contextlib.contextmanager
def served(folder, *options, token=TOKEN):
    """Serve trees.csv in a process; yield the process, its address and what it has printed."""
    command = [sys.executable, "-m", "mahalo.cli", "serve", "same.safetensors", "--index", "trees.csv", "--port", "0"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    environment.pop("MAHALO_TOKEN", None)
    if token is not None:
        environment["MAHALO_TOKEN"] = token
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen([*command, *options], cwd=folder, env=environment, **pipes) as process:
        try:
            printed = process.stdout.readline()
            yield process, re.search(r"http://\S+(?=,)", printed)[0]
        finally:
            process.kill()


def ask(address, path, body=None, token=TOKEN):
    data = None if body is None else json.dumps(body).encode()
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    headers["X-Forwarded-For"] = "10.9.8.7 GET /forged 200"  # not the address in the log
    with urllib.request.urlopen(urllib.request.Request(address + path, data, headers), timeout=60) as answer:
        return json.loads(answer.read())


def digests(folder):
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir() if path.is_file()}


def test_a_killed_server_leaves_everything_whole_and_a_stopped_one_finishes(numbers, tmp_path):
    before, log = digests(numbers), tmp_path / "requests.log"
    with served(numbers) as (process, address):
        assert ask(address, "/health")["rows"] == 40
        first = ask(address, "/search", {"queries": QUERIES})
        process.send_signal(signal.SIGKILL)
        assert process.wait(60) == -signal.SIGKILL
    with served(numbers, "--log", str(log), token=None) as (process, address):
        token = process.stdout.readline().removeprefix("token: ").strip()
        assert len(token) > 40
        assert ask(address, "/search", {"queries": QUERIES}, token) == first
        with pytest.raises(urllib.error.HTTPError, match="401"):
            ask(address, "/health", token=TOKEN)
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=60)
        assert (process.returncode, out, err) == (0, "", "")
    assert digests(numbers) == before
    lines = [line.split(" ")[2:6] for line in log.read_text().splitlines() if " /" in line]
    assert lines == [["127.0.0.1", "POST", "/search", "200"], ["127.0.0.1", "GET", "/health", "401"]]
    assert token not in log.read_text()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--host", "0.0.0.0"], "set MAHALO_TOKEN, or give --token"),
        (["--token", "short"], "wanted at least 16"),
        (["--port", "70000"], "a port is a number from 0"),
        (["--host", "no such host", "--token", TOKEN], "no address of this machine"),
        (["--log", "trees.csv"], "--log"),
        (["--encoder", "folder"], "leave --encoder out"),
        (["--index", "same.safetensors", "--encoding", "latin-1"], "--encoding is for .csv, .tsv and .txt files"),
        (["--index", "same.safetensors", "--id", "name"], "leave --id and --ids out"),
    ],
)
def test_wrong_options_are_refused_in_one_line(numbers, monkeypatch, capsys, options, message):
    monkeypatch.chdir(numbers)
    monkeypatch.delenv("MAHALO_TOKEN", raising=False)
    with pytest.raises(SystemExit) as stopped:
        main(["serve", "metric.safetensors", "--index", "trees.csv", "--port", "0", *options])
    out, err = capsys.readouterr()
    assert stopped.value.code == 2 and out == "" and message in err and err.count("\n") == 1, err
