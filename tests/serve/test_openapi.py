"""The description is true: what it allows is answered as it says, and all else is refused."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

jsonschema = pytest.importorskip("jsonschema")

SERVICES = ("metric_service", "pair_service", "text_service", "mixed_service", "hybrid_service")


@pytest.fixture(scope="module", params=SERVICES)
def described(request, client_of):
    """A client, the description, and the service."""
    service = request.getfixturevalue(request.param)
    client = client_of(service)
    return client, client.get("/openapi.json").json(), service


def validator(document, schema):
    """Return a validator of a schema of the document, whose references are the document's."""
    return jsonschema.Draft202012Validator(schema | {"components": document["components"]})


def request_validator(document, path):
    return validator(document, document["paths"][path]["post"]["requestBody"]["content"]["application/json"]["schema"])


def answer_validator(document, path, status, method="post"):
    responses = document["paths"][path][method]["responses"]
    [content] = responses[str(status)]["content"].values()
    return validator(document, content["schema"])


def schemas(document):
    """Return all schemas of requests and answers."""
    for operations in document["paths"].values():
        for operation in operations.values():
            contents = [response["content"] for response in operation["responses"].values()]
            contents += [operation["requestBody"]["content"]] if "requestBody" in operation else []
            yield from (one["schema"] for content in contents for one in content.values())
    yield from document["components"]["schemas"].values()


def test_every_schema_is_one(described):
    _, document, _ = described
    found = list(schemas(document))
    assert document["openapi"] == "3.1.0" and len(found) > 20
    for schema in found:
        jsonschema.Draft202012Validator.check_schema(schema)


def test_the_routes_described_are_those_that_answer(described):
    client, document, service = described
    for path, operations in document["paths"].items():
        [method] = operations
        answer = client.request(method, path, json={})
        assert answer.status_code == (200 if method == "get" else 422), path
        other = client.get(path) if method == "post" else client.post(path, json={})
        assert other.status_code == 405
    assert ("/same" in document["paths"]) == (service.classifier is not None)


# -- bodies, valid and not -----------------------------------------------------------------------------------------

WRONG = st.sampled_from([None, True, 0, 3, "x", "", [], {}, [[]], [None], ["x"], [["x"]], [[True]], {"rows": 1}, [{}]])
NUMBERS = st.one_of(st.floats(-1e6, 1e6), st.integers(-5, 5))


def vectors(width):
    """Rows of a width, or of nearly that one."""
    good = st.lists(st.lists(NUMBERS, min_size=width, max_size=width), min_size=1, max_size=3)
    return st.one_of(good, good, WRONG, st.lists(st.lists(NUMBERS, max_size=width + 1), max_size=2))


def bodies(service):
    """Bodies of a search, and of a comparison: fields that are known, right and wrong values."""
    form, known = service.form, service.index.ids.tolist()
    word = st.sampled_from(["old boat", "river", "bread oven", " ", "", 7, None])
    texts = st.one_of(st.lists(word, max_size=3), st.lists(st.just("boat"), min_size=1, max_size=2), WRONG)
    beside = vectors(max(1, form.n_beside))
    k = st.sampled_from([1, 2, 1000, 1001, 0, -1, 2.0, 2.5, True, "3", None])
    squared = st.sampled_from([True, False, 0, None, "yes"])
    more = {"numbers": beside, "squared": squared, "k": k, "unknown": st.just(1)}
    search = st.fixed_dictionaries({}, optional={"queries": vectors(form.n_features), "texts": texts, **more})
    ids = st.one_of(st.lists(st.sampled_from(known), min_size=1, max_size=3), WRONG)
    kinds = {"rows": vectors(form.n_features), "ids": ids, "texts": texts, "numbers": beside, "unknown": st.just(1)}
    alone = st.one_of(*(st.fixed_dictionaries({name: values}) for name, values in kinds.items()))
    side = st.one_of(alone, alone, st.fixed_dictionaries({}, optional=kinds), WRONG)
    compare = st.fixed_dictionaries({"left": side, "right": side}, optional={"squared": squared, "unknown": side})
    return search, compare


def is_about_more_than_the_schema(path, answer):
    """Return whether a refusal is about what JSON Schema cannot say: ids that exist, lengths that agree, words."""
    got = answer.json()["got"]
    sides_differ = path == "/same" and "on the right" in got
    return sides_differ or any(text in got for text in ("ids[", "rows of numbers", "does not know"))


@given(data=st.data())
def test_what_is_described_is_what_is_answered(described, data):
    client, document, service = described
    search, compare = bodies(service)
    path = data.draw(st.sampled_from([path for path in ("/search", "/distance", "/same") if path in document["paths"]]))
    body = data.draw(search if path == "/search" else compare)
    answer = client.post(path, json=body)
    allowed = request_validator(document, path).is_valid(body)
    assert answer.status_code in (200, 422), answer.text
    answer_validator(document, path, answer.status_code).validate(answer.json())
    if allowed and answer.status_code != 200:
        assert is_about_more_than_the_schema(path, answer), (body, answer.text)
    else:
        assert (answer.status_code == 200) == allowed, (path, json.dumps(body), answer.text)


@pytest.mark.parametrize("name", SERVICES)
def test_whole_requests_are_allowed_and_answered(name, request, client_of):
    """Not one of the bodies above is right by luck alone."""
    service = request.getfixturevalue(name)
    client = client_of(service)
    document = client.get("/openapi.json").json()
    row = [1.0] * service.form.n_features
    texts = {"texts": ["old boat"], **({"numbers": [[3]]} if service.form.n_beside else {})}
    sides = [{"rows": [row]}, {"ids": [service.index.ids.tolist()[0]]}, *([texts] if service.form.takes_texts else [])]
    asked = [("/search", {"queries": [row]})] if service.hybrid is None else []
    asked += [("/search", {**texts, "k": 3})] if service.form.takes_texts else []
    asked += [("/distance", {"left": one, "right": other, "squared": True}) for one in sides for other in sides]
    asked += [("/same", {"left": one, "right": other}) for one in sides for other in sides if service.classifier]
    for path, body in asked:
        request_validator(document, path).validate(body)
        answer = client.post(path, json=body)
        assert answer.status_code == 200, answer.text
        answer_validator(document, path, 200).validate(answer.json())


def test_refusals_and_the_other_routes_are_described(described):
    client, document, _ = described
    refused = client.post("/search", content=b"{", headers={"Content-Type": "application/json"})
    answer_validator(document, "/search", refused.status_code).validate(refused.json())
    health = client.get("/health")
    answer_validator(document, "/health", 200, "get").validate(health.json())
    assert health.json()["rows"] > 0
    nobody = client.get("/health", headers={"Authorization": ""})
    answer_validator(document, "/health", nobody.status_code, "get").validate(nobody.json())
