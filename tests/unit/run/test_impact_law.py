"""Impact law of Newton and Coulomb: complementarity of impulses and velocities after an impact."""

import numpy as np
import pytest

from livens.multibody.contacts.impact_law import dissipative_impulse, impact_impulse


def random_impact(seed, size):
    """A Delassus matrix with coupled directions, and an approach velocity."""
    random = np.random.default_rng(seed)
    J = random.standard_normal((size, 5))
    velocity = random.standard_normal(size)
    return J @ J.T, np.concatenate([[-abs(velocity[0])], velocity[1:]])


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("mu", [0.05, 0.3, 0.8])
def test_velocities_and_impulses_after_an_impact(size, mu):
    """Restitution, and sticking in the friction cone or slip against the friction impulse on the cone."""
    slid, reversed_slip = 0, 0
    for seed in range(200):
        W, c = random_impact(seed, size)
        P = impact_impulse(W, c, 0.4, mu)
        after = c + W @ P
        scale = np.abs(c).max()
        assert after[0] == pytest.approx(-0.4 * c[0], abs=1e-10 * scale) and P[0] > 0
        friction, slip = P[1:], after[1:]
        if np.linalg.norm(slip) < 1e-9 * scale:
            assert np.linalg.norm(friction) <= mu * P[0] * (1 + 1e-12)
            continue
        slid += 1
        reversed_slip += slip @ c[1:] < 0
        assert np.linalg.norm(friction) == pytest.approx(mu * P[0], rel=1e-9)
        assert slip @ friction == pytest.approx(-np.linalg.norm(slip) * np.linalg.norm(friction), rel=1e-9)
    assert slid > 20 and (reversed_slip or size == 3 or mu > 0.5)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_impacts_never_supply_energy(size):
    for seed in range(100):
        W, c = random_impact(seed, size)
        for e, mu in ((0.0, 0.5), (1.0, 0.5), (1.0, 3.0)):
            P = dissipative_impulse(W, c, e, mu)
            assert P @ (c + W @ P / 2) <= 1e-11 * np.abs(P) @ np.abs(c)
            assert (c + W @ P)[0] >= -1e-11 * np.abs(c).max()
