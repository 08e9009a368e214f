"""The tiers of the engine agree, and so do a system in one piece and its elements."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import livens as lv
from livens import math as m


def random_system(seed, n, constrained, coupled):
    """Masses that may depend on q, a nonlinear potential, friction, forces; a sphere as constraint."""
    random = np.random.default_rng(seed)
    root = random.standard_normal((n, n))
    mass = root @ root.T + n * np.eye(n)
    stiffness, wave = random.uniform(0.5, 2, n), random.standard_normal(n)
    system = lv.System(
        n,
        mass=lambda q: (mass + np.outer(q, q)) if coupled else mass,
        potential=lambda q: sum(c * (1 - m.cos(x)) + 0.1 * x**4 for c, x in zip(stiffness, q, strict=True)),
        constraints=(lambda q: [0.5 * (q @ q - 1)]) if constrained else None,
        dissipation=lambda v: 0.05 * (v @ v),
        forces=lambda q, v, t: wave * m.sin(t),
    )
    q0 = random.standard_normal(n)
    q0 /= np.linalg.norm(q0)
    v0 = random.standard_normal(n)
    return system, q0, v0 - q0 * (q0 @ v0)


@given(
    seed=st.integers(0, 10**6), n=st.integers(2, 4), constrained=st.booleans(), coupled=st.booleans(),
    scheme=st.sampled_from(["livens-em", "livens-midpoint"]),
)  # fmt: skip
@settings(max_examples=12, deadline=None)
def test_fused_and_reference_tiers_agree(seed, n, constrained, coupled, scheme):
    """On random systems, to round-off."""
    system, q0, v0 = random_system(seed, n, constrained, coupled)
    runs = [lv.simulate(system, q0, v0, scheme=scheme, h=0.05, t_end=2.0, tier=tier) for tier in ("fused", "reference")]
    for name in ("q", "v", "p"):
        assert np.allclose(getattr(runs[0], name), getattr(runs[1], name), rtol=0, atol=1e-11)
    if scheme == "livens-em":
        assert np.abs(runs[0].observe("energy_balance_defect")).max() < 1e-12


def test_tiers_agree_on_the_double_four_bar():
    """59 unknowns a step; the motion is unstable in v normal to the constraints, so round-off grows by 1/h."""
    problem = lv.problems.load("double-four-bar")
    fused, reference = (lv.simulate(problem, t_end=0.2, tier=tier) for tier in ("fused", "reference"))
    assert np.abs(fused.q - reference.q).max() < 1e-13
    assert np.abs(fused.v - reference.v).max() < 1e-9


def test_sum_of_elements_equals_one_element():
    """A system written in one piece and as elements gives the same equations; per-element energies add up."""
    whole = lv.System(
        "x y",
        kinetic=lambda v: 0.5 * v[0] ** 2 + v[1] ** 2,
        potential=lambda q: 9.81 * q[1],
        constraints=lambda q: [0.5 * (q @ q - 1)],
    )
    parts = lv.System(
        "x y",
        elements=[
            lv.Element(["x"], kinetic=lambda v: 0.5 * v[0] ** 2),
            lv.Element(["y"], kinetic=lambda v, k: k.m * v[0] ** 2, parameters=dict(m=1.0)),
            lv.Element(["y", "x"], constraints=lambda q: [0.5 * (q @ q - 1)], name="rod"),
            lv.Element([1], potential=lambda q: 9.81 * q[0]),
        ],
    )
    a, b = (lv.simulate(s, [-1, 0], [0, 0], h=0.01, t_end=1) for s in (whole, parts))
    assert np.abs(a.q - b.q).max() < 1e-13
    assert parts.constraint_names == ("rod: g[0]",)


@pytest.mark.parametrize("N", [1, 3, 10])
def test_n_four_bar(N):
    """Any number of loops, energy at round-off, against the exact motion."""
    problem = lv.problems.load("n-four-bar", N=N)
    run = lv.simulate(problem, t_end=1.0)
    assert run.summary.max_energy_drift < 1e-13 and run.summary.max_constraint < 1e-13
    assert np.abs(run.q[-1] - problem.reference(1.0)["q"]).max() < 1e-4
