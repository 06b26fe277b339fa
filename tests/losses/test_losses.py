"""f, its conjugate f*(s) = sup_{w ≥ 0} (s w − f(w)), slope and curvature of f*; and what is said about wrong ones."""

from __future__ import annotations

import numpy as np
import pytest
from builders import labelled_data
from hypothesis import given
from hypothesis import strategies as st
from plain_losses import ALL_LOSSES, RESTING, Hellinger, frobenius, sdp_logdet
from sklearn.base import clone

from mahalo import MetricLearner
from mahalo.losses import Frobenius, LogDet, SDPFrobenius, SDPLogDet, VonNeumann, as_loss, check_loss
from mahalo.losses.spectral import divided_differences, resting_point

losses = pytest.mark.parametrize("plain", ALL_LOSSES, ids=repr)


def slopes(plain):
    """A grid of s inside the domain of f*, of eigenvalues from 1e-7 or so to 1e4."""
    end = min(plain.edge, 6.0)
    return np.unique(np.concatenate([end - np.logspace(-2, 2, 80), np.linspace(end - 8, end - 0.05, 80)]))


def one_by_one(function, x):
    return np.array([function(float(number)) for number in x])


# -- the formulas ----------------------------------------------------------------------------------------------


@losses
def test_formulas_are_those_written_by_hand(plain):
    w = np.concatenate([[0.0], np.logspace(-9, 4, 60)])
    np.testing.assert_allclose(plain.loss.value(w), one_by_one(plain.f, w), rtol=1e-12, atol=1e-12)
    s = slopes(plain)
    np.testing.assert_allclose(plain.loss.conjugate(s), one_by_one(plain.conjugate, s), rtol=1e-12, atol=1e-12)


@losses
def test_conjugate_is_the_supremum_and_attained_at_its_slope(plain):
    w = np.concatenate([[0.0], np.logspace(-9, 6, 20_000)])
    f = plain.loss.value(w)
    s = slopes(plain)
    best = plain.loss.conjugate_slope(s)
    conjugate = plain.loss.conjugate(s)
    assert (best >= 0).all()
    np.testing.assert_allclose(s * best - plain.loss.value(best), conjugate, rtol=1e-9, atol=1e-9)
    on_grid = np.array([np.max(x * w - f) for x in s])
    size = 1 + np.abs(conjugate) + np.abs(s * best)
    assert (on_grid <= conjugate + 1e-9 * size).all()
    assert (on_grid >= conjugate - 1e-4 * size).all()


@losses
def test_slope_and_curvature_are_derivatives(plain):
    s = slopes(plain)
    kink = {"Frobenius": -plain.eta, "SDPFrobenius": 0.0}.get(type(plain.loss).__name__, np.inf)
    s = s[np.abs(s - kink) > 1e-3]
    h = 1e-5 * np.minimum(1.0, plain.edge - s)
    for function, derivative in (("conjugate", "conjugate_slope"), ("conjugate_slope", "conjugate_curvature")):
        g = getattr(plain.loss, function)
        difference = (g(s + h) - g(s - h)) / (2 * h)
        expected = getattr(plain.loss, derivative)(s)
        np.testing.assert_allclose(difference, expected, rtol=1e-6, atol=1e-7)
    assert (plain.loss.conjugate_curvature(s) >= 0).all()


@losses
@given(st.floats(0, 1e6), st.floats(-50, 50))
def test_fenchel_young(plain, w, s):
    f, conjugate = (float(g(np.array([x]))[0]) for g, x in ((plain.loss.value, w), (plain.loss.conjugate, s)))
    assert not np.isnan(f) and not np.isnan(conjugate)
    if np.isfinite(f) and np.isfinite(conjugate):
        assert f + conjugate >= s * w - 1e-12 * (1 + abs(f) + abs(conjugate) + abs(s * w))
    assert (conjugate < np.inf) == (s < plain.edge)


@losses
def test_infinite_outside_their_domains(plain):
    np.testing.assert_array_equal(plain.loss.value(np.array([-1e-3, -5.0])), np.inf)
    if np.isfinite(plain.edge):
        np.testing.assert_array_equal(plain.loss.conjugate(plain.edge + np.array([0.0, 1.0])), np.inf)


@pytest.mark.parametrize("plain", RESTING, ids=repr)
def test_at_rest_at_eta(plain):
    assert plain.loss.value(np.array([plain.eta]))[0] == pytest.approx(0.0, abs=1e-15)
    assert plain.loss.conjugate_slope(np.array([0.0]))[0] == pytest.approx(plain.eta, abs=1e-15)


def test_no_digits_are_lost_near_rest():
    """von Neumann's f has a double zero at 1, its conjugate a zero at 0."""
    t = 1e-5
    series = t**2 / 2 - t**3 / 6 + t**4 / 12
    assert VonNeumann().value(np.array([1 + t]))[0] == pytest.approx(series, rel=1e-5)
    assert VonNeumann().conjugate(np.array([1e-12]))[0] == pytest.approx(1e-12, rel=1e-9)


@pytest.mark.parametrize("loss", [Frobenius(0.25), SDPFrobenius(3.0), SDPLogDet(0.1), LogDet(), VonNeumann()])
def test_losses_are_cloned_with_their_parameters(loss):
    copy = clone(loss)
    assert copy is not loss
    assert copy.get_params() == loss.get_params()
    assert clone(MetricLearner(loss=loss)).loss.get_params() == loss.get_params()


# -- divided differences -----------------------------------------------------------------------------------------


def matrix_slope(loss, S):
    s, V = np.linalg.eigh(S)
    return (V * loss.conjugate_slope(s)) @ V.T


SPREADS = {  # away from the kinks at −η
    "apart": [-2.0, -1.3, -0.6, -0.1],
    "equal": [-0.8, -0.8, -0.5, -0.5],
    "nearly equal": [-0.8, -0.8 + 1e-7, -0.8 + 2e-6, -0.2],
    "a little apart": [-0.9, -0.9 - 3e-5, -0.9 - 1e-3, -30.0],
}


@losses
@pytest.mark.parametrize("spread", SPREADS)
def test_divided_differences_are_the_derivative_of_the_matrix_function(rng, plain, spread):
    """d/dt ∇f*(S + tD) = V (Ω ∘ VᵀDV) Vᵀ, Löwner's theorem, against central differences."""
    s = np.array(SPREADS[spread])
    V = np.linalg.qr(rng.standard_normal((4, 4)))[0]
    D = rng.standard_normal((4, 4))
    D = D + D.T
    S = (V * s) @ V.T
    h = 1e-5
    difference = (matrix_slope(plain.loss, S + h * D) - matrix_slope(plain.loss, S - h * D)) / (2 * h)
    derivative = V @ (divided_differences(plain.loss, s) * (V.T @ D @ V)) @ V.T
    np.testing.assert_allclose(derivative, difference, rtol=0, atol=2e-6 * (1 + np.abs(derivative).max()))


def test_divided_differences_across_a_kink():
    """One eigenvalue of F zero, the other not: Ω is between the curvatures 0 and 1 on either side."""
    omega = divided_differences(Frobenius(0.0), np.array([-3.0, -0.5, 1.0]))
    np.testing.assert_allclose(omega, [[0, 0, 0.25], [0, 0, 2 / 3], [0.25, 2 / 3, 1]])


@pytest.mark.parametrize("room", [1e-2, 1e-4, 1e-6])
def test_divided_differences_near_the_end_of_the_domain(room):
    """1/((1 − s)(1 − t)) for LogDet, in closed form: s and t are close to each other, their slopes are not."""
    s = 1 - room * np.array([1.0, 2.0, 50.0])
    exact = 1 / np.outer(1 - s, 1 - s)
    np.testing.assert_allclose(divided_differences(LogDet(), s), exact, rtol=1e-4)


def test_divided_differences_near_rest():
    """Eigenvalues of S that are zero up to rounding: the slope there, not a quotient of nothing by nothing."""
    s = np.array([0.0, 1e-17, -5e-17, 3e-15, 1e-12])
    for loss in (LogDet(), VonNeumann(), Frobenius()):
        np.testing.assert_allclose(divided_differences(loss, s), 1.0, rtol=1e-6)


@losses
def test_divided_differences_are_symmetric_and_not_negative(plain):
    s = slopes(plain)
    omega = divided_differences(plain.loss, s)
    assert np.isfinite(omega).all() and (omega >= 0).all()
    np.testing.assert_array_equal(omega, omega.T)


# -- what a user may get wrong -----------------------------------------------------------------------------------


@pytest.mark.parametrize("plain", RESTING, ids=repr)
def test_our_own_losses_pass_the_check(plain):
    check_loss(plain.loss)
    assert as_loss(plain.loss) is plain.loss


@pytest.mark.parametrize("eta", [1e-6, 1e-3, 3.0, 200.0, 3000.0])
def test_resting_points_of_any_size_pass_the_check(eta):
    check_loss(Frobenius(eta))
    check_loss(Hellinger(eta))


def test_the_one_without_a_resting_point_does_not_but_is_known():
    with pytest.raises(ValueError, match=r"value of SDPLogDet must be 0 at eta = 0; it is inf"):
        check_loss(SDPLogDet())
    loss = SDPLogDet()
    assert as_loss(loss) is loss


class Cosh:
    """f(w) = cosh(w − 1) − 1, f* attained at w = 1 + asinh(s), or at 0 for s below −sinh 1."""

    eta = 1.0

    def value(self, w):
        with np.errstate(over="ignore"):
            return np.where(w >= 0, np.cosh(w - 1) - 1, np.inf)

    def conjugate_slope(self, s):
        return np.maximum(1 + np.arcsinh(s), 0)

    def conjugate(self, s):
        w = self.conjugate_slope(s)
        return s * w - self.value(w)

    def conjugate_curvature(self, s):
        return np.where(s > -np.sinh(1), 1 / np.sqrt(1 + s**2), 0.0)


def test_a_loss_needs_no_base_class():
    check_loss(Cosh())
    check_loss(Hellinger(2.0))


class Huber:
    """½ d² while d = w − 1 < 1, then d − ½: f* ends at s = 1, at the eigenvalue 2."""

    eta = 1.0

    def value(self, w):
        d = w - 1
        return np.where(w < 0, np.inf, np.where(d < 1, d * d / 2, d - 0.5))

    def conjugate(self, s):
        return np.where(s > 1, np.inf, np.where(s < -1, -0.5, s + s * s / 2))

    def conjugate_slope(self, s):
        return np.clip(1 + s, 0, 2)

    def conjugate_curvature(self, s):
        return np.where(np.abs(s) < 1, 1.0, 0.0)


class OneSided:
    """½ min(w − 1, 0)²: nothing holds large eigenvalues back, so f* ends at s = 0."""

    eta = 1.0

    def value(self, w):
        return np.where(w < 0, np.inf, np.minimum(w - 1, 0) ** 2 / 2)

    def conjugate(self, s):
        return np.where(s > 0, np.inf, np.where(s < -1, -0.5, s + s * s / 2))

    def conjugate_slope(self, s):
        return np.clip(1 + s, 0, 1)

    def conjugate_curvature(self, s):
        return np.where(np.abs(s + 0.5) < 0.5, 1.0, 0.0)


class Straightening:
    """f(w) = w + e^−w up to a constant and a slope: straight in the limit only. f* ends at s = ½, w = −ln(½ − s)."""

    eta = float(np.log(2))

    def value(self, w):
        return np.where(w < 0, np.inf, w / 2 + np.exp(-w) - (self.eta / 2 + 0.5))

    def conjugate(self, s):
        w = self.conjugate_slope(s)
        return np.where(s < 0.5, s * w - self.value(w), np.inf)

    def conjugate_slope(self, s):
        return np.where(s > -0.5, -np.log(np.maximum(0.5 - s, 1e-300)), 0.0)

    def conjugate_curvature(self, s):
        return np.where(s > -0.5, 1 / (0.5 - s), 0.0)


class SteepExponential:
    """c (w ln w − w + 1), small c: f* = c (e^(s/c) − 1) is infinite in float64 from s = 710 c on."""

    eta, c = 1.0, 1e-3

    def value(self, w):
        return self.c * VonNeumann().value(w)

    def conjugate(self, s):
        return self.c * np.expm1(s / self.c)

    def conjugate_slope(self, s):
        return np.exp(s / self.c)

    def conjugate_curvature(self, s):
        return np.exp(s / self.c) / self.c


def test_losses_must_not_become_straight_lines():
    with pytest.raises(ValueError, match=r"conjugate of Huber ends at s = 1, where conjugate_slope is 2; it must grow"):
        check_loss(Huber())
    with pytest.raises(ValueError, match=r"conjugate of OneSided ends at s = \S+, where conjugate_slope is 1; it must"):
        check_loss(OneSided())
    check_loss(Straightening())
    check_loss(SteepExponential())


class NoFunctions:
    eta = 1.0


BROKEN = {
    "not zero at eta": (
        {"value": lambda self, w: Cosh.value(self, w) + 0.1},
        r"value of Broken must be 0 at eta = 1; it is 0\.1; it is smallest near w = 1, value 0\.1",
    ),
    "zero elsewhere": ({"eta": 2.0}, r"value of Broken must be 0 at eta = 2; it is 0\.543.*smallest near w = 1"),
    "negative": (
        {"value": lambda self, w: np.where(w > 2, -1.0, Cosh.value(self, w))},
        r"value of Broken must be ≥ 0 everywhere; it is -1 at w = ",
    ),
    "not convex": (
        {"value": lambda self, w: np.where(w >= 0, np.minimum((w - 1) ** 2, 1.0), np.inf)},
        r"value of Broken must be convex; its slope falls near w = 2",
    ),
    "conjugate too small": (
        {"conjugate": lambda self, s: Cosh.conjugate(self, s) - 0.1},
        r"conjugate of Broken must be s w − value\(w\) at w = conjugate_slope\(s\); at s = ",
    ),
    "slope that attains less": (
        {
            "conjugate_slope": lambda self, s: np.ones_like(s),
            "conjugate": lambda self, s: s,
            "conjugate_curvature": lambda self, s: np.zeros_like(s),
        },
        r"conjugate of Broken must be the largest s w − value\(w\) over w ≥ 0; at s = .* there is a larger one",
    ),
    "wrong slope": (
        {"conjugate_slope": lambda self, s: np.exp(s), "conjugate": lambda self, s: Cosh().conjugate(s)},
        r"conjugate of Broken must be s w − value\(w\) at w = conjugate_slope\(s\); at s = ",
    ),
    "conjugate without bound": (
        {"conjugate_slope": lambda self, s: 1 + np.arcsinh(s)},
        r"conjugate of Broken must be finite for s ≤ 0, and never −inf; it is -inf at s = -1\.2",
    ),
    "domain cut short": (
        {"conjugate": lambda self, s: np.where(s > -5, Cosh().conjugate(s), np.inf)},
        r"conjugate of Broken must be finite for s ≤ 0, and never −inf; it is inf at s = -5",
    ),
    "negative slope": (
        {"conjugate_slope": lambda self, s: 1 + np.arcsinh(s), "conjugate": lambda self, s: Cosh().conjugate(s)},
        r"conjugate_slope of Broken is an eigenvalue of the metric, ≥ 0; got -\d",
    ),
    "wrong curvature": (
        {"conjugate_curvature": lambda self, s: np.full_like(s, 0.5)},
        r"conjugate_curvature of Broken must be the derivative of conjugate_slope; at s = .* it is 0\.5, but finite",
    ),
    "negative curvature": (
        {"conjugate_curvature": lambda self, s: -Cosh.conjugate_curvature(self, s)},
        r"conjugate_curvature of Broken must be a number ≥ 0",
    ),
    "infinite curvature": (
        {"conjugate_curvature": lambda self, s: np.where(s > 2, np.inf, Cosh.conjugate_curvature(self, s))},
        r"conjugate_curvature of Broken must be a number ≥ 0",
    ),
    "NaN value": (
        {"value": lambda self, w: np.where(w > 0, Cosh.value(self, w), np.nan)},
        r"value of Broken is NaN at w = 0; outside the domain it must be inf",
    ),
    "NaN conjugate": (
        {"conjugate": lambda self, s: np.where(s < 2, Cosh.conjugate(self, s), np.nan)},
        r"conjugate of Broken is NaN at s = 2; outside the domain it must be inf",
    ),
    "NaN slope": (
        {
            "conjugate": lambda self, s: Cosh().conjugate(s),
            "conjugate_slope": lambda self, s: np.where(s < 2, Cosh.conjugate_slope(self, s), np.nan),
        },
        r"conjugate_slope of Broken is an eigenvalue of the metric, ≥ 0; got nan at s = 2",
    ),
    "NaN curvature": (
        {"conjugate_curvature": lambda self, s: np.full_like(s, np.nan)},
        r"conjugate_curvature of Broken must be a number ≥ 0",
    ),
    "no domain": (
        {"conjugate": lambda self, s: np.full_like(s, np.inf)},
        r"conjugate of Broken must be finite for s ≤ 0, and never −inf; it is inf at s = 0",
    ),
    "a sum": (
        {"value": lambda self, w: Cosh.value(self, w).sum()},
        r"value of Broken must work elementwise on arrays; for shape \(\d+,\) it returned \(\)",
    ),
    "a list": (
        {"conjugate_curvature": lambda self, s: list(Cosh.conjugate_curvature(self, s))},
        r"conjugate_curvature of Broken must return an array for an array; got list",
    ),
    "wrong shape": (
        {"conjugate_curvature": lambda self, s: np.ones((len(s), 1))},
        r"conjugate_curvature of Broken must work elementwise on arrays; for shape \((\d+),\) it returned \(\1, 1\)",
    ),
    "missing function": (
        {"conjugate_curvature": None},
        r"a loss needs value, .*; Broken lacks conjugate_curvature",
    ),
    "eta negative": ({"eta": -1.0}, r"eta of Broken, where the loss is zero, must be a number ≥ 0; got -1\.0"),
    "eta NaN": ({"eta": np.nan}, r"eta of Broken, where the loss is zero, must be a number ≥ 0; got nan"),
    "eta no number": ({"eta": "one"}, r"eta of Broken, where the loss is zero, must be a number ≥ 0; got 'one'"),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_wrong_with_a_loss_is_named(name):
    changes, message = BROKEN[name]
    broken = type("Broken", (Cosh,), changes)()
    with pytest.raises(ValueError, match=message):
        check_loss(broken)
    with pytest.raises(ValueError, match=message):  # and before anything else happens
        MetricLearner(loss=broken).fit(np.eye(4), [0, 0, 1, 1])


def test_missing_parts_are_listed():
    with pytest.raises(ValueError, match=r"NoFunctions lacks value, conjugate, conjugate_slope, conjugate_curvature"):
        check_loss(NoFunctions())


@pytest.mark.parametrize("rest", [0.0, 0.123456, 37.5])
def test_a_missing_eta_is_found(rng, rest):
    class Restless:
        def value(self, w):
            return np.where(w < 0, np.inf, (w - rest) ** 2 / 2)

        def conjugate(self, s):
            w = self.conjugate_slope(s)
            return s * w - (w - rest) ** 2 / 2

        def conjugate_slope(self, s):
            return np.maximum(s + rest, 0.0)

        def conjugate_curvature(self, s):
            return np.where(s > -rest, 1.0, 0.0)

    check_loss(Restless())
    assert resting_point(Restless()) == resting_point(Frobenius(rest)) == rest
    X, y = labelled_data(rng)
    own, ours = (MetricLearner(loss=f, tol=1e-10).fit(X, y) for f in (Restless(), Frobenius(rest)))
    assert own.metric_.eta == rest
    np.testing.assert_allclose(own.metric_.matrix, ours.metric_.matrix, atol=1e-12)


def test_a_missing_eta_that_cannot_be_found():
    without_eta = {k: v for k, v in vars(Cosh).items() if callable(v)}
    check_loss(type("Restless", (), without_eta)())
    lifted = type("Lifted", (), without_eta | {"value": lambda self, w: Cosh().value(w) + 0.5})()
    with pytest.raises(ValueError, match=r"value of Lifted must be 0 at eta = 1; it is 0\.5"):
        check_loss(lifted)
    endless = type("Endless", (), without_eta | {"conjugate_slope": lambda self, s: -1.0 / s})()
    with pytest.raises(ValueError, match=r"Endless must be zero somewhere: .* conjugate_slope\(0\), which is -inf"):
        check_loss(endless)


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        ("hinge", r"loss must be one of 'logdet', 'vonneumann', 'frobenius' or a loss object; got 'hinge'"),
        (Frobenius, r"loss must be an object, not a class; pass Frobenius\(\)"),
        (Cosh, r"loss must be an object, not a class; pass Cosh\(\)"),
        (Frobenius(eta=-0.5), r"eta of Frobenius must be a number ≥ 0; got -0\.5"),
        (Frobenius(eta=np.nan), r"eta of Frobenius must be a number ≥ 0; got nan"),
        (Frobenius(eta="1"), r"eta of Frobenius must be a number ≥ 0; got '1'"),
        (Frobenius(eta=True), r"eta of Frobenius must be a number ≥ 0; got True"),
        (SDPFrobenius(strength=0), r"strength of SDPFrobenius must be a number > 0; got 0"),
        (SDPLogDet(strength=-1), r"strength of SDPLogDet must be a number > 0; got -1"),
        (None, r"a loss needs value, .*; NoneType lacks value"),
        (7, r"int lacks value"),
    ],
)  # fmt: skip
def test_losses_that_are_none(loss, message):
    with pytest.raises(ValueError, match=message):
        MetricLearner(loss=loss).fit(np.eye(4), [0, 0, 1, 1])


def test_names_mean_the_default_objects():
    assert [type(as_loss(name)) for name in ("logdet", "vonneumann", "frobenius")] == [LogDet, VonNeumann, Frobenius]
    assert as_loss("frobenius").eta == 1.0


def test_plain_losses_cover_every_loss():
    assert {type(p.loss) for p in ALL_LOSSES} >= {LogDet, VonNeumann, Frobenius, SDPFrobenius, SDPLogDet}
    assert frobenius(0.4).eta == 0.4 and sdp_logdet(0.5).loss.strength == 0.5
