"""Arguments checked in one place, and warnings that point at the caller's line."""

from __future__ import annotations

import inspect
import types
import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from mahalo import validation
from mahalo.validation import as_objects, check_gamma, is_linear, is_precomputed, len_of


def module_in(package: str, code: str) -> types.ModuleType:
    """Return a module of that package, in a file deep.py, that can warn."""
    module = types.ModuleType(f"{package}.deep")
    module.warn = validation.warn
    exec(compile(code, "deep.py", "exec"), module.__dict__)
    return module


def here() -> int:
    return inspect.currentframe().f_back.f_lineno


@pytest.mark.parametrize("package", ["mahalo", "sklearn", "joblib"])
@pytest.mark.parametrize("depth", [0, 1, 5])
def test_a_warning_points_at_the_first_line_outside(package, depth):
    module = module_in(package, "def call(n):\n    call(n - 1) if n else warn('odd', RuntimeWarning)\n")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        line = here() + 1
        module.call(depth)
    assert [(w.filename, w.lineno, w.category, str(w.message)) for w in caught] == [
        (__file__, line, RuntimeWarning, "odd")
    ]


def test_packages_of_similar_names_are_not_skipped():
    module = module_in("mahalo_tools", "def call():\n    warn('odd')\n")
    with pytest.warns(UserWarning, match="odd") as caught:
        module.call()
    assert (caught[0].filename, caught[0].lineno) == ("deep.py", 2)


def test_a_stack_of_skipped_packages_alone_still_warns():
    """Called from a thread or a program of our own, a warning points at the outermost frame."""
    module = module_in("mahalo", "def call():\n    warn('odd')\n")
    with pytest.MonkeyPatch.context() as patch, pytest.warns(UserWarning, match="odd"):
        patch.setattr(validation, "_SKIPPED_PACKAGES", _Everything())
        module.call()


class _Everything:
    def __contains__(self, name):
        return True


def test_kernels_by_name_are_names():
    assert is_linear("linear") and is_precomputed("precomputed")
    for other in ("rbf", None, np.dot, np.eye(2), sp.eye_array(2), ["linear"]):
        assert is_linear(other) is False
        assert is_precomputed(other) is False


@pytest.mark.parametrize("gamma", [True, np.True_, 0, -1.0, np.nan, "1", None, [1.0]])
def test_gamma_is_a_positive_number(gamma):
    with pytest.raises(ValueError, match=r"gamma must be a number > 0, or np\.inf for hard constraints; got"):
        check_gamma(gamma)


@pytest.mark.parametrize("gamma", [1, 1e-9, np.inf, np.float32(2), np.int64(3)])
def test_valid_gammas_are_accepted(gamma):
    check_gamma(gamma)


def test_rows_of_whatever_kind_are_counted_and_indexed():
    for X in (np.zeros((3, 2)), sp.csr_array((3, 2)), ["a", "b", "c"], [[1], [2, 3], []]):
        assert len_of(X) == 3
    objects = as_objects([[1], [2, 3], []])
    assert objects.shape == (3,) and objects[1] == [2, 3]
    X = np.zeros((3, 2))
    assert as_objects(X) is X
