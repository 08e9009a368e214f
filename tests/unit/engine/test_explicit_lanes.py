"""Equal pieces of explicit steps side by side: far fewer instructions, the same numbers."""

import ctypes
import itertools

import numpy as np
import pytest

import livens as lv
from livens import math as m
from livens.engine.codegen import explicit_simd
from livens.engine.codegen.explicit_simd import vectorize_step
from livens.engine.codegen.step_kernels import state_update_kernel
from livens.engine.codegen.vector_emitter import native_width
from livens.engine.compiled_step import compiled_step

SCHEMES = ("stormer-verlet", "position-verlet", "yoshida-4:stormer-verlet")
ENTRY = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 5)


def equations(model, scheme):
    return compiled_step(model, lv.schemes.get(scheme)).flat_equations


def called(code, z, c):
    out, none = np.zeros_like(z), np.zeros(1)
    ENTRY(code.address)(*(array.ctypes.data for array in (none, z, c, none, out)))
    return out


def chain():
    """Masses in a row, with forces of time and friction, and functions of the library."""
    return lv.System(
        16,
        kinetic=lambda v, k: 0.5 * k.m * (v @ v),
        potential=lambda q, t: (
            sum(m.sqrt(1 + (b - a) ** 2) for a, b in itertools.pairwise(q)) + m.exp(-(q[0] ** 2)) * m.sin(t)
        ),
        forces=lambda q: [x**3 / 10 for x in q],
        parameters=dict(m=1.7),
    )


@pytest.mark.parametrize(
    ("name", "scheme"),
    [*((name, scheme) for name in ("outer-solar-system", "pleiades") for scheme in SCHEMES), ("chain", SCHEMES[-1])],
)
def test_the_same_step_in_lanes(name, scheme, monkeypatch):
    """At random states, to round-off, beside the code that computes the graph as it is, whether it pays or not."""
    monkeypatch.setattr(explicit_simd, "_MAX_RELATIVE_LENGTH", np.inf)
    model = chain() if name == "chain" else lv.problems.load(name).model
    e = equations(model, scheme)
    lanes, plain = vectorize_step(e), state_update_kernel(e)
    assert lanes is not None
    random, k = np.random.default_rng(5), model.parameter_vector()
    for h, t in ((0.01, 0.3), (0.02, -2.0)):
        z, c = random.normal(size=e.layout.size), np.concatenate([[h, t], k])
        found, wanted = called(lanes.code, z, np.concatenate([c, lanes.invariant_values(h, k)])), called(plain, z, c)
        for part in e.layout.sizes:
            gap, size = (np.abs(x[e.layout[part]]).max(initial=0.0) for x in (found - wanted, wanted))
            assert gap <= 2e-14 * max(size, 1e-3), part


@pytest.mark.skipif(native_width() < 8, reason="counts are those of vectors of eight")
@pytest.mark.parametrize(
    ("name", "scheme", "part"),
    [
        ("outer-solar-system", "stormer-verlet", 0.36),
        ("outer-solar-system", "kahan-li-8:position-verlet", 0.17),
        ("pleiades", "stormer-verlet", 0.34),
        ("pleiades", "kahan-li-8:position-verlet", 0.21),
        ("fput", "kahan-li-8:position-verlet", 0.5),
    ],
)
def test_how_many_instructions(name, scheme, part):
    """A third of the instructions for one evaluation of all forces, a fifth for many of them."""
    lanes = vectorize_step(equations(lv.problems.load(name).model, scheme))
    assert lanes is not None and lanes.instructions <= part * lanes.graph_instructions


def test_where_lanes_do_not_pay():
    """Short steps, and operations that have no place in them, are computed as they are."""
    assert vectorize_step(equations(lv.problems.load("kepler").model, "stormer-verlet")) is None
    kinked = lv.System(
        16,
        kinetic=lambda v: 0.5 * (v @ v),
        potential=lambda q: sum(m.maximum(b - a, 0.0) ** 2 for a, b in itertools.pairwise(q)),
    )
    e = equations(kinked, "yoshida-4:stormer-verlet")
    assert e.final_state_function.n_instructions() > 100 and vectorize_step(e) is None
    run = lv.simulate(kinked, np.linspace(0, 2, 16), np.zeros(16), scheme="yoshida-4:stormer-verlet", h=0.01, t_end=1.0)
    assert run.summary.max_energy_drift < 1e-6


def test_a_run_in_lanes():
    """Pleiades with two sizes of steps, the last one shorter: as accurate as the order says, momentum at round-off."""
    problem = lv.problems.load("pleiades")
    exact = lv.simulate(problem, scheme="taylor", t_end=0.505).q[-1]
    errors = []
    for h in (0.06, 0.03):
        run = lv.simulate(problem, scheme="kahan-li-6:position-verlet", h=h, t_end=0.505)
        errors.append(np.abs(run.q[-1] - exact).max())
        momentum = run.p.reshape(len(run.p), -1, 2).sum(axis=1)
        assert np.abs(momentum - momentum[0]).max() < 1e-13 * np.abs(run.p).max()
    assert errors[0] < 1e-6 and 30 < errors[0] / errors[1] < 130, errors


def test_other_parameters_use_the_same_code():
    """Numbers that follow from parameters and h are run-time inputs."""
    model = chain()
    step = lv.prepare(model, "yoshida-4:stormer-verlet")
    q, v = np.linspace(-1, 1, 16), np.linspace(0.3, -0.2, 16)
    for mass in (1.7, 0.9):
        run = step.run(q, v, h=0.01, t_end=1.0, parameters=dict(m=mass))
        exact = lv.simulate(model, q, v, scheme="taylor", t_end=1.0, parameters=dict(m=mass))
        assert np.abs(run.q[-1] - exact.q[-1]).max() < 1e-7
