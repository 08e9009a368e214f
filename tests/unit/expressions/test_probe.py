"""Random states tell zero from not zero; where nothing can be evaluated, they tell nothing."""

import casadi as ca
import numpy as np

from livens.expressions.probe import Probe

x, k = ca.SX.sym("x", 3), ca.SX.sym("k")


def test_an_identity_is_seen():
    probe = Probe([x, k], seed=3)
    assert probe.is_zero(ca.sin(x) ** 2 + ca.cos(x) ** 2 - 1) is True
    assert probe.is_zero(x[0] - x[1]) is False
    assert probe.zero_entries(ca.vertcat(x[0] - x[0] * 1.0, x[1])).ravel().tolist() == [True, False]


def test_states_that_cannot_be_evaluated_prove_nothing():
    """Neither that something is zero nor that it is not, and others are looked at instead."""
    nowhere, sometimes = ca.sqrt(x[0] - 2), ca.sqrt(x[0] - 1)
    probe = Probe([x], seed=3)
    assert probe.is_zero(nowhere) is None and probe.evaluate_once(nowhere) is None
    assert probe.is_zero(sometimes - sometimes**1.0) is True and probe.is_zero(sometimes) is False
    assert np.isfinite(probe.evaluate_once(sometimes)).all()


def test_given_values_stay():
    assert Probe([x, k], seed=1, fixed={1: 2.0}).is_zero(k - 2) is True
    for state, given in Probe([x, k], seed=1, fixed={1: 2.0}).points(4):
        assert given == 2.0 and state.shape == (3, 1) and np.all((state >= 0.5) & (state <= 1.5))


def test_one_seed_one_answer():
    first, second = ([s[0].tolist() for s in Probe([x], seed=9).points(3)] for _ in range(2))
    assert first == second and first != [s[0].tolist() for s in Probe([x], seed=8).points(3)]


def test_sizes_count():
    """Zero is at most so much of the size of the terms."""
    probe = Probe([x], seed=1)
    assert probe.is_zero(1e-13 * x, ca.fabs(x)) is True and probe.is_zero(1e-11 * x, ca.fabs(x)) is False
    assert probe.is_zero(1e-11 * x, ca.fabs(x), tolerance=1e-10) is True
