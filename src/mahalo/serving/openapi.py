"""Description of the service in OpenAPI 3.1, for the model and the index that it serves."""

from __future__ import annotations

from typing import TypeAlias

from ..text.checks import MAX_CHARACTERS
from ..version import VERSION
from .limits import DEFAULT_K, MAX_ANSWER, MAX_BODY, MAX_K, MAX_ROWS
from .row_format import RowFormat
from .service import SearchService

__all__ = ["openapi"]

Schema: TypeAlias = dict[str, object]

_NUMBER: Schema = {"type": "number", "description": "Finite in double precision."}
_SQUARED: Schema = {"type": "boolean", "default": False, "description": "Squared distances."}
_K: Schema = {"type": "integer", "minimum": 1, "maximum": MAX_K, "default": DEFAULT_K}
_STATUSES = {
    "400": "The body is not a JSON object.",
    "401": "The token is missing or another one.",
    "408": "The body took too long.",
    "413": f"The body has more than {MAX_BODY:,} bytes.",
    "415": "The body is not announced as JSON.",
    "421": "The Host is another one.",
    "422": "A field is not as described, an id is unknown, or a text has no known word.",
    "503": "Too many requests at a time.",
}


def openapi(service: SearchService) -> Schema:
    """Return the description of a service."""
    form, is_hybrid = service.form, service.hybrid is not None
    distances = {"distances": _table(_NUMBER)}
    found = {"ids": _table(_id(form)), **distances, **({"scores": _table(_NUMBER)} if is_hybrid else {})}
    paths = {
        "/search": _post(
            "Find the nearest rows of each query.",
            f"At most {MAX_ANSWER:,} neighbours in all. Nearest first; with scores, the highest first.",
            _search_request(form, is_hybrid),
            found,
        ),
        "/distance": _post(
            "Measure distances of all rows of one side from all rows of the other.",
            f"At most {MAX_ANSWER:,} distances.",
            _object({"left": _ref("Rows"), "right": _ref("Rows"), "squared": _SQUARED}, "left", "right"),
            distances,
        ),
    }
    if service.classifier is not None:
        paths["/same"] = _post(
            "Give the probability that row k of one side is the same as row k of the other.",
            "Both sides have as many rows.",
            _object({"left": _ref("Rows"), "right": _ref("Rows")}, "left", "right"),
            {"probabilities": _list(_NUMBER), "same": _list({"type": "boolean"}), "distances": _list(_NUMBER)},
        )
    paths["/health"] = _get("Say what is served.", "application/json", {"type": "object"})
    paths["/metrics"] = _get("Count requests, for Prometheus.", "text/plain", {"type": "string"})
    paths["/openapi.json"] = _get("Describe the service.", "application/json", {"type": "object"})
    return {
        "openapi": "3.1.0",
        "info": {
            "title": f"mahalo serve {service.model.path.name}",
            "version": VERSION,
            "description": f"Learned distances among {len(service.index):,} rows.",
        },
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": {"Rows": {"oneOf": _row_schemas(form)}, "Refusal": _refusal()},
        },
    }


# -- requests ----------------------------------------------------------------------------------------------------------


def _search_request(form: RowFormat, is_hybrid: bool) -> Schema:
    more = {"k": _K, "squared": _SQUARED}
    kinds = [] if is_hybrid else [_object({"queries": _vectors(form), **more}, "queries")]
    if form.takes_texts:
        texts = _texts(form)
        kinds.append(_object({**texts, **more}, *texts))
    return {"oneOf": kinds}


def _row_schemas(form: RowFormat) -> list[Schema]:
    """Return the schemas of rows on one side of a comparison: vectors, ids or texts."""
    schemas = [_object({"rows": _vectors(form)}, "rows"), _object({"ids": _some(_id(form))}, "ids")]
    if form.takes_texts:
        texts = _texts(form)
        schemas.append(_object(texts, *texts))
    return schemas


def _texts(form: RowFormat) -> dict[str, Schema]:
    """Return the fields of texts: themselves, and the numbers beside them if the model takes some."""
    text = {"type": "string", "minLength": 1, "maxLength": MAX_CHARACTERS, "pattern": "\\S"}
    beside = {"numbers": _some(_row(form.n_beside, form.names[-form.n_beside :]))} if form.n_beside else {}
    return {"texts": _some(text), **beside}


def _vectors(form: RowFormat) -> Schema:
    return _some(_row(form.n_features, form.names))


def _row(length: int, names: tuple[str, ...]) -> Schema:
    row: Schema = {"type": "array", "items": _NUMBER, "minItems": length, "maxItems": length}
    return row | ({"description": ", ".join(names)} if names else {})


def _id(form: RowFormat) -> Schema:
    return {"type": "string" if form.has_text_ids else "integer"}


# -- parts -------------------------------------------------------------------------------------------------------------


def _object(properties: dict[str, Schema], *required: str) -> Schema:
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


def _some(items: Schema) -> Schema:
    return _list(items) | {"minItems": 1, "maxItems": MAX_ROWS}


def _list(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def _table(items: Schema) -> Schema:
    return _list(_list(items))


def _ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def _refusal() -> Schema:
    line: Schema = {"type": "string"}
    return _object({"got": line, "wanted": line, "remedy": line}, "got", "wanted", "remedy")


def _content(media_type: str, schema: Schema) -> Schema:
    return {media_type: {"schema": schema}}


def _post(summary: str, description: str, request: Schema, answer: dict[str, Schema]) -> Schema:
    return {
        "post": {
            "summary": summary,
            "description": description,
            "requestBody": {"required": True, "content": _content("application/json", request)},
            "responses": {
                "200": {
                    "description": "The answer.",
                    "content": _content("application/json", _object(answer, *answer)),
                },
                **{status: _refused(status) for status in _STATUSES},
            },
        }
    }


def _get(summary: str, media_type: str, answer: Schema) -> Schema:
    responses = {"200": {"description": "The answer.", "content": _content(media_type, answer)}}
    return {"get": {"summary": summary, "responses": responses | {one: _refused(one) for one in ("401", "421")}}}


def _refused(status: str) -> Schema:
    return {"description": _STATUSES[status], "content": _content("application/json", _ref("Refusal"))}
