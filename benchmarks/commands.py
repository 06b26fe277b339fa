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
N_SMALL, ROUNDS = 200, 5  # rows of the table on which the start is measured, and how often it is
MOST_SECONDS, MOST_BYTES = 120.0, 2e9
MOST_START = 0.4  # seconds of processor time beyond `import sklearn.base` and the work itself


def run(settings: Settings) -> Report:
    n_rows = N_ROWS // 20 if settings.quick else N_ROWS
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        _write(place, n_rows, settings.seed)
        ran = [(arguments[0], *_measured(arguments, place)) for arguments in _COMMANDS]
        starts = _start_seconds(place, settings.seed)
    rows = tuple((f"mahalo {name}", f"{seconds:.1f}", f"{peak / 1e6:.0f}") for name, seconds, peak in ran)
    seconds, peak = sum(one[1] for one in ran), max(one[2] for one in ran)
    return Report(
        name="commands",
        checks=(
            Check("fit, transform and neighbors: seconds", seconds, MOST_SECONDS, at_least=False),
            Check("peak memory of any of them: GB", peak / 1e9, MOST_BYTES / 1e9, at_least=False),
            Check("start of the slowest command: seconds", max(starts.values()), MOST_START, at_least=False),
        ),
        tables=(
            Table("end to end, each in a process of its own", ("command", "seconds", "peak (MB)"), rows),
            Table(
                f"start on a CSV of {N_SMALL} rows: processor time beyond `import sklearn.base` and the work itself",
                ("command", "seconds"),
                tuple((f"mahalo {name}", f"{seconds:.2f}") for name, seconds in starts.items()),
            ),
        ),
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


_SMALL_COMMANDS = (
    ("fit", "small.csv", "--label", "kind", "--gamma", "1", "--out", "small.safetensors", "--force"),
    ("transform", "small.safetensors", "small.csv", "--out", "moved.csv", "--force"),
    ("neighbors", "small.safetensors", "--index", "small.csv", "--out", "near.csv", "--force"),
)

# The second run of a command in one process is its work alone: what it takes less is the start.
_TWICE = """
import contextlib, sys, time
from mahalo.cli import main
ends = []
for _ in range(2):
    with contextlib.suppress(SystemExit):
        main(sys.argv[1:])
    ends.append(time.process_time())
print(2 * ends[0] - ends[1], file=sys.stderr)
"""
_REFERENCE = "import sklearn.base, sys, time; print(time.process_time(), file=sys.stderr)"


def _start_seconds(place: Path, seed: int) -> dict[str, float]:
    """Median processor time of commands beyond their work and `import sklearn.base`; one round warms the disk."""
    _write_table(place / "small.csv", *_simulated(N_SMALL, seed))
    taken = []
    for _ in range(ROUNDS + 1):
        reference = _last_number([sys.executable, "-c", _REFERENCE], place)
        commands = [[sys.executable, "-c", _TWICE, *arguments] for arguments in _SMALL_COMMANDS]
        taken.append([_last_number(command, place) - reference for command in commands])
    names = [arguments[0] for arguments in _SMALL_COMMANDS]
    return dict(zip(names, np.median(taken[1:], axis=0).tolist(), strict=True))


def _last_number(command: list[str], place: Path) -> float:
    done = subprocess.run(command, cwd=place, capture_output=True, text=True, check=True)
    return float(done.stderr.split()[-1])


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
    X, y = _simulated(n_rows + N_QUERIES, seed)
    for name, part in (("rows", slice(n_rows)), ("queries", slice(n_rows, None))):
        _write_table(place / f"{name}.csv", X[part], y[part])


def _simulated(n_rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Classes that differ in ten columns, under noise in all."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, N_CLASSES, n_rows)
    X = rng.standard_normal((len(y), N_COLUMNS)) * np.exp(rng.standard_normal(N_COLUMNS))
    X[:, :10] += 2.0 * rng.standard_normal((N_CLASSES, 10))[y]
    return X, y


def _write_table(path: Path, X: np.ndarray, y: np.ndarray) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*(f"x{k}" for k in range(N_COLUMNS)), "kind"])
        for row, label in zip(X.round(6).tolist(), y.tolist(), strict=True):
            writer.writerow([*row, f"class {label}"])
