"""metric-learn, in an environment of its own: it does not work with the current scikit-learn."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np

from .problems import PairProblem
from .settings import ROOT

__all__ = ["REQUIREMENTS", "PeerFit", "ensure_environment", "fit_itml", "fit_lmnn"]

# From scikit-learn 1.8 on, metric-learn's first fit raises a TypeError (`force_all_finite` is gone).
REQUIREMENTS = ("metric-learn==0.7.0", "scikit-learn<1.8")
_ENVIRONMENT = ROOT / ".venv-peers"
_RUNNER = Path(__file__).with_name("peer_runner.py")


class PeerError(RuntimeError):
    """The peer's environment could not be made, or its fit failed."""


@dataclass(frozen=True)
class PeerFit:
    """Answer of a peer: ITML's matrix W or LMNN's transformation L, seconds of all repeats, last sweeps."""

    matrix: np.ndarray
    all_seconds: tuple[float, ...]
    sweeps: int
    stopped: bool
    versions: dict[str, str]

    @property
    def seconds(self) -> float:
        return median(self.all_seconds)


def fit_itml(
    problem: PairProblem,
    *,
    gamma: float = 1.0,
    max_iter: int = 1000,
    tol: float = 1e-3,
    repeats: int = 1,
    time_limit: float | None = None,
) -> PeerFit:
    """ITML on the same rows, pairs and squared bounds; the defaults are metric-learn's own."""
    arrays = {
        "X": problem.X,
        "pairs": problem.pairs,
        "sign": problem.sign,
        "bounds": np.array([problem.upper, problem.lower]),
    }
    return _run("itml", arrays, {"gamma": gamma, "max_iter": max_iter, "tol": tol}, repeats, time_limit)


def fit_lmnn(X: np.ndarray, y: np.ndarray, *, seed: int = 0, time_limit: float | None = None) -> PeerFit:
    """LMNN at its defaults."""
    return _run("lmnn", {"X": X, "y": y}, {"random_state": seed}, 1, time_limit)


def ensure_environment() -> Path:
    """The peer's interpreter; the first call makes its environment. The stamp comes last: complete."""
    python = _ENVIRONMENT / "bin" / "python"
    stamp = _ENVIRONMENT / "requirements.json"
    wanted = json.dumps(REQUIREMENTS)
    if not (stamp.exists() and stamp.read_text() == wanted):
        _call([sys.executable, "-m", "venv", "--clear", str(_ENVIRONMENT)], "creating the peer's environment")
        _call(
            [str(python), "-m", "pip", "install", "--quiet", *REQUIREMENTS],
            "installing " + ", ".join(REQUIREMENTS),
        )
        stamp.write_text(wanted)
    return python


def _run(
    algorithm: str, arrays: dict[str, np.ndarray], params: dict, repeats: int, time_limit: float | None
) -> PeerFit:
    job = {"algorithm": algorithm, "params": params, "repeats": repeats, "time_limit": time_limit}
    python = ensure_environment()
    with tempfile.TemporaryDirectory() as folder:
        job_path, result_path = Path(folder, "job.npz"), Path(folder, "result.npz")
        np.savez(job_path, job=json.dumps(job), **arrays)
        _call([str(python), str(_RUNNER), str(job_path), str(result_path)], f"running the peer's {algorithm}")
        with np.load(result_path, allow_pickle=False) as result:
            return PeerFit(
                matrix=result["matrix"],
                all_seconds=tuple(result["seconds"].tolist()),
                sweeps=int(result["sweeps"]),
                stopped=bool(result["stopped"]),
                versions=json.loads(str(result["versions"])),
            )


def _call(command: list[str], doing: str) -> None:
    # Nothing of our own environment may leak into the peer's.
    clean = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "PYTHONHOME"}}
    done = subprocess.run(command, env=clean, capture_output=True, text=True)
    if done.returncode != 0:
        raise PeerError(f"{doing} failed:\n{done.stderr.strip()[-2000:]}")
