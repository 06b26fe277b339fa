"""What docs/api.md lists: the names that users may type."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[1] / "docs" / "api.md"


def listed_names() -> list[str]:
    """Return the names in the lists (`autosummary`) of docs/api.md, from mahalo on."""
    lists = re.findall(r"^\.\. autosummary::\n(.*?)^```", PAGE.read_text(encoding="utf-8"), flags=re.M | re.S)
    return [f"mahalo.{name}" for names in lists for name in re.findall(r"^   ([\w.]+)$", names, flags=re.M)]


def thing_of(name: str) -> Any:
    """Return what a dotted name stands for."""
    room, _, last = name.rpartition(".")
    return getattr(importlib.import_module(room), last)


def public_members(kind: type) -> list[str]:
    """Return the methods that a class of ours offers by itself or through a base of ours."""
    ours = [base for base in kind.__mro__ if base.__module__.startswith("mahalo.")]
    return [
        name for base in ours for name, member in vars(base).items() if not name.startswith("_") and callable(member)
    ]
