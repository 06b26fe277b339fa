from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

__all__ = ["CACHE", "ROOT", "Settings"]

ROOT = Path(__file__).resolve().parents[1]
CACHE = Path(__file__).resolve().parent / ".cache"


@dataclass(frozen=True)
class Settings:
    """How much to run.

    `quick` takes smaller problems and shorter time limits, enough to see that everything works; `fresh` runs
    the peers again where an earlier answer of theirs is cached; `time_limit` is the longest that a single fit
    of a peer may take, in seconds; `seed` draws the splits of the accuracy benchmark: defaults that were chosen
    on one seed are best confirmed on another.
    """

    quick: bool = False
    fresh: bool = False
    time_limit: float = 3600.0
    seed: int = 0
