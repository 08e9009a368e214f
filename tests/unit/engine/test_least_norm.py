"""The last resort of the reference tier: equations that depend on one another, by corrections of least norm."""

import numpy as np

import livens as lv
from livens.engine.reference import ReferenceSolver


def twice_held(weight):
    """A pendulum whose rod is counted twice, once with a weight."""
    return lv.System(
        "x y",
        kinetic=lambda v: v @ v / 2,
        potential=lambda q: 9.81 * q[1],
        constraints=lambda q: [(q @ q - 1) / 2, weight * (q @ q - 1) / 2],
    )


def first_step(system):
    scheme, k = lv.schemes.get("livens-em"), system.parameter_vector()
    equations = scheme.equations(system).flatten()
    values = dict(q=[1.0, 0.0], v=[0.0, 0.0], p=[0.0, 0.0])
    z = equations.layout.vector({name: np.array(value) for name, value in values.items()})
    c = np.concatenate([[0.01, 0.0], k])
    guess = np.array(equations.guess_function(z, c)).ravel()
    return equations, ReferenceSolver(equations).solve(guess, z, c)


def test_dependent_equations_share_the_force():
    """The motion is that with one rod; of all forces that do, the smallest are found: 1 to 3, as the weights are."""
    equations, (x, _, trouble, *_) = first_step(twice_held(3.0))
    assert trouble is None
    lam = x[-2:]
    assert abs(lam[1] / lam[0] - 3) < 1e-9
    single = lv.System(
        "x y",
        kinetic=lambda v: v @ v / 2,
        potential=lambda q: 9.81 * q[1],
        constraints=lambda q: [(q @ q - 1) / 2],
    )
    _, (alone, _, none, *_) = first_step(single)
    assert none is None and np.abs(alone[: equations.size - 2] - x[:-2]).max() < 1e-12
    assert abs(lam[0] + 3 * lam[1] - alone[-1]) < 1e-9
