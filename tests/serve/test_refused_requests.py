"""What is refused: other hosts, no token, what is no JSON, too much, and numbers that are none; and what is counted."""

from __future__ import annotations

import asyncio
import json
import re
import threading

import numpy as np
import pytest
from services import HOST, TOKEN, tree_rows
from starlette.testclient import TestClient

from mahalo.serving import app as serving_app
from mahalo.serving.app import make_app
from mahalo.serving.run import Address

QUERIES = tree_rows(2, seed=1).tolist()
ROW = QUERIES[0]
JSON = {"Content-Type": "application/json"}
PATHS = ("/health", "/metrics", "/openapi.json", "/search", "/distance", "/same", "/nothing")


def refused(answer, status):
    """Assert that an answer refuses, in three lines without a break."""
    assert answer.status_code == status, answer.text
    assert set(answer.json()) == {"got", "wanted", "remedy"}
    assert all(text and "\n" not in text for text in answer.json().values())
    assert answer.headers["x-content-type-options"] == "nosniff" and answer.headers["cache-control"] == "no-store"
    return answer.json()


async def status_of(app, receive):
    """Search by the application itself: a client that waits for the end of its body waits for ever."""
    headers = [(b"host", HOST.encode()), (b"authorization", f"Bearer {TOKEN}".encode())]
    headers.append((b"content-type", b"application/json"))
    scope = {"type": "http", "method": "POST", "path": "/search", "headers": headers, "query_string": b""}
    sent = []

    async def send(message):
        sent.append(message)

    await app(scope | {"scheme": "http", "server": ("127.0.0.1", 8770)}, receive, send)
    return sent[0]["status"]


@pytest.fixture(autouse=True)
def answers_afterwards(client):
    """Whatever was sent, the server answers the next request."""
    yield
    assert client.post("/search", json={"queries": QUERIES}).status_code == 200


# -- who may ask ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "header",
    ["", TOKEN, f"Basic {TOKEN}", "Bearer", "Bearer ", f"Bearer {TOKEN[:-1]}", f"Bearer {TOKEN}x", "Bearer é".encode()],
)
def test_every_route_needs_the_token(client, path, header):
    for method in ("GET", "POST", "OPTIONS"):
        answer = client.request(method, path, headers={"Authorization": header})
        refused(answer, 401)
        assert answer.headers["www-authenticate"] == "Bearer" and TOKEN not in answer.text


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "127.0.0.1:1", "localhost:8770.evil.example", ""])
def test_other_hosts_are_refused(client, host):
    got = refused(client.get("/health", headers={"Host": host}), 421)
    assert HOST in got["wanted"] and "--allow-host" in got["remedy"]


def test_pages_of_other_origins_get_no_permission(client):
    origin = {"Origin": "http://evil.example", "Access-Control-Request-Method": "POST"}
    for answer in (client.options("/search", headers=origin), client.get("/health", headers=origin)):
        assert not [name for name in answer.headers if name.startswith("access-control")]
    assert client.options("/search", headers=origin).status_code == 405


def test_routes_and_methods_that_are_none(client):
    refused(client.get("/nothing"), 404)
    assert refused(client.get("/search"), 405)["got"] == "GET /search"
    refused(client.post("/health", json={}), 405)
    refused(client.put("/search", json={}), 405)
    refused(client.post("/search/", json={}), 404)  # no redirect, which would repeat the token


# -- what is sent ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "", "application/jsonx"])
def test_json_is_announced(client, kind):
    refused(client.post("/search", content=b"{}", headers={"Content-Type": kind}), 415)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[1]",
        b"null",
        b"\xff\xfe",
        b'{"queries": [[NaN, 1, 2]]}',
        b'{"queries": [[-Infinity, 1, 2]]}',
        b"[" * 1_000_000,
        b'{"queries":' * 100_000,
        b'{"k": ' + b"9" * 5_000 + b"}",
    ],
    ids=range(10),
)
def test_what_is_no_json_object(client, body):
    refused(client.post("/search", content=body, headers=JSON), 400)


def test_bodies_are_bounded_before_they_are_read(client, monkeypatch):
    read = []
    monkeypatch.setattr(serving_app, "parse_object", read.append)
    announced = {**JSON, "Content-Length": str(9_000_000)}
    assert "8,388,608" in refused(client.post("/search", content=b"{}", headers=announced), 413)["wanted"]
    assert read == []
    monkeypatch.undo()


def test_a_body_without_an_announced_length_is_read_to_the_limit_alone(pair_service, client_of):
    parts = []

    async def receive():
        parts.append(b"x" * 1_000_000)
        return {"type": "http.request", "body": parts[-1], "more_body": True}

    assert asyncio.run(status_of(client_of(pair_service).app, receive)) == 413
    assert len(parts) == 9  # of 8,388,608 bytes


@pytest.mark.parametrize(
    ("body", "got"),
    [
        ({}, "the fields of an empty object"),
        ({"queries": QUERIES, "texts": ["a"]}, "the field 'texts'"),
        ({"queries": QUERIES, "K": 3}, "the field 'K'"),
        ({"queries": QUERIES, "numbers": [[1]]}, "the field 'numbers'"),
        ({"queries": QUERIES, "\ud800": 1}, "the field '\\ud800'"),
        ({"queries": "12"}, "queries that is a string"),
        ({"queries": []}, "0 rows in queries"),
        ({"queries": [ROW] * 1001}, "1,001 rows in queries"),
        ({"queries": ROW}, "queries[0] that is a number"),
        ({"queries": [ROW, ROW[:2]]}, "queries[1] of 2 entries"),
        ({"queries": [[*ROW, 1.0]]}, "queries[0] of 4 entries"),
        ({"queries": [[1, "2", 3]]}, "queries[0][1] that is a string"),
        ({"queries": [[1, 2, None]]}, "queries[0][2] that is missing or null"),
        ({"queries": [[True, 2, 3]]}, "queries[0][0] that is a boolean"),
        ({"queries": [[1, [2], 3]]}, "queries[0][1] that is a list"),
        ({"queries": [ROW, [1, 10**400, 3]]}, "queries[1] with a number beyond double precision"),
        ({"queries": [[1e308, -1e308, 1e308]]}, "rows so large that their distances overflow"),
        ({"queries": QUERIES, "k": 0}, "k = 0"),
        ({"queries": QUERIES, "k": 1001}, "k = 1001"),
        ({"queries": QUERIES, "k": 1.5}, "k = 1.5"),
        ({"queries": QUERIES, "k": True}, "k = True"),
        ({"queries": QUERIES, "squared": 1}, "squared = 1"),
    ],
)
def test_searches_that_are_not_as_described(client, body, got):
    assert refused(client.post("/search", content=json.dumps(body), headers=JSON), 422)["got"] == got


def test_a_refusal_names_every_field_that_is_taken(client):
    wanted = {
        "/search": [({"K": 3, "queries": QUERIES}, "no field but queries, k, squared"), ({}, "queries")],
        "/distance": [({"left": {"ids": ["r1"]}}, "right as an object with one of rows, ids")],
    }
    for path, cases in wanted.items():
        for body, fields in cases:
            assert refused(client.post(path, json=body), 422)["wanted"] == fields


def test_numbers_beyond_double_precision_written_as_powers(client):
    answer = client.post("/search", content=b'{"queries": [[1e999, 1, 2]]}', headers=JSON)
    assert "beyond double precision" in refused(answer, 422)["got"]


@pytest.mark.parametrize(
    ("left", "right", "got"),
    [
        (None, {"ids": ["r1"]}, "left that is missing or null"),
        ({"ids": ["r1"]}, ["r1"], "right that is a list"),
        ({"ids": ["r1"], "rows": [ROW]}, {"ids": ["r1"]}, "the fields 'rows', 'ids'"),
        ({"ids": ["r1", "nobody"]}, {"ids": ["r1"]}, "ids[1] = 'nobody'"),
        ({"ids": ["\ud800"]}, {"ids": ["r1"]}, "ids[0] = '\\ud800'"),
        ({"ids": [1]}, {"ids": ["r1"]}, "ids[0] = 1"),
        ({"ids": [["r1"]]}, {"ids": ["r1"]}, "ids[0] = ['r1']"),
        ({"ids": "r1"}, {"ids": ["r1"]}, "ids that is a string"),
        ({"ids": ["r1"] * 1000}, {"ids": ["r1"] * 101}, "1,000 × 101 distances"),
    ],
)
def test_comparisons_that_are_not_as_described(client, left, right, got):
    answer = client.post("/distance", content=json.dumps({"left": left, "right": right}), headers=JSON)
    assert refused(answer, 422)["got"] == got


def test_pairs_are_as_many_on_both_sides(client):
    sides = {"left": {"ids": ["r1", "r2"]}, "right": {"ids": ["r3"]}}
    assert "2 rows on the left, 1 on the right" in refused(client.post("/same", json=sides), 422)["got"]


@pytest.mark.parametrize("text", ["", " \t\n", "x" * 100_001, "\ud800", 7, None, ["boat"], "zzzz"])
def test_texts_that_are_none(text_service, client_of, text):
    body = json.dumps({"texts": ["boat", text]})
    got = refused(client_of(text_service).post("/search", content=body, headers=JSON), 422)["got"]
    assert got.startswith("texts[1]")


def test_an_index_with_bm25_is_searched_by_texts_alone(hybrid_service, client_of):
    row = [0.0] * hybrid_service.form.n_features
    assert refused(client_of(hybrid_service).post("/search", json={"queries": [row]}), 422)["wanted"] == "texts"


def test_checks_of_the_library_are_refusals_too_and_mistakes_are_not(pair_service, client_of, monkeypatch):
    def wrong(X, k):
        raise ValueError("the library does not take this.\nNo.")

    monkeypatch.setattr(pair_service.index, "kneighbors", wrong)
    answer = client_of(pair_service).post("/search", json={"queries": QUERIES})
    assert refused(answer, 422)["got"] == "the library does not take this. No"

    def broken(X, k):
        raise KeyError("a mistake in the program")

    monkeypatch.setattr(pair_service.index, "kneighbors", broken)
    answer = client_of(pair_service).post("/search", json={"queries": QUERIES})
    assert "KeyError" in refused(answer, 500)["got"]
    monkeypatch.undo()


# -- how much at a time ----------------------------------------------------------------------------------------------


def test_too_many_requests_at_a_time(pair_service, client_of, monkeypatch):
    entered, go_on, search = threading.Event(), threading.Event(), pair_service.index.kneighbors

    def slow(X, k):
        entered.set()
        assert go_on.wait(60)
        return search(X, k)

    monkeypatch.setattr(pair_service.index, "kneighbors", slow)
    monkeypatch.setattr(serving_app, "MAX_WAITING", 1)
    client, answers = client_of(pair_service), []
    with client:  # one event loop for both requests
        first = threading.Thread(target=lambda: answers.append(client.post("/search", json={"queries": QUERIES})))
        first.start()
        assert entered.wait(60)
        second = client.post("/search", json={"queries": QUERIES})
        refused(second, 503)
        assert second.headers["retry-after"] == "1"
        assert "mahalo_requests_in_flight 2" in client.get("/metrics").text
        go_on.set()
        first.join()
    assert answers[0].status_code == 200


def test_a_body_that_does_not_end(pair_service, client_of, monkeypatch):
    monkeypatch.setattr(serving_app, "READ_SECONDS", 0.05)

    async def receive():
        await asyncio.sleep(3600)

    assert asyncio.run(status_of(client_of(pair_service).app, receive)) == 408


# -- what is counted -------------------------------------------------------------------------------------------------


def test_requests_are_counted_by_route_and_status(pair_service, client_of):
    lines = []
    client = client_of(pair_service, write=lines.append)
    client.post("/search", json={"queries": QUERIES})
    client.post("/search", json={"queries": []})
    client.get("/health", headers={"Authorization": ""})
    client.get('/a"b%0A')
    text = client.get("/metrics").text
    samples = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    assert samples['mahalo_requests_total{route="/search",status="200"}'] == "1"
    assert samples['mahalo_requests_total{route="/search",status="422"}'] == "1"
    assert samples['mahalo_requests_total{route="/health",status="401"}'] == "1"
    assert samples['mahalo_requests_total{route="other",status="404"}'] == "1"
    assert samples["mahalo_requests_in_flight"] == "1" and samples["mahalo_index_rows"] == "40"
    buckets = [
        int(n) for name, n in samples.items() if name.startswith('mahalo_request_seconds_bucket{route="/search"')
    ]
    assert buckets == sorted(buckets) and buckets[-1] == 2
    assert samples['mahalo_request_seconds_count{route="/search"}'] == "2"
    assert float(samples['mahalo_request_seconds_sum{route="/search"}']) > 0
    assert all(re.fullmatch(r'[a-z_]+(\{([a-z]+="[^"\n]+",?)+\})? [0-9.]+', f"{k} {v}") for k, v in samples.items())
    assert [line.split(" ", 4)[1:4] for line in lines][:4] == [
        ["POST", "/search", "200"],
        ["POST", "/search", "422"],
        ["GET", "/health", "401"],
        ["GET", "other", "404"],
    ]


# -- addresses -------------------------------------------------------------------------------------------------------


def test_a_token_is_made_up_on_loopback_alone():
    address = Address.bind("127.0.0.1", 0, None)
    address.listening.close()
    assert address.is_generated and len(address.token) > 40
    port = address.url.rsplit(":", 1)[1]
    assert address.hosts == {f"127.0.0.1:{port}", f"localhost:{port}", f"[::1]:{port}"}
    for host in ("0.0.0.0", "::", "10.0.0.1", "example.org"):
        with pytest.raises(ValueError, match="set MAHALO_TOKEN, or give --token"):
            Address.bind(host, 0, None)
    with Address.bind("0.0.0.0", 0, TOKEN, ["search.example.org"]).listening as listening:
        assert listening.getsockname()[0] == "0.0.0.0"


@pytest.mark.parametrize("host", ["", "*", "https://search.example.org", "search.example.org/path", "a b", "::1"])
def test_hosts_that_no_request_names(host):
    with pytest.raises(ValueError, match="is no value of Host; wanted a name, or NAME:PORT"):
        Address.bind("127.0.0.1", 0, TOKEN, [host])


def test_hosts_have_no_case(pair_service):
    address = Address.bind("127.0.0.1", 0, TOKEN, ["Search.Example.org", "[::1]:80"])
    address.listening.close()
    client = TestClient(make_app(pair_service, TOKEN, address.hosts), headers={"Authorization": f"Bearer {TOKEN}"})
    for host in ("search.example.org", "SEARCH.example.ORG", "[::1]:80"):
        assert client.get("/health", headers={"Host": host}).status_code == 200
    refused(client.get("/health", headers={"Host": "search.example.org:81"}), 421)


@pytest.mark.parametrize("token", ["", "short", "with a space in it", "ümlaut-is-no-header", "tab\tin-the-middle-of"])
def test_tokens_that_a_header_cannot_hold_or_that_are_short(token):
    with pytest.raises(ValueError, match="wanted at least 16, visible ASCII"):
        Address.bind("127.0.0.1", 0, token)


def test_addresses_that_cannot_be_bound():
    first = Address.bind("127.0.0.1", 0, TOKEN)
    first.listening.listen()
    with pytest.raises(OSError, match="is taken; pass --port 0"):
        Address.bind("127.0.0.1", first.listening.getsockname()[1], TOKEN)
    first.listening.close()
    with pytest.raises(OSError, match="no address of this machine"):
        Address.bind("no such host", 0, TOKEN)


def test_distances_of_many_rows_are_no_reason_to_stop(client):
    """As many as are allowed."""
    rows = np.tile(np.array(ROW), (1000, 1)).tolist()
    answer = client.post("/distance", json={"left": {"rows": rows}, "right": {"rows": rows[:100]}})
    assert answer.status_code == 200 and len(answer.json()["distances"]) == 1000
