"""The server: what it refuses, and that what it takes is in the log."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("starlette", reason="the studio is served by starlette: pip install 'mahalo[studio]'")

from people import reply
from serving import HOSTILE, make_studio
from starlette.testclient import TestClient

from mahalo.studio.questions import Question
from mahalo.studio.server.app import make_app
from mahalo.studio.server.security import Tokens

HOST = "127.0.0.1:8765"
ORIGIN = {"Origin": f"http://{HOST}"}


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    studio, y = make_studio(tmp_path_factory.mktemp("server"))
    tokens = Tokens(8765)
    with TestClient(make_app(studio, tokens, {HOST}), base_url=f"http://{HOST}") as client:
        client.cookies.set(tokens.cookie_name, tokens.cookie)
        yield client, studio, y, tokens


@pytest.fixture
def client(served):
    return served[0]


def ask(client):
    found = client.get("/api/question").json()
    return Question(**{**found["question"], "rows": tuple(found["question"]["rows"])}), found["items"]


def post(client, name, **body):
    return client.post(f"/api/{name}", json=body, headers=ORIGIN)


def test_the_token_is_exchanged_once_for_a_strict_cookie(tmp_path):
    studio, _ = make_studio(tmp_path, n=20)
    tokens = Tokens(8765)
    app = make_app(studio, tokens, {HOST})
    with TestClient(app, base_url=f"http://{HOST}") as first:
        assert first.get("/").status_code == first.get("/api/setup").status_code == 403
        assert first.get("/open", params={"token": tokens.token[:-1]}).status_code == 403
        answer = first.get("/open", params={"token": tokens.token})
        assert answer.status_code == 200 and "token" not in answer.text
        cookie = answer.headers["set-cookie"].lower()
        assert "httponly" in cookie and "samesite=strict" in cookie
        assert first.get("/").status_code == 200
        first.cookies.clear()
        assert first.get("/open", params={"token": tokens.token}).status_code == 403
        for wrong in ("é".encode(), b"x" * 40):
            assert first.get("/", headers={"Cookie": tokens.cookie_name.encode() + b"=" + wrong}).status_code == 403


def test_cookies_of_other_programs_on_this_machine_do_no_harm(served):
    client, _, _, tokens = served
    for others in ('a={"x": 1}', "b[1]=2", "no value", f"mahalo_studio_8766={'x' * 43}"):
        cookies = f"{others}; {tokens.cookie_name}={tokens.cookie}"
        assert client.get("/api/setup", headers={"Cookie": cookies}).status_code == 200
    assert Tokens(8766).cookie_name != tokens.cookie_name


def test_every_answer_has_headers_that_keep_the_page_to_itself(client):
    for path in ("/", "/api/setup", "/nothing", "/static/studio.js"):
        headers = client.get(path).headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["referrer-policy"] == "no-referrer" and headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 421),
        ({"Host": "localhost:1"}, 421),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}, 403),
    ],
)
def test_requests_from_elsewhere_are_refused(client, headers, status):
    assert client.get("/api/question", headers=headers).status_code == status
    assert client.post("/api/answer", json={}, headers={**ORIGIN, **headers}).status_code == status


def test_what_changes_something_needs_an_origin_json_and_little(client):
    assert client.post("/api/undo", json={"id": "a"}).status_code == 403
    plain = client.post("/api/undo", content=b"{}", headers={**ORIGIN, "Content-Type": "text/plain"})
    assert plain.status_code == 415
    json_type = {**ORIGIN, "Content-Type": "application/json"}
    assert client.post("/api/undo", content=b"x" * 100_000, headers=json_type).status_code == 413

    def parts():
        for _ in range(100):
            yield b"x" * 1_000_000

    assert client.post("/api/undo", content=parts(), headers=json_type).status_code == 413
    for body in (b"{", b"[1]", b"\xff", b"", b"[" * 60_000, b"null"):
        assert client.post("/api/undo", content=body, headers=json_type).status_code == 400
    assert client.put("/api/undo", json={}, headers=ORIGIN).status_code == 405


@pytest.mark.parametrize(
    "body",
    [
        {"id": "x", "kind": "pair", "rows": [0, 10**9], "answer": "same"},
        {"id": "x", "kind": "pair", "rows": [0, -1], "answer": "same"},
        {"id": "x", "kind": "pair", "rows": [0, 0], "answer": "same"},
        {"id": "x", "kind": "pair", "rows": [0, True], "answer": "same"},
        {"id": "x", "kind": "pair", "rows": "01", "answer": "same"},
        {"id": "x", "kind": "pair", "rows": [0, 1], "answer": 3},
        {"id": "x", "kind": "pair", "rows": [0, 1], "answer": "perhaps"},
        {"id": {"a": 1}, "kind": "pair", "rows": [0, 1], "answer": "same"},
        {"id": "x", "kind": "undo", "rows": [], "answer": "y"},
        {},
    ],
)
def test_answers_about_nothing_are_refused_and_not_logged(served, body):
    client, studio, _, _ = served
    before = studio.session.log.entries
    answer = post(client, "answer", **body)
    assert answer.status_code == 400 and answer.json()["error"]
    assert studio.session.log.entries == before


@pytest.mark.parametrize(
    "path",
    [
        "item/99999",
        "picture/99999",
        "picture/0",
        "neighbors?row=-1",
        "neighbors?row=x",
        "neighbors?text=a",
        "file/answers.jsonl",
        "file/..%2Fanswers.jsonl",
    ],
)
def test_rows_and_files_that_do_not_exist_are_refused(client, path):
    assert client.get(f"/api/{path}").status_code in (400, 404)


def test_answers_are_in_the_log_when_they_are_acknowledged(served):
    client, studio, y, _ = served
    question, items = ask(client)
    assert [item["row"] for item in items] == list(question.rows)
    body = {"id": question.id, "kind": question.kind, "rows": list(question.rows), "why": question.why}
    answer = post(client, "answer", **body, answer=reply(question, y))
    assert answer.status_code == 200 and answer.json()["question"]["id"] != question.id
    lines = [json.loads(line) for line in studio.session.log.path.read_text().splitlines()]
    assert lines[-1]["id"] == question.id and lines[-1]["rows"] == list(question.rows)
    n = len(lines)
    assert post(client, "answer", **body, answer=reply(question, y)).status_code == 200  # sent again
    assert len(studio.session.log.path.read_text().splitlines()) == n
    undone = post(client, "undo", id="u1").json()
    assert undone["undone"] and undone["question"]["rows"] == list(question.rows)
    assert studio.session.state().n_answers == 0


def test_hostile_cells_are_sent_as_text(served):
    client, _, _, _ = served
    item = client.get("/api/item/0")
    assert item.headers["content-type"] == "application/json" and item.json()["fields"][0]["text"] == HOSTILE
    assert client.get("/api/item/1").status_code == 200
    long = client.get("/api/item/2")
    assert len(long.content) < 30_000 and long.json()["fields"][1]["n_hidden"] == 980_000


def test_maps_colours_search_and_neighbours_are_of_all_rows(served):
    client, studio, y, _ = served
    for _ in range(12):
        question = ask(client)[0]
        body = {"id": question.id, "kind": question.kind, "rows": list(question.rows), "why": question.why}
        post(client, "answer", **body, answer=reply(question, y))
    _wait(lambda: client.get("/api/state").json()["n_consolidated"] == 10)
    _wait(lambda: studio.worker.positions is not None and studio.worker.positions.n_answers == 10)
    assert len(client.get("/api/map").content) == 120 * 4 * 4
    codes = client.get("/api/colours?by=label").json()
    assert codes["names"] == [f"class {c}" for c in range(4)] and codes["codes"] == y.tolist()
    groups = client.get("/api/colours?by=group").json()["codes"]
    assert len(groups) == 120 and max(groups) >= 0 and min(groups) == -1
    assert client.get("/api/search?text=text of row 7").json()["rows"][0]["row"] == 7
    near = client.get("/api/neighbors?row=7").json()
    assert len(near["before"]) == len(near["after"]) == 10
    told = post(client, "neighbor", id="n1", row=7, neighbor=near["after"][4]["row"], belongs=False).json()
    assert told["rows"] == [7, near["after"][0]["row"], near["after"][4]["row"]]
    state = client.get("/api/state").json()
    assert state["n_triplets"] == 1 and state["certificate"]["converged"] and len(state["weights"]) == 12


def test_labels_are_decided_and_a_corrected_table_is_written(served):
    client, studio, _, _ = served
    assert post(client, "label", id="l1", row=3, decision="change", label="=new").status_code == 200
    assert post(client, "label", id="l2", row=4, decision="drop").status_code == 200
    assert post(client, "label", id="l3", row=5, decision="change", label="").status_code == 400
    assert post(client, "label", id="l4", row=999, decision="keep").status_code == 400
    assert post(client, "correct").json()["file"] == "corrected.csv"
    text = (studio.out / "corrected.csv").read_text()
    assert text.startswith("id,text,long,value,label\n") and "'=new" in text
    assert "'=row3," in text and "'=row4," not in text
    assert client.get("/api/file/corrected.csv").text == text


def test_what_fails_is_not_taken_for_a_wrong_request(tmp_path, monkeypatch):
    studio, _ = make_studio(tmp_path, n=20)
    tokens = Tokens(8765)
    app = make_app(studio, tokens, {HOST})
    with TestClient(app, base_url=f"http://{HOST}", raise_server_exceptions=False) as client:
        client.cookies.set(tokens.cookie_name, tokens.cookie)
        studio.out.write_text("a file where the folder should be")
        answer = post(client, "correct")
        assert answer.status_code == 500 and str(studio.out) in answer.json()["error"]

        def broken(annotator):
            raise KeyError("a mistake in the program")

        monkeypatch.setattr(studio.session, "question", broken)
        assert client.get("/api/question").status_code == 500


@pytest.mark.slow
def test_everything_can_be_taken_home(served):
    client, studio, _, _ = served
    found = post(client, "export").json()
    assert {"metric.safetensors", "answers.csv", "use.py"} <= set(found["files"])
    assert client.get("/api/file/metric.safetensors").content == (studio.out / "metric.safetensors").read_bytes()


def _wait(done, seconds=60):
    import time

    end = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < end, "the thread did not come to an end"
        time.sleep(0.05)
