"""JSON of requests."""

from __future__ import annotations

import json
from typing import NoReturn

from .refusal import Refusal


def parse_object(body: bytes) -> dict[str, object]:
    """Return the JSON object of a body; raise `Refusal` for anything else, NaN and infinity among it."""
    try:
        found = json.loads(body, parse_constant=_refuse_constant)
    except RecursionError:
        raise Refusal(400, "JSON that is nested too deeply", "a JSON object", "Flatten it") from None
    except ValueError as error:  # invalid JSON, invalid UTF-8, integers of thousands of digits
        what = str(error).split("\n")[0][:200]
        raise Refusal(400, f"a body that is not JSON ({what})", "a JSON object", "Encode it as JSON") from None
    if not isinstance(found, dict):
        raise Refusal(400, f"JSON of type {type(found).__name__}", "a JSON object", "Put it into an object")
    return found


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")
