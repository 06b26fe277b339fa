from __future__ import annotations

import os
from pathlib import Path

# Many small fits in several processes: threads below them would only get in each other's way.
for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")

import numpy as np  # noqa: E402
import pytest  # noqa: E402
from hypothesis import HealthCheck, settings  # noqa: E402
from sklearn.datasets import load_iris, load_wine  # noqa: E402

# Fits on a busy machine have no business with a deadline; examples repeat from run to run. To look for new ones:
# pytest --hypothesis-profile=hunt
settings.register_profile(
    "repeatable",
    deadline=None,
    derandomize=True,
    max_examples=50,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("hunt", settings.get_profile("repeatable"), derandomize=False, max_examples=2000)
settings.load_profile("repeatable")


@pytest.fixture
def exact_folds(monkeypatch):
    """Folds once, solved to the end: what a plain loop over them would do."""
    from mahalo.selection import fold_tasks, held_out, race, splits

    for module, name, value in (
        (fold_tasks, "LOOSE_TOL", 0.0),
        (held_out, "LOOSE_TOL", 0.0),
        (fold_tasks, "FEW_SEEN", np.inf),
        (race, "FEW_SEEN", np.inf),
        (splits, "_MAX_REPEATS", 1),
    ):
        monkeypatch.setattr(module, name, value)


def pytest_configure(config):
    # A fit that stops early says so, and no test here may pass over it in silence.
    config.addinivalue_line("filterwarnings", "error::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture(scope="session", autouse=True)
def cache_of_text_vectors(tmp_path_factory):
    """A cache that begins empty, instead of the user's."""
    folder = tmp_path_factory.mktemp("text-vectors")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MAHALO_CACHE_DIR", str(folder))
        yield folder


@pytest.fixture
def rng():
    return np.random.default_rng(20240229)


@pytest.fixture(scope="session")
def wine():
    return load_wine(return_X_y=True)


@pytest.fixture(scope="session")
def iris():
    return load_iris(return_X_y=True)


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of public tables, outside the repository."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(os.environ.get("MAHALO_DATA", beside))
    if not folder.is_dir():
        pytest.skip(f"no data folder at {folder}; set MAHALO_DATA")
    return folder
