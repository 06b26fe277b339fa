"""The command line: parses, prints, draws, and leaves the work to the library."""

from .app import main

__all__ = ["main"]
