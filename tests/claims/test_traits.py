"""Every scheme is what its record says, and is not what it does not say: one loop over all of them.

Orders are measured in the tests of the schemes, conservation in ``test_conservation.py`` and beside it.
"""

import dataclasses
import functools

import numpy as np
import pytest

import livens as lv
from livens import math as m
from livens.engine.steppers.reference import ReferenceSolver
from livens.models.equations_of_motion import OBSERVABLES
from livens.schemes.core.catalogue import GROUPS
from livens.schemes.core.scheme import FORMULATION_DESCRIPTIONS, Scheme, Traits

H = 0.1
#: What a scheme may conserve that is no observable of a system.
MORE = {
    "momentum_maps",
    "quadratic_invariants",
    "first Hamiltonian",
    "second Hamiltonian",
    "casimirs",
    "linear_invariants",
}
#: Schemes of which one step in (q, p) cannot show whether they are symplectic, and why.
NO_FORM = {
    "livens-em-nullspace": "the mass matrix of a unit quaternion is singular; the steps are those of livens-em",
    "lie-em": "angular momenta of bodies are part of the state beside (q, p)",
    "lie-ggl": "angular momenta of bodies are part of the state beside (q, p)",
    "step-density:lie-em": "angular momenta of bodies are part of the state beside (q, p)",
    **dict.fromkeys(
        [f"nambu-{one}" for one in "m m-g mt mt-g mt-g:-1 mt-g:2 t t-g t-g:-1 t-g:2".split()],
        "the state of a Nambu system is no phase space",
    ),
    **dict.fromkeys(
        ["spherical-midpoint", "collective-gauss-1", "collective-gauss-2", "isospectral-midpoint"],
        "symplectic on the orbits of a Lie group: tests/claims/test_poisson.py looks at the bracket",
    ),
    "j-r-splitting": "the state of a port-Hamiltonian system is no phase space",
    "discrete-gradient-pair": "the state of a port-Hamiltonian system is no phase space",
    "sundman-doubled": "symplectic in the doubled phase space, which tests/claims/test_adaptive.py looks at",
}


#: Schemes for bodies that attract each other, which none of the models below is made of.
PLANETARY = [lv.schemes.get(name) for name in ("wisdom-holman", "wisdom-holman:10")]


def kinetic(v):
    return 0.5 * v[0] ** 2 + 0.3 * v[0] * v[1] + v[1] ** 2


def shallow(q):
    return 3 - m.cos(q[0])


def steep(q):
    return 0.3 * q[0] * q[1] ** 2 + 0.2 * q[1] ** 4


@functools.cache
def models():
    """Nonlinear models, each with a state in which one step shows what a scheme is: (model, q, v or p)."""
    free = lv.System("x y", kinetic=lambda v: kinetic(v), potential=lambda q: shallow(q) + steep(q))
    forces = [lv.Force(steep, expensive=True, conservative=True)]
    split = lv.Hamiltonian("x y", kinetic=lambda p: kinetic(p), potential=shallow, forces=forces)
    rod = lv.System(
        "x y z",
        kinetic=lambda v: 0.5 * (v @ v) + 0.2 * v[0] * v[1],
        potential=lambda q: 9.81 * q[2] + m.sin(q[0]) * q[1],
        constraints=lambda q: [0.5 * (q @ q - 1) + 0.1 * q[0] ** 3],
    )
    start = rod.initial_state(
        dict(q0=[0.5, 0.4, -0.7], v0=[0.7, -0.5, 0.3]), rod.parameter_vector(), 0.0, True, "remove"
    )
    q, v_or_p = [0.6, -0.4], [0.5, 0.7]
    return [(free, q, dict(v=v_or_p)), (split, q, dict(p=v_or_p)), (rod, start["q"], dict(v=start["v"]))]


def scaled(scheme):
    """The scheme with a scaling that it can use, if it needs one, and that scaling."""
    if not scheme.fictive:
        return scheme, None
    if scheme.formulations == ("nambu",):
        scaling = lv.scaling.user_scaling(lambda x: 1 / (1 + x[0] ** 2))
    elif scheme.scaling_arguments == "energies":
        scaling = lv.scaling.user_scaling(lambda T, V: 1 / (T + V**2))
    else:
        scaling = lv.scaling.user_scaling(lambda q: 1 / (1 + q[0] ** 2 + m.sin(q[1]) ** 2))
    return scheme.with_scaling(scaling), scaling


@functools.cache
def measured(name):
    """Defects of one step on every model that the scheme fits, and the equations of a step."""
    scheme, scaling = scaled(lv.schemes.get(name))
    symplecticity, reversibility, equations = [], [], []
    for model, q, rest in models():
        if scheme.unmet_requirements(model):
            continue
        given = dict(q=q, h=H, scaling=scaling, **rest)
        reversibility.append(lv.study.reversibility_defect(model, scheme, **given))
        if name not in NO_FORM:
            symplecticity.append(lv.study.symplecticity_defect(model, scheme, **given))
        equations.append(scheme.equations(model).to_single_graph())
    if scheme.formulations == ("nambu",):
        equations, defect = nambu_step(scheme)
        reversibility.append(defect)
    if scheme.formulations == ("port-hamiltonian",):
        swing = lv.PortHamiltonian("q p", H=lambda x: x[1] ** 2 - m.cos(x[0]), J=[[0, 1], [-1, 0]])
        equations.append(scheme.equations(swing).to_single_graph())
        reversibility.append(there_and_back(swing, scheme))
    if scheme.formulations == ("discrete Lagrangian",):
        action = lv.DiscreteLagrangian(
            "x y", lagrangian=lambda q0, q1, h: kinetic((q1 - q0) / h) * h - h * steep(q0) - h * shallow(q0)
        )
        given = dict(q=[0.6, -0.4], p=[0.5, 0.7], h=H)
        symplecticity.append(lv.study.symplecticity_defect(action, scheme, **given))
        reversibility.append(lv.study.reversibility_defect(action, scheme, **given))
        equations.append(scheme.equations(action).to_single_graph())
    if scheme.formulations in (("spins",), ("isospectral",)):
        bodies = [lv.Spins(2, hamiltonian=lambda s: s[0] @ s[1] + s[0, 0] ** 2 * s[1, 1])]
        bodies.append(lv.IsospectralFlow(2, hamiltonian=lambda W: W[0, 0] ** 2 + W[0, 1] * W[1, 0] ** 2))
        (body,) = (one for one in bodies if not scheme.unmet_requirements(one))
        equations.append(scheme.equations(body).to_single_graph())
        reversibility.append(step_and_step_back(equations[-1]))
    if scheme.formulations == ("descriptor",):
        swing = lv.FirstOrder("angle rate", rhs=lambda x: [x[1], -m.sin(x[0])])
        equations.append(scheme.equations(swing).to_single_graph())
    if name == "sundman-harmonic":
        swing = lv.Hamiltonian("x y", kinetic=lambda p: p @ p, potential=lambda q: 3 + q[0] ** 2 + steep(q))
        given = dict(q=[0.6, -0.4], p=[0.5, 0.7], h=H, scaling=scaling)
        symplecticity.append(lv.study.symplecticity_defect(swing, scheme, **given))
        reversibility.append(lv.study.reversibility_defect(swing, scheme, **given))
        equations.append(scheme.equations(swing).to_single_graph())
    if name == "livens-em-nullspace":
        body = lv.problems.load("free-rigid-body")
        reversibility.append(lv.study.reversibility_defect(body.model, scheme, body.q0, body.v0, H))
        equations.append(scheme.equations(body.model).to_single_graph())
    if name in ("lie-em", "lie-ggl", "step-density:lie-em"):
        bars = lv.problems.load("double-four-bar")
        given = dict(elements=bars.model.elements, parameters=bars.model.model_parameters.values, frames=True)
        system = lv.System(bars.model.coordinates, **given)
        reversibility.append(lv.study.reversibility_defect(system, scheme, bars.q0, bars.v0, H, scaling=scaling))
        equations.append(scheme.equations(system).to_single_graph())
    if lv.schemes.get(name) in PLANETARY:
        planets = lv.PointMasses("star a b", [1.0, 0.1, 0.2], dimension=2)
        q, v = [0.01, 0.0, 1.0, 0.1, -0.3, 1.9], [0.0, 0.01, -0.05, 1.0, -0.7, 0.1]
        # one step of a corrector is nearly symmetric; long ones show that it is not
        reversibility.append(lv.study.reversibility_defect(planets, scheme, q, v, 0.5 * scheme.n_substeps))
        symplecticity.append(lv.study.symplecticity_defect(planets, scheme, q, v, H))
        equations.append(scheme.equations(planets).to_single_graph())
    return symplecticity, reversibility, equations


def there_and_back(swing, scheme):
    """Return the distance from the start after a step, a reversal of the momentum, and a step."""
    x = np.array([0.6, 0.7])
    for _ in range(2):
        x = lv.simulate(swing, x0=x, scheme=scheme, h=H, t_end=H).x[-1] * [1, -1]
    return np.abs(x - [0.6, 0.7]).max()


def step_and_step_back(e):
    """Return the distance from the start after a step of size h and one of size -h."""
    start = np.concatenate([[0.6, 0.7, -0.4, 0.2, 0.9, 0.5][: e.layout["x"].stop], np.zeros(2)])
    z = start
    for h in (H, -H):
        x = ReferenceSolver(e).solve(np.zeros(e.size), z, np.array([h, 0.0]))[0]
        z = e.evaluate_final_state(x, z, np.array([h, 0.0]))
        assert np.abs(z - start).max() > 1e-3 or h < 0
    return np.abs(z - start).max()


def nambu_step(scheme):
    """The equations of a step, and how far one is from the start after a step of size h and one of -h."""
    top = lv.Nambu("x y z", hamiltonians=[lambda x: x @ x / 2, lambda x: x[0] ** 2 + 0.6 * x[1] ** 2 + 0.3 * x[2] ** 2])
    x, k = np.array([0.5, 0.8, -0.4]), top.parameter_vector()
    e = scheme.equations(top).to_single_graph()
    z = e.layout.pack({"x": x, **scheme.initial_scheme_state(top, {"x": x}, k, 0.0, H)})
    there = e.final_state_function([], z, [H, 0.0]).full().ravel()
    assert np.abs(there - z).max() > 1e-3
    return [e], np.abs(e.final_state_function([], there, [-H, H]).full().ravel() - z).max()


#: Schemes of a higher order are exact here, up to round-off.
LAST_DIGIT = 12


def all_schemes():
    return pytest.mark.parametrize("scheme", lv.schemes.all(), ids=lambda scheme: scheme.name)


@all_schemes()
def test_the_record_is_complete(scheme):
    """And says the same as the attributes of the scheme, which are public too."""
    traits = scheme.traits
    assert isinstance(traits, Traits) and isinstance(scheme, Scheme)
    for field in dataclasses.fields(Traits):
        if field.name not in ("family", "aliases"):
            assert getattr(traits, field.name) == getattr(scheme, field.name), field.name
    assert traits.order >= 1 and traits.summary and traits.source and traits.evaluations_per_step >= 1
    assert traits.formulations and set(traits.formulations) <= set(FORMULATION_DESCRIPTIONS)
    assert traits.group in GROUPS
    assert set(traits.conserves) <= {*OBSERVABLES, *MORE}
    assert traits.family in {None, *lv.schemes.names()}


@all_schemes()
def test_symplectic_as_declared(scheme):
    """To round-off on every model it fits; otherwise far from it on one of them."""
    if scheme.name in NO_FORM:
        pytest.skip(NO_FORM[scheme.name])
    if scheme.order > LAST_DIGIT:
        pytest.skip("what it leaves out is beyond the last digit")
    defects = measured(scheme.name)[0]
    assert defects
    if scheme.traits.symplectic:
        assert max(defects) < 1e-13
    else:
        assert max(defects) > 1e-10


#: Symmetric without friction, and not declared so: with friction it is not, and that is what it is for.
NOT_COMPOSED = ("semi-explicit-2:0.5",)


@all_schemes()
def test_symmetric_as_declared(scheme):
    """Forth and back leads to the start, on every model it fits; otherwise far from it on one of them."""
    if scheme.order > LAST_DIGIT:
        pytest.skip("what it leaves out is beyond the last digit")
    defects = measured(scheme.name)[1]
    assert defects
    if scheme.traits.symmetric or scheme.name in NOT_COMPOSED:
        assert max(defects) < 1e-13
    else:
        assert max(defects) > 1e-10


@all_schemes()
def test_explicit_as_declared(scheme):
    """Explicit schemes have nothing to solve on any of the models here; the others have on at least one of them."""
    sizes = [equations.size for equations in measured(scheme.name)[2]]
    assert sizes and any(sizes) == scheme.traits.implicit


@all_schemes()
def test_estimates_its_error_as_declared(scheme):
    """By an embedded formula in the equations of a step, or by a double step of a scheme of order 2."""
    embedded = {equations.error_estimate is not None for equations in measured(scheme.name)[2]}
    if scheme.estimates_error_by_doubling:
        assert embedded == {False} and scheme.traits.error_order == scheme.order == 2
    else:
        assert embedded == {scheme.traits.error_order > 0}


def test_reasons_are_of_schemes_that_exist():
    assert set(NO_FORM) <= {scheme.name for scheme in lv.schemes.all()}
