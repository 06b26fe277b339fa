"""The command line on a table of one's own: fit, transform and neighbours of a CSV, end to end."""

from __future__ import annotations

import csv
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from .report import Check, Report, Table
from .settings import Settings

__all__ = ["run"]

N_ROWS, N_QUERIES, N_COLUMNS, N_CLASSES = 100_000, 1_000, 50, 10
MOST_SECONDS, MOST_BYTES = 120.0, 2e9


def run(settings: Settings) -> Report:
    n_rows = N_ROWS // 20 if settings.quick else N_ROWS
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        _write(place, n_rows, settings.seed)
        ran = [(arguments[0], *_measured(arguments, place)) for arguments in _COMMANDS]
    rows = tuple((f"mahalo {name}", f"{seconds:.1f}", f"{peak / 1e6:.0f}") for name, seconds, peak in ran)
    seconds, peak = sum(one[1] for one in ran), max(one[2] for one in ran)
    return Report(
        name="commands",
        checks=(
            Check("fit, transform and neighbors: seconds", seconds, MOST_SECONDS, at_least=False),
            Check("peak memory of any of them: GB", peak / 1e9, MOST_BYTES / 1e9, at_least=False),
        ),
        tables=(Table("end to end, each in a process of its own", ("command", "seconds", "peak (MB)"), rows),),
        notes=(
            f"a CSV of {n_rows:,} rows × {N_COLUMNS} columns with labels of {N_CLASSES} classes, simulated; "
            f"neighbours of {N_QUERIES:,} other rows; every setting at its default",
        ),
    )


_COMMANDS = (
    ("fit", "rows.csv", "--label", "kind", "--out", "model.safetensors"),
    ("transform", "model.safetensors", "rows.csv", "--out", "moved.npy"),
    ("neighbors", "model.safetensors", "--index", "rows.csv", "--query", "queries.csv", "--out", "near.csv"),
)


def _measured(arguments: tuple[str, ...], place: Path) -> tuple[float, float]:
    """Seconds and peak bytes of one command; it is asked for the latter again and again, until it ends."""
    began, peak = time.perf_counter(), 0.0
    with (place / f"{arguments[0]}.log").open("w") as log:
        process = subprocess.Popen([sys.executable, "-m", "mahalo.cli", *arguments], cwd=place, stdout=log, stderr=log)
        while process.poll() is None:
            peak = max(peak, _peak_of(process.pid))
            time.sleep(0.02)
    seconds = time.perf_counter() - began
    if process.returncode:
        raise RuntimeError(f"mahalo {' '.join(arguments)}:\n{(place / f'{arguments[0]}.log').read_text()}")
    return seconds, peak or float("nan")


def _peak_of(pid: int) -> float:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return next((1024.0 * int(line.split()[1]) for line in lines if line.startswith("VmHWM")), 0.0)


def _write(place: Path, n_rows: int, seed: int) -> None:
    """Classes that differ in ten columns, under noise in all."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, N_CLASSES, n_rows + N_QUERIES)
    X = rng.standard_normal((len(y), N_COLUMNS)) * np.exp(rng.standard_normal(N_COLUMNS))
    X[:, :10] += 2.0 * rng.standard_normal((N_CLASSES, 10))[y]
    for name, part in (("rows", slice(n_rows)), ("queries", slice(n_rows, None))):
        with (place / f"{name}.csv").open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow([*(f"x{k}" for k in range(N_COLUMNS)), "kind"])
            for row, label in zip(X[part].round(6).tolist(), y[part].tolist(), strict=True):
                writer.writerow([*row, f"class {label}"])
