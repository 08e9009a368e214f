"""Nambu systems: the field from the Hamiltonians, what it leaves as it is, and what schemes ask about it."""

import itertools

import casadi as ca
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import livens as lv
from livens import math as m

few = settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
seeds = st.integers(0, 2**32 - 1)


def top():
    return lv.Nambu(
        "x1 x2 x3",
        hamiltonians=[lambda x: x @ x / 2, lambda x, k: sum(x**2 / k.I) / 2],
        parameters=dict(I=[0.5, 1.0, 2.0]),
    )


def twisted(n):
    """Hamiltonians without any structure."""
    return lv.Nambu(
        n,
        hamiltonians=[
            lambda x, j=j: m.sin(x[j]) * x[j - 1] ** 2 + m.exp(x[(j + 1) % n] / (j + 2)) + x[0] * x[-1]
            for j in range(n - 1)
        ],
    )


def levi_civita(n):
    epsilon = np.zeros((n,) * n)
    for permutation in itertools.permutations(range(n)):
        epsilon[permutation] = np.linalg.det(np.eye(n)[list(permutation)])
    return epsilon


def evaluated(model, expression, x):
    return np.array(model.function(expression)(x, model.parameter_vector()))


@given(seeds)
@few
def test_euler_equations(seed):
    """Modin 2009 paper IV, eq. 4.1b."""
    x = np.random.default_rng(seed).uniform(-1, 1, 3)
    a = [1 / 2 - 1, 2 - 1 / 2, 1 - 2]
    wanted = [a[0] * x[1] * x[2], a[1] * x[2] * x[0], a[2] * x[0] * x[1]]
    assert top().evaluate(x) == pytest.approx(wanted, abs=1e-15)
    inertia = np.array([3.0, 2.0, 1.0])
    assert top().evaluate(x, I=inertia) == pytest.approx(np.cross(x, x / inertia), abs=1e-15)


@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_field_is_the_definition(n):
    """Modin 2009 paper IV, eq. 1.1, summed over all indices; the Hamiltonians and the volume do not change."""
    model = twisted(n)
    for seed in range(5):
        x = np.random.default_rng(seed).uniform(0.5, 1.5, n)
        gradients = [evaluated(model, ca.gradient(H, model.x), x).ravel() for H in model.hamiltonians]
        wanted = levi_civita(n)
        for gradient in reversed(gradients):
            wanted = wanted @ gradient  # over the last index
        rate = model.evaluate(x)
        assert rate == pytest.approx(wanted, rel=1e-12)
        size = np.linalg.norm(rate)
        assert np.abs([gradient @ rate for gradient in gradients]).max() <= 1e-13 * size * np.max(np.abs(gradients))
        jacobian = evaluated(model, ca.jacobian(model.vector_field, model.x), x)
        assert abs(np.trace(jacobian)) <= 1e-12 * np.abs(jacobian).max()


def test_in_the_plane_it_is_hamiltons():
    plane = lv.Nambu("q p", hamiltonians=[lambda x: x[1] ** 2 / 2 - m.cos(x[0])])
    hamilton = lv.Hamiltonian("q", kinetic=lambda p: p[0] ** 2 / 2, potential=lambda q: -m.cos(q[0]))
    q, p = [0.3], [0.7]
    there = [float(hamilton.function(e)(q, p, 0, [])) for e in (hamilton.velocity, hamilton.momentum_rate)]
    assert plane.evaluate([0.3, 0.7]) == pytest.approx(there, rel=1e-15)


@pytest.mark.parametrize("n", [3, 4])
def test_poisson_structures(n):
    model = twisted(n)
    x = np.random.default_rng(1).uniform(0.5, 1.5, n)
    gradients = [evaluated(model, ca.gradient(H, model.x), x).ravel() for H in model.hamiltonians]
    for which in range(1, n):
        S = evaluated(model, model.structure(which), x)
        assert np.abs(S + S.T).max() <= 1e-13 * np.abs(S).max()
        assert S @ gradients[which - 1] == pytest.approx(model.evaluate(x), rel=1e-12)
        for other in range(1, n):
            if other != which:  # a Casimir
                assert np.abs(S @ gradients[other - 1]).max() <= 1e-12 * np.abs(S).max()
    with pytest.raises(lv.InputError, match=f"numbered from 1 to {n - 1}"):
        model.structure(0)


def test_structure_of_the_top_is_the_known_one():
    """``x' = x x grad T`` with |x|^2/2 as Casimir: Euler's equations (Modin eq. 2.40; ex. 2.9.1: other sign)."""
    model = top()
    S = evaluated(model, model.structure(2), np.array([1.0, 2, 3]))
    assert S.tolist() == [[0, -3, 2], [3, 0, -1], [-2, 1, 0]]


def test_bracket():
    model = top()
    f = model.x[0] ** 3 * model.x[2]
    x = np.array([0.3, -0.4, 0.9])
    rate = ca.jtimes(f, model.x, model.vector_field)
    assert evaluated(model, model.bracket(*model.hamiltonians, f), x) == pytest.approx(evaluated(model, rate, x))
    swapped = model.bracket(model.hamiltonians[1], model.hamiltonians[0], f)
    assert evaluated(model, swapped, x) == pytest.approx(-evaluated(model, rate, x))
    with pytest.raises(lv.InputError, match="takes 3 functions"):
        model.bracket(f)


def test_what_schemes_ask():
    model = top()
    assert model.is_divergence_free_componentwise and [model.reversible(i) for i in range(3)] == [True] * 3
    assert evaluated(model, model.diagonal_coefficients, np.zeros(3)).tolist() == [[1, 1, 1], [2, 1, 0.5]]
    assert (
        not twisted(3).is_divergence_free_componentwise
        and twisted(3).diagonal_coefficients is None
        and not twisted(3).reversible("x0")
    )
    cubic = lv.Nambu(3, hamiltonians=[lambda x: x[0] ** 3 + x[1], lambda x: m.cos(x[2]) + x[1] ** 2])
    assert cubic.is_divergence_free_componentwise and cubic.diagonal_coefficients is None
    shifted = lv.Nambu(3, hamiltonians=[lambda x: x @ x / 2 + x[0], lambda x: x[2] ** 2])
    assert shifted.diagonal_coefficients is None
    assert "I = [0.5, 1.0, 2.0]" in str(model) and repr(model) == "<livens.Nambu: states x1 x2 x3>"
    assert model.parameters == {"I": [0.5, 1.0, 2.0]} and model.parameter_count == 3 and model.n == 3


def test_bad_input():
    def H(x):
        return x[0]

    for arguments, words in (
        (dict(states=3, hamiltonians=[H]), "with 3 states has 2 Hamiltonians, got 1"),
        (dict(states=2, hamiltonians=[H, H]), "with 2 states has 1 Hamiltonian, got 2"),
        (dict(states=1, hamiltonians=[]), "at least two states"),
        (dict(states=2, hamiltonians=[3]), "list of functions"),
        (dict(states=2, hamiltonians=H), "list of functions"),
        (dict(states=2, hamiltonians=[lambda x: x]), "Hamiltonian 1 must be one number"),
        (dict(states=2, hamiltonians=[lambda x, k: k.a]), "unknown parameter 'k.a'"),
        (dict(states=2, hamiltonians=[lambda q: q[0]]), "has an argument 'q'"),
        (dict(states=2, hamiltonians=[lambda x: 1.0]), "nothing moves"),
    ):
        with pytest.raises(lv.InputError, match=words):
            lv.Nambu(**arguments)
    with pytest.raises(lv.InputError, match="x must be 3 numbers"):
        top().evaluate([1.0])


def test_brackets_of_lower_order_have_casimirs():
    """Order 3 on R^4: two Hamiltonians and a Casimir; the bracket with f is the rate of f."""
    model = lv.Nambu(
        4,
        hamiltonians=[lambda x: x[0] * x[1] + x[3] ** 2, lambda x: (x @ x) / 2],
        casimirs=dict(volume=lambda x: x[2] + x[0] ** 2),
    )
    assert model.bracket_order == 3 and list(model.symmetries) == ["H1", "H2", "volume"]
    H1, H2, C = model.hamiltonians
    f = m_to_expression(model)
    rate = ca.dot(ca.gradient(f, model.x), model.vector_field)
    values = [np.array(model.function(e)([0.3, 0.7, -0.2, 0.9], [])).item() for e in (rate, model.bracket(f, H1, H2))]
    assert values[0] == pytest.approx(values[1], abs=1e-14) and abs(values[0]) > 1e-3
    for conserved in (H1, H2, C):
        assert abs(float(model.function(model.bracket(conserved, H1, H2))([0.3, 0.7, -0.2, 0.9], []))) < 1e-14
    run = lv.simulate(model, x0=[0.3, 0.7, -0.2, 0.9], scheme="gauss-4", h=0.02, t_end=5.0)
    assert max(run.summary.momentum_drift.values()) < 1e-11
    with pytest.raises(lv.ModelError, match="got 2 and 2 Casimirs"):
        lv.Nambu(4, hamiltonians=[lambda x: x[0], lambda x: x[1]], casimirs=[lambda x: x[2], lambda x: x[3]])
    with pytest.raises(lv.InputError, match="the bracket takes 3 functions"):
        model.bracket(H1, H2)


def m_to_expression(model):
    return ca.sin(model.x[0]) * model.x[3] + model.x[1] * model.x[2]
