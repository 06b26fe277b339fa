"""The price of a violation and its conjugate: penalty(v) ≥ s v + dual(s), with equality at s = slope(v)."""

from __future__ import annotations

from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mahalo.losses import HingeSlack, LogDet, LogSlack, SlackStack

positive = st.floats(1e-6, 1e6)


def log_slack(sign, bound, gamma):
    return LogSlack(np.array([sign]), np.array([bound]), np.array([gamma]))


def hinge_slack(sign, bound, scale, gamma):
    return HingeSlack(np.array([sign]), np.array([bound]), np.array([scale]), np.array([gamma]))


@given(st.sampled_from([1.0, -1.0]), positive, positive, positive, st.floats(0, 1))
def test_log_slack_and_its_conjugate(sign, bound, gamma, v, share):
    slack, v = log_slack(sign, bound, gamma), np.array([v])
    s = slack.slope(v)
    assert sign * s[0] >= 0
    touching = slack.value(v)[0] - s[0] * v[0] - slack.dual(s)[0]
    assert abs(touching) <= 1e-8 * gamma * max(1.0, v[0] / bound, bound / v[0])
    other = share * gamma / bound if sign > 0 else -share / (1 - share + 1e-9) * gamma / bound
    other = np.minimum(np.array([other]), (1 - 1e-6) * gamma / bound)  # inside the domain
    below = slack.value(v)[0] - other[0] * v[0] - slack.dual(other)[0]
    assert below >= -1e-9 * max(1.0, slack.value(v)[0], abs(other[0] * v[0]), gamma)


@given(st.sampled_from([1.0, -1.0]), st.floats(-1e3, 1e3), positive, positive, st.floats(-1e3, 1e3), positive)
def test_hinge_slack_and_its_conjugate(sign, bound, scale, gamma, v, lam):
    slack, v = hinge_slack(sign, bound, scale, gamma), np.array([v])
    s = slack.slope(v)
    size = slack.value(v)[0] + abs(s[0] * v[0]) + abs(s[0] * bound)
    assert abs(slack.value(v)[0] - s[0] * v[0] - slack.dual(s)[0]) <= 1e-12 * size + 1e-300
    other = np.array([sign * lam])
    size = slack.value(v)[0] + abs(other[0] * v[0]) + abs(slack.dual(other)[0])
    assert slack.value(v)[0] - other[0] * v[0] - slack.dual(other)[0] >= -1e-12 * size - 1e-300


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("kind", ["log", "hinge"])
def test_slope_and_curvature_are_derivatives(sign, kind):
    slack = log_slack(sign, 2.0, 3.0) if kind == "log" else hinge_slack(sign, 2.0, 0.7, 3.0)
    h = 1e-5
    for value in (0.5, 1.5, 2.5, 6.0):
        v = np.array([value])
        slope = (slack.value(v + h) - slack.value(v - h)) / (2 * h)
        np.testing.assert_allclose(slack.slope(v), slope, rtol=1e-7, atol=1e-8)
        curvature = (slack.slope(v + h) - slack.slope(v - h)) / (2 * h)
        np.testing.assert_allclose(slack.curvature(v, slack.slope(v)), curvature, rtol=1e-7, atol=1e-8)
        s = slack.slope(v)
        dual_slope = (slack.dual(s + h) - slack.dual(s - h)) / (2 * h)
        np.testing.assert_allclose(slack.dual_slope(s), dual_slope, rtol=1e-6)


def test_hinge_is_half_gamma_times_the_squared_relative_violation():
    assert hinge_slack(1.0, -2.0, 2.0, 10.0).value(np.array([1.0]))[0] == pytest.approx(10 / 2 * (3 / 2) ** 2)
    assert hinge_slack(1.0, -2.0, 2.0, 10.0).value(np.array([-2.5]))[0] == 0.0


def test_both_penalties_agree_to_second_order():
    """γ means about the same for every kind of constraint."""
    for v in (2.0 * (1 + 1e-3), 2.0 * (1 - 1e-3)):
        sign = np.sign(v - 2.0)
        log, hinge = log_slack(sign, 2.0, 5.0), hinge_slack(sign, 2.0, 2.0, 5.0)
        assert log.value(np.array([v]))[0] == pytest.approx(hinge.value(np.array([v]))[0], rel=2e-3)


def exact_h(t: float) -> float:
    """t − ln t − 1 in fifty digits."""
    with localcontext(prec=50):
        return float(Decimal(t) - Decimal(t).ln() - 1)


@pytest.mark.parametrize("t", [1e-14, 1e-9, 1e-3, 0.3, 0.5, 0.6, 1 - 1e-9, 1 - 1e-4, 1 + 1e-9, 2.0, 1e9])
def test_no_digits_are_lost_near_or_far_from_the_bound(t):
    """h has a double zero at 1 and a logarithm at 0; neither is computed from a difference that cancels."""
    slack = log_slack(np.sign(t - 1), 1.0, 1.0)
    near = 1e-6 if abs(t - 1) < 1e-6 else 1e-12  # where t − 1 itself has few digits
    assert slack.value(np.array([t]))[0] == pytest.approx(exact_h(t), rel=near, abs=1e-16)
    assert LogDet().value(np.array([t]))[0] == pytest.approx(exact_h(t), rel=near, abs=1e-16)


def test_log_det_and_its_conjugate():
    loss, w = LogDet(), np.array([1e-3, 0.5, 1.0, 7.0])
    s = 1 - 1 / w  # f'(w)
    np.testing.assert_allclose(loss.value(w) + loss.conjugate(s), s * w, atol=1e-12)
    np.testing.assert_allclose(loss.conjugate_slope(s), w)
    np.testing.assert_array_equal(loss.value(np.array([0.0, -1.0])), np.inf)
    np.testing.assert_array_equal(loss.conjugate(np.array([1.0, 2.0])), np.inf)


def test_stack_is_one_beside_the_other():
    log = LogSlack(np.array([1.0, -1.0]), np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    hinge = HingeSlack(np.array([1.0]), np.array([-0.5]), np.array([0.5]), np.array([2.0]))
    stack, v = SlackStack(log, hinge, 2), np.array([1.5, 1.0, 0.2])
    s = stack.slope(v)
    for name, arguments in {
        "value": (v,), "slope": (v,), "curvature": (v, s), "dual": (s,), "dual_slope": (s,)
    }.items():  # fmt: skip
        first = getattr(log, name)(*(a[:2] for a in arguments))
        rest = getattr(hinge, name)(*(a[2:] for a in arguments))
        np.testing.assert_array_equal(getattr(stack, name)(*arguments), np.concatenate([first, rest]))


@pytest.mark.parametrize("v", [0.0, -1e-30, -0.3])
def test_a_similar_pair_at_zero_pays_nothing_and_says_nothing(v):
    """Under a singular metric, or on the way along a line, a distance may be 0, or less by rounding."""
    slack, at = LogSlack(np.ones(1), np.full(1, 2.0), np.full(1, 3.0)), np.full(1, v)
    with np.errstate(all="raise"):
        assert slack.value(at) == slack.slope(at) == slack.curvature(at, np.zeros(1)) == 0.0
