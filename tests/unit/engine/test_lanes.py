"""Native code of any width computes what it computes for one trajectory."""

import ctypes
import dataclasses
import subprocess
import sys

import casadi as ca
import numpy as np
import pytest

import livens as lv
from livens import math as m
from livens.engine.codegen import jit
from livens.engine.codegen.ir_emitter import Emitter
from livens.engine.codegen.predictor_kernel import predictor_kernel
from livens.engine.codegen.step_kernels import compile_function_kernel
from livens.engine.ensemble import lane_loop
from livens.engine.ensemble.lane_run import InputTable, TimeGrid
from livens.engine.newton.predictors import predict_unknowns
from livens.expressions.graph.roundoff import VECTOR_LIBM_ULPS, roundoff_bound, uses_libm
from livens.expressions.state_layout import Layout
from livens.schemes.core.step_equations import StepGraph


def wide(function, points, width):
    """The function at as many points as there are lanes."""
    x, out = aligned(function.nnz_in(0), width), aligned(function.numel_out(0), width)
    x[:] = points
    code = compile_function_kernel(function, "f", width=width)
    address = x.ctypes.data
    function = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 5)(code.address)
    function(address, address, address, address, out.ctypes.data)
    return out


def aligned(rows, width):
    raw = np.zeros(rows * width + 8)
    return raw[(-raw.ctypes.data // 8) % 8 :][: rows * width].reshape(rows, width)


@pytest.mark.parametrize("width", [8, 16])
def test_lanes_compute_what_casadi_computes(width):
    """Arithmetic, comparisons, choices and library functions; NaN stays in its lane."""
    x = ca.SX.sym("x", 2)
    a, b = x[0], x[1]
    terms = [a + b, a / b, ca.sqrt(ca.fabs(a)), ca.sin(a) * ca.exp(b), ca.if_else(a > b, a, -b), ca.fmax(a, b)]
    terms += [
        ca.sign(a),
        a**3,
        ca.fabs(a) ** 1.5,
        ca.atan2(a, b),
        ca.floor(b),
        ca.logic_and(a > 0, b > 0),
        ca.fmod(a, b),
    ]
    f = ca.Function("f", [x], [ca.densify(ca.vertcat(*terms))])
    points = np.random.default_rng(width).uniform(-3, 3, (2, width))
    points[0, 3] = np.nan
    found = wide(f, points, width)
    expected = np.array([np.array(f(points[:, lane])).ravel() for lane in range(width)]).T
    others = [lane for lane in range(width) if lane != 3]
    np.testing.assert_allclose(found[:, others], expected[:, others], rtol=2e-15, atol=1e-300)
    assert np.isnan(found[0, 3])


@pytest.mark.parametrize("name", ["sin", "cos", "exp", "tan", "atan", "tanh"])
def test_the_library_for_vectors_is_as_good_as_the_bounds_say(name):
    x = ca.SX.sym("x", 1)
    f = ca.Function("f", [x], [getattr(ca, name)(x)])
    assert uses_libm(f)
    points = np.random.default_rng(1).uniform(-10, 10, (1, 16))
    found, expected = wide(f, points, 16)[0], getattr(np, {"atan": "arctan"}.get(name, name))(points[0])
    assert np.all(np.abs(found - expected) <= (VECTOR_LIBM_ULPS + 1) * np.spacing(np.abs(expected)))
    narrow, broad = (roundoff_bound(f, [x], [ca.SX(0)], library) for library in (1, VECTOR_LIBM_ULPS))
    assert float(ca.evalf(ca.substitute(broad / narrow, x, 0.5))) == VECTOR_LIBM_ULPS


def test_code_from_disk_finds_the_library_for_vectors():
    """In a process that compiles nothing, nobody else would load it."""
    program = """
import ctypes
import dataclasses
import casadi as ca, numpy as np
import livens as lv
from livens import math as m
from livens.engine.codegen import jit
from livens.engine.codegen.step_kernels import compile_function_kernel
from livens.engine.ensemble import lane_loop
x = ca.SX.sym("x")
code = compile_function_kernel(ca.Function("f", [x], [ca.cos(x) + 2]), "f", width=8)
given = np.zeros(24)
start = given.ctypes.data + (-given.ctypes.data) % 64
ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 5)(code.address)(start, start, start, start, start + 64)
print(given.max(), jit.compilations)
"""
    printed = [
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
        for _ in range(2)
    ]
    assert [words[0] for words in printed] == ["3.0", "3.0"] and printed[1][1] == "0"


def test_without_a_library_for_vectors_lanes_are_called_one_by_one(monkeypatch):
    monkeypatch.setattr("livens.engine.codegen.ir_emitter.vector_library_width", lambda: 1)
    emitter = Emitter("f", 5, 8)
    emitter.store(emitter.lower_op("SIN", emitter.load(0, 0)), 4, 0)
    text = emitter.to_ir()
    assert text.count("call double @sin(") == 8 and "_ZGV" not in text
    assert jit.compile_function(text, "f").address


def test_a_load_does_not_slip_behind_a_store():
    """The order of instructions is checked where it is made."""
    emitter = Emitter("f", 5)
    old = emitter.load(0, 0)
    emitter.store(emitter.add(emitter.load(1, 0), emitter.load(1, 0)), 0, 0)
    emitter.store(old, 4, 0)
    emitter.anchor(emitter.load(1, 0))
    with pytest.raises(AssertionError):
        emitter.to_ir()


def test_members_are_put_into_lanes_and_the_last_fills_those_left_over():
    """Lanes without a member of their own go the way of the last one, and belong to nobody."""
    width, states, parameters = 8, 2, 1
    numbers = dict(width=width, n_state=states, n_unknowns=0, chunk_size=1, work_rows=0, monitor_rows=0)
    doubles = {name: aligned(0, width) for name in ("X", "work", "monitor", "monitor_init")}
    names = ("newton_iterations", "failed", "failed_at", "valid_until", "member_of_lane", "counters")
    integers = {name: np.full(width, 7) for name in names}
    w = lane_loop.LaneWorkspace(
        c=aligned(2 + parameters, width), Z=aligned(2 * states, width), **numbers, **doubles, **integers
    )
    z, k = np.arange(22.0).reshape(11, states), 100.0 + np.arange(11.0).reshape(11, parameters)
    none = InputTable.empty().to_struct
    given = lane_loop.MemberArrays(n_members=11, z=z, n_parameters=parameters, k=k, inputs=none)
    times = lane_loop.TimeGridStruct(h=0.5, t0=3.0, n_steps=4, final_h=0.0, stride=1, n_rows=5)
    for first, members in ((0, [0, 1, 2, 3, 4, 5, 6, 7]), (8, [8, 9, 10, -1, -1, -1, -1, -1])):
        lane_loop._load_members(
            lane_loop.LaneKernels(*[0] * len(dataclasses.fields(lane_loop.LaneKernels))), w, given, first, times
        )
        who = [member if member >= 0 else 10 for member in members]
        assert w.member_of_lane.tolist() == members
        assert w.Z[:states].T.tolist() == z[who].tolist() and w.c[2].tolist() == k[who, 0].tolist()
        assert set(w.c[0]) == {0.5} and set(w.c[1]) == {3.0}
        assert set(w.newton_iterations) == set(w.failed) == {0} and set(w.failed_at) == {-1}


# -- the predictor of unknowns ----------------------------------------------------------------------------------------
def unknowns_only(block_sizes):
    """Equations of a step whose unknowns form groups of these sizes."""
    n = sum(block_sizes)
    x, z, c = ca.SX.sym("x", n), ca.SX.sym("z"), ca.SX.sym("c", 2)
    labels = tuple(f"equation {i}" for i in range(n))
    parts = dict(final_state=z, initial_guess=x, block_sizes=block_sizes, equation_labels=labels, layout=Layout(z=1))
    return StepGraph.from_residual(x, z, c, residual=x, **parts)


def histories(n):
    """Unknowns of five steps: smooth, near a turning point, too fast, alternating, and of random numbers."""
    t, shift = np.arange(5.0)[:, None], np.linspace(0.0, 0.4, n)
    yield 1 + t + 0.02 * t**2 + 1e-3 * t**3 + shift
    yield (t - 3.5 - 0.1 * shift) ** 2
    yield np.cos(0.05 * (t - 3.5)) + shift
    yield np.cos(1.0 * (t - 3.0)) * (1 + shift)
    yield np.sin(3.0 * t) + shift
    yield 3 - t + 1e-3 * (-1.0) ** t + shift
    yield np.random.default_rng(n).uniform(-1, 1, (5, n))


@pytest.mark.parametrize(("block_sizes", "width"), [((2, 1), 1), ((9, 8), 1), ((2, 1), 8)])
def test_native_predictors_compute_what_their_formula_says(block_sizes, width):
    """The extrapolated unknowns and the decision, in single steps, blocks of eight unknowns, and lanes."""
    n, sizes, decisions = sum(block_sizes), np.array(block_sizes), set()
    code = predictor_kernel(unknowns_only(block_sizes), width)
    predict = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 5)(code.address)
    for history in histories(n):
        X, accepted, expected = aligned(6 * n, width), aligned(1, width), np.zeros(n)
        X[: 5 * n] = history.reshape(-1, 1)
        address = X.ctypes.data
        predict(address, address, address, address, accepted.ctypes.data)
        decisions.add(predict_unknowns(np.ascontiguousarray(history), expected, n, sizes, len(sizes)))
        assert accepted.tolist() == [[predict_unknowns(history.copy(), expected, n, sizes, len(sizes))] * width]
        np.testing.assert_allclose(X[5 * n :], np.repeat(expected[:, None], width, axis=1), rtol=1e-14, atol=1e-14)
    assert decisions == {True, False}


def test_wide_vectors_are_joined_from_four_narrow_ones():
    """A function of two lanes, applied to vectors of eight."""
    emitter, given, out = Emitter("f", 5, 8), aligned(1, 8), aligned(1, 8)
    given[:] = np.arange(1.0, 9.0)
    negative = emitter._by_subvectors(2, lambda a: emitter.emit(f"fneg <2 x double> {a}"), [emitter.load(0, 0)])
    emitter.store(negative, 4, 0)
    address = given.ctypes.data
    code = jit.compile_function(emitter.to_ir(), "f")
    ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 5)(code.address)(address, address, address, address, out.ctypes.data)
    assert out.tolist() == (-given).tolist()


@pytest.mark.parametrize(
    ("steps", "final", "stride", "numbers"),
    [(10, 0.0, 5, [0, 5, 10]), (10, 0.0, 4, [0, 4, 8, 10]), (10, 0.1, 4, [0, 4, 8, 11]), (10, 0.1, 5, [0, 5, 10, 11])],
)
def test_output_rows_end_with_these_steps(steps, final, stride, numbers):
    """A shorter final step is one step more."""
    grid = TimeGrid(h=0.25, t0=1.0, n_steps=steps, final_h=final, stride=stride, stored=np.zeros(0, dtype=np.int64))
    assert grid.steps_of_rows.tolist() == numbers
    assert grid.times[:-1] == pytest.approx(1.0 + 0.25 * np.array(numbers[:-1]))
    assert grid.times[-1] == pytest.approx(1.0 + 0.25 * steps + final)


@pytest.mark.parametrize(
    "force",
    [
        lambda q, v: [m.where((q[0] > 0) & (v[0] > 0), -0.3 * q[0] * v[0], 0.0)],
        lambda q, v: [m.where((q[0] < 0) | (v[0] < 0), 0.0, -0.3 * q[0] * v[0])],
        lambda q, v: [np.where(np.logical_and(q[0] > 0, np.logical_not(v[0] < 0)), -0.3 * q[0] * v[0], 0.0)],
    ],
    ids=["and", "or", "not"],
)
@pytest.mark.parametrize("scheme", ["livens-em", "gauss-2"])
def test_conditions_of_forces_differ_by_member(force, scheme):
    """Members of an ensemble that are in different branches at the same time take the steps of single runs."""
    model = lv.System("x", kinetic=lambda v: v[0] ** 2 / 2, potential=lambda q: q[0] ** 2 / 2, forces=force)
    starts, options = np.linspace(-1.0, 1.0, 9)[:, None], dict(scheme=scheme, h=0.02, t_end=7.0)
    many = lv.ensemble(model, q0=starts, v0=np.zeros((9, 1)), **options).arrays["q"]
    single = np.array([lv.simulate(model, start, [0.0], **options).q for start in starts])
    np.testing.assert_allclose(many, single, rtol=0, atol=1e-13)
    free = np.outer(starts, np.cos(np.linspace(0.0, 7.0, 351)))
    assert np.abs(many[:, :, 0] - free).max() > 0.1  # the force acts
