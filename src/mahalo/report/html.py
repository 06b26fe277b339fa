"""Rendering of pages: templates that escape every text, with a style and a script that are allowed by their hashes."""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files
from typing import TYPE_CHECKING

from ..version import VERSION
from .formatting import number, percent, visible
from .parts import NotShown

if TYPE_CHECKING:
    from jinja2 import Environment


def template_environment() -> Environment:
    """Return the templates, which escape every text and replace characters that cannot be printed."""
    try:
        from jinja2 import Environment, FunctionLoader, StrictUndefined
        from markupsafe import Markup
    except ImportError:
        raise ImportError("a report is rendered with jinja2: pip install 'mahalo[report]'") from None
    templates = files(__package__) / "templates"
    environment = Environment(
        loader=FunctionLoader(lambda name: (templates / name).read_text(encoding="utf-8")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: value if isinstance(value, Markup) else visible(value),
    )
    environment.filters |= {"number": number, "percent": percent}
    environment.tests["shown"] = lambda part: not isinstance(part, NotShown)
    return environment


def render(environment: Environment, template: str, *, style: str, script: str = "", **values: object) -> bytes:
    """Return a page as UTF-8: a template with its values, the version of mahalo, style, script and their hashes."""
    page = environment.get_template(template).render(
        version=VERSION, style=style, style_hash=_hash(style), script=script, script_hash=_hash(script), **values
    )
    return page.encode("utf-8")


def asset(name: str) -> str:
    """Return the text of a style or script of the report."""
    return (files(__package__) / "assets" / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """Return the hash by which the security policy of a page allows its style or script."""
    return base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode()
