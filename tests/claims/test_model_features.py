"""Every scheme on a matrix of model features, against Lagrange's equations by CasADi and DOP853: right, or refused."""

import functools
from types import SimpleNamespace

import casadi as ca
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import livens as lv
from livens import math as m
from livens.schemes.core import registry

T_END, STEPS = 0.5, (1 / 20, 1 / 40, 1 / 80)
SYMBOLIC, TRACED = SimpleNamespace(sin=ca.sin, cos=ca.cos), SimpleNamespace(sin=m.sin, cos=m.cos)


def plane(q, v, f):
    return 0.5 * (v[0] * v[0] + 1.5 * v[1] * v[1])


def well(q, t, f):
    return 0.5 * (q[0] * q[0] + 2 * q[1] * q[1]) + 0.3 * q[0] * q[0] * q[1] + 0.2 * f.cos(q[0] + q[1])


def space(q, v, f):
    return 0.5 * (v[0] * v[0] + 1.5 * v[1] * v[1] + 0.8 * v[2] * v[2])


def weight(q, t, f):
    return 1.3 * q[2] + 0.4 * q[0] * q[0] + 0.2 * q[0] * q[1] * q[2]


def magnetic(q, v):
    return 0.8 * (q[0] * v[1] - q[1] * v[0]) + 0.3 * q[0] * q[0] * v[1]


def sphere(q, t, f):
    return [0.5 * (q[0] * q[0] + q[1] * q[1] + q[2] * q[2] - 1)]


FREE = dict(kinetic=plane, potential=well, q0=[0.6, -0.4], v0=[0.3, 0.5])
BALL = dict(kinetic=space, potential=weight, constraints=sphere, q0=[0.6, 0.0, -0.8], v0=[0.4, 0.5, 0.3])

FEATURES = {
    "plain": FREE,
    "linear term": FREE | dict(kinetic=lambda q, v, f: plane(q, v, f) + magnetic(q, v)),
    "rotating frame": FREE | dict(kinetic=lambda q, v, f: 0.5 * ((v[0] - 0.7 * q[1]) ** 2 + (v[1] + 0.7 * q[0]) ** 2)),
    "term of q": FREE | dict(kinetic=lambda q, v, f: plane(q, v, f) + 0.6 * f.sin(q[0]) ** 2),
    "M(q)": FREE
    | dict(
        kinetic=lambda q, v, f: (
            0.5 * ((1 + q[1] * q[1]) * v[0] * v[0] + 1.5 * v[1] * v[1]) + 0.3 * f.cos(q[0]) * v[0] * v[1]
        )
    ),
    "M(q), diagonal": FREE | dict(kinetic=lambda q, v, f: 0.5 * ((1 + q[1] * q[1]) * v[0] * v[0] + 1.5 * v[1] * v[1])),
    "quartic in v": FREE | dict(kinetic=lambda q, v, f: plane(q, v, f) + 0.1 * v[0] ** 4),
    "V(t)": FREE | dict(potential=lambda q, t, f: well(q, t, f) * (1 + 0.4 * f.sin(3 * t))),
    "dissipation": FREE | dict(dissipation=lambda q, v, f: 0.1 * (v[0] ** 2 + v[1] ** 2) ** 2 * (1 + q[0] ** 2)),
    "forces": FREE | dict(forces=lambda q, v, t, f: [f.sin(2 * t) + 0.3 * v[1], -0.2 * v[0] * q[1]]),
    "constraint": BALL,
    "constraint, linear term": BALL
    | dict(kinetic=lambda q, v, f: space(q, v, f) + 0.8 * (q[0] * v[1] - q[1] * v[0]) + 0.3 * q[0] * q[0] * v[2]),
    "constraint, M(q)": BALL
    | dict(kinetic=lambda q, v, f: space(q, v, f) + 0.5 * (q[1] * v[0]) ** 2 + 0.2 * f.cos(q[0]) * v[0] * v[1]),
    "constraint, singular M": BALL | dict(kinetic=lambda q, v, f: 0.5 * (v[0] * v[0] + 1.5 * v[1] * v[1])),
    "rheonomic constraint": BALL | dict(constraints=lambda q, t, f: [sphere(q, t, f)[0] - 0.2 * f.sin(t)]),
    "constraint, dissipation": BALL | dict(dissipation=lambda q, v, f: 0.1 * (v[0] ** 2 + v[1] ** 2 + v[2] ** 2) ** 2),
    "constraint, V(t)": BALL | dict(potential=lambda q, t, f: weight(q, t, f) * (1 + 0.4 * f.sin(3 * t))),
    "velocity constraint": BALL
    | dict(constraints=None, velocity_constraints=lambda q, f: [[f.sin(q[2]), -f.cos(q[2]), 0 * q[0]]]),
    "velocity constraint, linear term": BALL
    | dict(
        kinetic=lambda q, v, f: space(q, v, f) + 0.8 * (q[0] * v[1] - q[1] * v[0]),
        constraints=None,
        velocity_constraints=lambda q, f: [[f.sin(q[2]), -f.cos(q[2]), 0 * q[0]]],
    ),
}


@functools.cache
def reference(name):
    """Consistent start and the state at the end, from M(q) and the forces that CasADi derives from L, by DOP853."""
    given = FEATURES[name]
    n = len(given["q0"])
    q, v, t = ca.SX.sym("q", n), ca.SX.sym("v", n), ca.SX.sym("t")
    T = given["kinetic"](q, v, SYMBOLIC)
    p = ca.gradient(T, v)
    force = ca.gradient(T, q) - ca.jacobian(p, q) @ v - ca.gradient(given["potential"](q, t, SYMBOLIC), q)
    if "dissipation" in given:
        force -= ca.gradient(given["dissipation"](q, v, SYMBOLIC), v)
    if "forces" in given:
        force += ca.vertcat(*given["forces"](q, v, t, SYMBOLIC))
    G, level = ca.SX(0, n), ca.SX(0, 1)
    if given.get("constraints"):
        g = ca.vertcat(*given["constraints"](q, t, SYMBOLIC))
        G = ca.jacobian(g, q)
        level = G @ v + ca.jacobian(g, t)
    if "velocity_constraints" in given:
        G = ca.vertcat(*(ca.horzcat(*row) for row in given["velocity_constraints"](q, SYMBOLIC)))
        level = G @ v
    count = G.shape[0]
    matrix = ca.blockcat([[ca.jacobian(p, v), G.T], [G, ca.SX(count, count)]])
    rhs = ca.vertcat(force, -ca.jacobian(level, q) @ v - ca.jacobian(level, t))
    terms = ca.Function("terms", [t, q, v], [ca.densify(x) for x in (matrix, rhs, G, level)])
    q0, v0 = np.array(given["q0"]), np.array(given["v0"])
    if count:
        _, _, at_start, defect = (np.array(x) for x in terms(0, q0, v0))
        v0 = v0 - np.linalg.pinv(at_start) @ defect.ravel()

    def rate(time, y):
        K, b, _, _ = (np.array(x) for x in terms(time, y[:n], y[n:]))
        return np.concatenate([y[n:], np.linalg.solve(K, b.ravel())[:n]])

    end = solve_ivp(rate, (0, T_END), np.concatenate([q0, v0]), method="DOP853", rtol=1e-12, atol=1e-13).y[:, -1]
    return q0, v0, end[:n], end[n:]


@functools.cache
def system(name):
    given = FEATURES[name]
    functions = dict(
        kinetic=lambda q, v: given["kinetic"](q, v, TRACED), potential=lambda q, t: given["potential"](q, t, TRACED)
    )
    if "V(t)" not in name:
        functions["potential"] = lambda q: given["potential"](q, 0.0, TRACED)
    if "dissipation" in given:
        functions["dissipation"] = lambda q, v: given["dissipation"](q, v, TRACED)
    if "forces" in given:
        functions["forces"] = lambda q, v, t: given["forces"](q, v, t, TRACED)
    if given.get("constraints"):
        functions["constraints"] = lambda q, t: given["constraints"](q, t, TRACED)
        if "rheonomic" not in name:
            functions["constraints"] = lambda q: given["constraints"](q, 0.0, TRACED)
    if "velocity_constraints" in given:
        functions["velocity_constraints"] = lambda q, v: [
            sum((a * v[i] for i, a in enumerate(row[1:], 1)), row[0] * v[0])
            for row in given["velocity_constraints"](q, TRACED)
        ]
    return lv.System("x y z".split()[: len(given["q0"])], **functions)


def in_physical_time(scheme):
    return not scheme.fictive and not scheme.selects_step_size and scheme.name != "radau"


def one_of_each_class():
    """The first member of every family, and every scheme that is not of a family, without the longest compositions."""
    first = {}
    for scheme in registry.all():
        if in_physical_time(scheme) and "-8" not in scheme.name:
            first.setdefault((type(scheme), getattr(scheme, "family", "").partition("-")[0]), scheme.name)
    return [*first.values(), "semi-explicit-2:0.5", "radau-iia-2"]


def check(name, schemes):
    """Errors fall with the declared order in q; in v at least by half with every halved step, or are round-off."""
    q0, v0, q_end, v_end = reference(name)
    taken = 0
    for scheme in (registry.get(s) for s in schemes):
        if scheme.unmet_requirements(system(name)):
            with pytest.raises(lv.LivensError, match="needs"):
                lv.simulate(system(name), q0=q0, v0=v0, h=0.1, t_end=T_END, scheme=scheme.name)
            continue
        taken, errors = taken + 1, []
        for h in STEPS:
            run = lv.simulate(system(name), q0=q0, v0=v0, h=h, t_end=T_END, scheme=scheme.name, every=10**6)
            errors.append([np.abs(run.q[-1] - q_end).max(), np.abs(run.v[-1] - v_end).max()])
        (_, _), before, after = np.maximum(errors, 1e-16)
        order = np.log2(before / after)
        assert after[0] < 1e-9 or order[0] > scheme.order - 0.35, (name, scheme.name, errors)
        assert after[1] < 1e-9 or order[1] > 0.6, (name, scheme.name, errors)
        assert after.max() < 0.05, (name, scheme.name, errors)
    assert taken >= 4, name


@pytest.mark.parametrize("name", FEATURES)
def test_schemes_integrate_a_feature_or_refuse_it(name):
    check(name, one_of_each_class())


@pytest.mark.slow
@pytest.mark.parametrize("name", FEATURES)
def test_all_schemes_integrate_a_feature_or_refuse_it(name):
    check(name, [scheme.name for scheme in registry.all() if in_physical_time(scheme)])


def test_rigid_bodies_with_a_term_linear_in_v_are_refused():
    """The schemes of rigid bodies have the kinetic energy of a rigid body only."""
    charged = lv.Element(
        ["x", "y", "z"], kinetic=lambda q, v: 0.5 * (v @ v) + 0.3 * (q[0] * v[1] - q[1] * v[0]), frames=[([0, 1, 2],)]
    )
    with pytest.raises(lv.ModelError, match="rigid body"):
        lv.System("x y z", elements=[charged], frames=True)
