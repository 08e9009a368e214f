"""Step equations with structure: the sum of the elements' shares is what the flattened graph says, to round-off."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import livens as lv
from livens import math as m
from livens.schemes.discretization.element_scheme import ElementScheme
from livens.schemes.discretization.element_step import ElementEquations

#: Schemes whose equations on a System come element by element.
ELEMENTWISE = [
    "livens-em", "livens-em-reduced", "livens-em-full", "livens-em:mean-value", "livens-midpoint", "livens-variational",
    "hamilton-midpoint", "hamilton-em",
    "ggl-variational", "ggl-variational-adjoint", "ggl-variational-symmetric", "galerkin-variational-2",
    "ggl-classic", "ggl-em", "symplectic-euler", "rattle", "shake", "lobatto-iiia-iiib-3",
    "murua-2", "murua-ggl-2", "radau-iia-2", "lobatto-iiic-3",
]  # fmt: skip


def particle(v, k):
    return 0.5 * k.mass * (v @ v)


def weight(q, k):
    return k.mass * k.g * q[1] + 0.1 * q[0] ** 4


def rod(q, k):
    return [0.5 * ((q[:2] - q[2:]) @ (q[:2] - q[2:]) - k.length**2)]


def spring(q, k):
    return 0.5 * k.stiffness * (m.norm(q[:2] - q[2:]) - k.length) ** 2


def drag(v, k):
    return 0.5 * k.eta * (v @ v)


def chain(links):
    """Particles on rods and springs: elements of several types, each with parameters of its own."""
    names = [f"{axis}{i}" for i in range(len(links) + 1) for axis in "xy"]
    elements = [
        lv.Element([f"x{i}", f"y{i}"], kinetic=particle, potential=weight, parameters=dict(mass=1.0 + i), name=f"p{i}")
        for i in range(len(links) + 1)
    ]
    for i, rigid in enumerate(links):
        both = [f"x{i}", f"y{i}", f"x{i + 1}", f"y{i + 1}"]
        length = 0.5 + 0.1 * i
        if rigid:
            elements.append(lv.Element(both, constraints=rod, parameters=dict(length=length), name=f"rod{i}"))
        else:
            elements.append(
                lv.Element(both, potential=spring, parameters=dict(stiffness=3.0 + i, length=length), name=f"spring{i}")
            )
    elements.append(lv.Element(["x0", "y0"], dissipation=drag, parameters=dict(eta=0.2), name="drag"))
    return lv.System(names, elements=elements, parameters=dict(g=9.81))


def summed(equations, x, z, c):
    """Residual and momenta at the end, added up element by element from the kernels of the types."""
    scheme, layout, unknowns = equations.scheme, equations.layout, equations.unknowns
    h, t, k = c[0], c[1], c[2:]
    q, v, p = (z[layout[name]] for name in "qvp")
    residual, p1 = np.zeros(unknowns.size), np.zeros(len(q))
    for i in range(len(q)):
        places = [unknowns[name].start + i for name in scheme.unknowns]
        rows, _, _, own = (value.full().ravel() for value in equations.nodal_function(x[places], q[i], v[i], p[i], h))
        residual[places] += rows
        p1[i] += own[0]
    for group in equations.groups:
        for e in range(len(group.elements)):
            places, at = group.unknown_dofs(e, unknowns, scheme), group.coordinates[e]
            given = x[places], q[at], v[at], p[at], h, t, k[group.parameters[e]]
            rows, _, momenta, _ = (value.full().ravel() for value in group.kernel.function(*given))
            residual[places] += rows
            p1[at] += momenta
    return residual, p1


@pytest.mark.parametrize("name", ELEMENTWISE)
@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
@given(links=st.lists(st.booleans(), min_size=1, max_size=4), seed=st.integers(0, 2**32 - 1))
def test_sum_of_shares_is_the_flattened_graph(name, links, seed):
    system, random = chain(links), np.random.default_rng(seed)
    equations = lv.schemes.get(name).equations(system)
    assert isinstance(equations, ElementEquations)
    assert len(equations.groups) == len(set(system.element_types)) < len(system.elements)
    flat = equations.to_single_graph()
    x, z = random.uniform(-1, 1, flat.size), random.uniform(-1, 1, flat.z.numel())
    z[equations.layout["q"]] += np.arange(system.n)  # points apart from one another
    c = np.concatenate([[0.1, 0.3], system.parameter_vector()])
    residual, p1 = summed(equations, x, z, c)
    expected = flat.residual_function(x, z, c).full().ravel()
    size = 1 + np.abs(expected).max()
    assert np.abs(residual - expected).max() < 1e-13 * size
    end = flat.final_state_function(x, z, c).full().ravel()[equations.layout["p"]]
    assert np.abs(p1 - end).max() < 1e-13 * (1 + np.abs(end).max())


def test_every_element_scheme_is_in_the_list():
    """New schemes must be listed here."""
    system = chain([True])
    found = set()
    for scheme in lv.schemes.all():
        if not scheme.unmet_requirements(system) and not scheme.fictive:
            equations = scheme.equations(system)
            if isinstance(equations, ElementEquations):
                found.add(type(equations.scheme))
    listed = {type(lv.schemes.get(name).equations(system).scheme) for name in ELEMENTWISE}
    assert found <= listed, {kind.__name__ for kind in found - listed}


def test_no_scheme_mixes_coordinates_in_its_own_part():
    """The own part of two coordinates together is that of each: a tier may take them one by one."""
    system = chain([True])
    for name in ELEMENTWISE:
        recipe = lv.schemes.get(name).equations(system).scheme
        assert isinstance(recipe, ElementScheme)
        flat = lv.schemes.get(name).equations(system).to_single_graph()
        n = system.n
        import casadi as ca

        x = ca.SX.sym("x", len(recipe.unknowns) * n)
        old = type("Old", (), {s: ca.SX.sym(s, n) for s in "qvp"})()
        unknown = type("X", (), {u: x[i * n : (i + 1) * n] for i, u in enumerate(recipe.unknowns)})()
        rows = ca.densify(ca.vertcat(*recipe.nodal_residual(old, unknown, ca.SX.sym("h"))))
        pattern = np.array(ca.DM(ca.jacobian(rows, x).sparsity(), 1))
        for a in range(rows.numel()):
            for b in np.flatnonzero(pattern[a]):
                assert a % n == b % n, name
        assert flat.size >= x.numel()
