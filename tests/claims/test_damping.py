"""Weakly damped oscillators (Modin and Soederlind 2011; Modin 2009, 1.1): the decay of geometric integrators."""

import numpy as np
import pytest

import livens as lv

DAMPING, STEP, SPAN = 1e-3, 0.1, 400.0


def decay_rate(scheme):
    """Return the rate of decay of the energy of a nonlinear oscillator, by the energy at both ends of a long run."""
    oscillator = lv.System(
        "x",
        kinetic=lambda v: v @ v / 2,
        potential=lambda q: q[0] ** 2 / 2 + q[0] ** 4 / 40,
        dissipation=lambda v, k: k.d * (v @ v) / 2,
        parameters=dict(d=DAMPING),
    )
    run = lv.simulate(oscillator, [1.0], [0.0], scheme=scheme, h=STEP, t_end=SPAN)
    energy = run.observe("total_energy")
    first, last = energy[: len(energy) // 20].mean(), energy[-len(energy) // 20 :].mean()
    return np.log(first / last) / (SPAN * 0.95)


EXACT = decay_rate("gauss-4")


@pytest.mark.parametrize(
    "scheme", ["variational:0", "variational:0.5", "variational-sym:0.25", "livens-em", "livens-variational", "gauss-2"]
)
def test_geometric_integrators_dissipate_at_the_rate_of_the_system(scheme):
    """Within one percent at sixty steps per period, although the damping is much smaller than the error of a step."""
    assert decay_rate(scheme) == pytest.approx(EXACT, rel=0.01)


def test_other_integrators_dissipate_at_a_rate_of_their_own():
    """Implicit Euler decays by its own damping, h per unit of time; Heun's method takes in energy, h^3/4."""
    assert decay_rate("implicit-euler") > 20 * EXACT
    assert decay_rate("heun") == pytest.approx(EXACT - STEP**3 / 4, rel=0.1)
