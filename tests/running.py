"""Python in a process of its own, as a user runs it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def run_python(*arguments, cwd: Path) -> subprocess.CompletedProcess:
    headless = {name: value for name, value in os.environ.items() if name != "DISPLAY"} | {"MPLBACKEND": "agg"}
    environment = {**headless, "PYTHONIOENCODING": "utf-8", "PYTHONWARNINGS": "error::FutureWarning"}
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=cwd,
        env=environment,
        capture_output=True,
        encoding="utf-8",
        timeout=300,
    )
