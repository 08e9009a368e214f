"""Galerkin variational integrators: order 2s with singular and variable mass, both levels of constraints."""

import numpy as np
import pytest
from conftest import measured_order

import livens as lv
from livens import math as m


def turning():
    """The mass of the second and third coordinate belongs to their sum, and changes with the first."""
    return lv.System(
        "a b c d",
        kinetic=lambda q, v: (
            (1 + 0.5 * m.cos(q[0])) * v[0] ** 2 + (1 + 0.2 * q[0] ** 2) * (v[1] + v[2]) ** 2 + v[3] ** 2
        ) / 2,
        potential=lambda q: 2 * m.cos(q[0]) + q[1] ** 2 / 2 + q[1] ** 4 / 4 + (q[3] - q[1]) ** 2 / 2,
        constraints=lambda q: [q[2] - m.sin(q[0]) + 0.1 * q[3] ** 3],
    )  # fmt: skip


def reduced():
    """The same motion without the massless combination: the third coordinate is inserted."""

    def c(q):
        return m.sin(q[0]) - 0.1 * q[2] ** 3

    return lv.System(
        "a b d",
        kinetic=lambda q, v: (
            (1 + 0.5 * m.cos(q[0])) * v[0] ** 2
            + (1 + 0.2 * q[0] ** 2) * (v[1] + m.cos(q[0]) * v[0] - 0.3 * q[2] ** 2 * v[2]) ** 2
            + v[2] ** 2
        ) / 2,
        potential=lambda q: 2 * m.cos(q[0]) + q[1] ** 2 / 2 + q[1] ** 4 / 4 + (q[2] - q[1]) ** 2 / 2 + 0 * c(q),
    )  # fmt: skip


START = np.array([0.2, 0.3, 0.1]), np.array([0.4, -0.3, 0.5])


def lifted():
    """The start of `turning` that belongs to that of `reduced`."""
    (a, b, d), (va, vb, vd) = START
    c, vc = np.sin(a) - 0.1 * d**3, np.cos(a) * va - 0.3 * d**2 * vd
    return np.array([a, b, c, d]), np.array([va, vb, vc, vd])


@pytest.mark.parametrize(("degree", "largest"), [(1, 0.08), (2, 0.16), (3, 0.1)])
def test_order_with_singular_and_variable_mass(degree, largest):
    """Against Gauss collocation of the reduced system, in coordinates and velocities."""
    exact = lv.simulate(reduced(), *START, scheme="gauss-4", h=0.01, t_end=1.6)
    steps = [largest * fraction for fraction in (1, 5 / 8, 1 / 2, 5 / 16)]
    errors = []
    for h in steps:
        run = lv.simulate(turning(), *lifted(), scheme=f"galerkin-variational-{degree}", h=h, t_end=1.6)
        errors.append(np.abs(np.r_[run.q[-1, [0, 1, 3]] - exact.q[-1], run.v[-1, [0, 1, 3]] - exact.v[-1]]).max())
        assert np.abs(run.observe("constraint")).max() < 1e-13
        assert np.abs(run.observe("velocity_constraint")).max() < 1e-13
    assert measured_order(steps, errors) == pytest.approx(2 * degree, abs=0.25)


def rod():
    model = lv.System(
        "x y z",
        kinetic=lambda v: 0.5 * (v @ v) + 0.2 * v[0] * v[1],
        potential=lambda q: 9.81 * q[2] + m.sin(q[0]) * q[1],
        constraints=lambda q: [0.5 * (q @ q - 1) + 0.1 * q[0] ** 3],
    )
    given = dict(q0=[0.5, 0.4, -0.7], v0=[0.7, -0.5, 0.3])
    state = model.initial_state(given, model.parameter_vector(), 0.0, True, "remove")
    return model, state["q"], state["v"]


@pytest.mark.parametrize("degree", [1, 2, 3])
def test_the_lobatto_pair_with_a_regular_mass(degree):
    """Two derivations of one method: a variational principle, and a partitioned Runge-Kutta pair."""
    model, q, v = rod()
    assert lv.study.symplecticity_defect(model, f"galerkin-variational-{degree}", q, v, 0.1) < 1e-13
    runs = [
        lv.simulate(model, q, v, scheme=scheme, h=0.02, t_end=1.0)
        for scheme in (f"galerkin-variational-{degree}", f"lobatto-iiia-iiib-{degree + 1}")
    ]
    assert np.abs(runs[0].q - runs[1].q).max() < 1e-11 and np.abs(runs[0].p - runs[1].p).max() < 1e-10


def test_momenta_energy_and_forces():
    """Angular momentum to round-off, no drift of the energy, and losses of the declared order."""
    pendulum = lv.System(
        "x y z",
        kinetic=lambda v: v @ v / 2,
        potential=lambda q: 9.81 * q[2],
        constraints=lambda q: [(q @ q - 1) / 2],
        symmetries=dict(Lz=lambda q: [-q[1], q[0], 0.0]),
    )
    run = lv.simulate(pendulum, [0.8, 0, -0.6], [0, 1.5, 0], scheme="galerkin-variational-2", h=0.04, t_end=100.0)
    energy = run.observe("total_energy")
    assert np.ptp(run.observe("Lz")) < 1e-12
    assert np.ptp(energy[len(energy) // 2 :]) < 1.1 * np.ptp(energy[: len(energy) // 2]) < 1e-3
    driven = lv.System(
        "x", kinetic=lambda v: v @ v / 2, potential=lambda q: q @ q / 2,
        forces=lambda t: [m.cos(2 * t)], dissipation=lambda v: 0.1 * (v @ v),
    )  # fmt: skip
    exact = lv.simulate(driven, [1.0], [0.0], scheme="gauss-4", h=0.02, t_end=2.0)
    steps = [0.2 / 2**i for i in range(4)]
    runs = [lv.simulate(driven, [1.0], [0.0], scheme="galerkin-variational-2", h=h, t_end=2.0) for h in steps]
    for name in ("q", "dissipated_energy", "supplied_energy"):
        errors = [abs(np.ravel(getattr(run, name)[-1])[0] - np.ravel(getattr(exact, name)[-1])[0]) for run in runs]
        assert measured_order(steps, errors) == pytest.approx(4, abs=0.4), name
