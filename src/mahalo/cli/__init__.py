"""The command line: parses options, prints results, and leaves the work to the library."""

from __future__ import annotations

import gc
import sys
from importlib.util import find_spec

__all__ = ["main"]

_GC_THRESHOLD = 100_000  # objects; at the default of 700, collections while modules load take a tenth of a second


def main(args: list[str] | None = None) -> None:
    """Run the command line; exit with the remedy if a package is missing."""
    missing = [name for name in ("typer", "rich") if find_spec(name) is None]
    if missing:
        sys.exit(f'mahalo: the command line needs {" and ".join(missing)}: pip install "mahalo[cli]"')
    gc.set_threshold(_GC_THRESHOLD)
    from .app import main

    main(args)
